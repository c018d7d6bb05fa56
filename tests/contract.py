"""Output of `-o json` is validated by the JSON Schemas of the package, which allow no other fields."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator


@cache
def validator(kind: str) -> Draft202012Validator:
    """Return the validator of a kind, by the schema of the package; threads may call it."""
    schema = json.loads((resources.files("kubectl_spread") / "schemas" / f"{kind}.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def loaded(text: str) -> Any:
    """Return a document in JSON.

    Raises:
        jsonschema.ValidationError: The schema of its kind does not allow it.
    """
    document = json.loads(text)
    validator(document["kind"]).validate(document)
    return document
