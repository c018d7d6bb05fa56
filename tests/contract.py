"""What `-o json` prints is held to the JSON Schemas that ship with the package, and these are closed."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from click.testing import CliRunner
from jsonschema import Draft202012Validator

from kubectl_spread.cli import cli


@cache
def validator(kind: str) -> Draft202012Validator:
    """Return what validates documents of a kind, by the schema that the command prints."""
    printed = json.loads(CliRunner().invoke(cli, ["schema", kind]).stdout)
    Draft202012Validator.check_schema(printed)
    return Draft202012Validator(printed)


def loaded(text: str) -> Any:
    """Return a document in JSON.

    Raises:
        jsonschema.ValidationError: it is not what the schema of its kind says.
    """
    document = json.loads(text)
    validator(document["kind"]).validate(document)
    return document
