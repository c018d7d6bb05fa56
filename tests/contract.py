"""Output of `-o json` is validated by the JSON Schemas of the package, which allow no other fields."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from click.testing import CliRunner
from jsonschema import Draft202012Validator

from kubectl_spread.cli import cli


@cache
def validator(kind: str) -> Draft202012Validator:
    """Return the validator of a kind, by the schema that the command prints."""
    printed = json.loads(CliRunner().invoke(cli, ["schema", kind]).stdout)
    Draft202012Validator.check_schema(printed)
    return Draft202012Validator(printed)


def loaded(text: str) -> Any:
    """Return a document in JSON.

    Raises:
        jsonschema.ValidationError: The schema of its kind does not allow it.
    """
    document = json.loads(text)
    validator(document["kind"]).validate(document)
    return document
