"""The custom resources of OpenReports, with the fields that we print and no others."""

from __future__ import annotations

from typing import Any, Final

from jsonschema import Draft202012Validator

from tests.builders import Json

GROUP: Final = "openreports.io"
VERSION: Final = "v1alpha1"
_TEXT: Final[Json] = {"type": "string"}
_NUMBER: Final[Json] = {"type": "integer"}
_OUTCOMES: Final = ("pass", "fail", "warn", "error", "skip")
_REFERENCE: Final[Json] = {
    "type": "object",
    "properties": dict.fromkeys(("apiVersion", "kind", "namespace", "name"), _TEXT),
}
_RESULT: Final[Json] = {
    "type": "object",
    "required": ["policy"],
    "properties": {
        **dict.fromkeys(("policy", "rule", "category", "message"), _TEXT),
        "severity": {"type": "string", "enum": ["critical", "high", "medium", "low", "info"]},
        "result": {"type": "string", "enum": list(_OUTCOMES)},
        "scored": {"type": "boolean"},
        "resources": {"type": "array", "items": _REFERENCE},
        "properties": {"type": "object", "additionalProperties": _TEXT},
    },
}
SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": {"type": "object"},
        "source": _TEXT,
        "summary": {"type": "object", "properties": dict.fromkeys(_OUTCOMES, _NUMBER)},
        "results": {"type": "array", "items": _RESULT},
    },
}


def definition(kind: str, *, namespaced: bool) -> Json:
    """Return the CustomResourceDefinition of ``Report`` or ``ClusterReport``."""
    singular = kind.lower()
    plural = f"{singular}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": singular},
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [
                {"name": VERSION, "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}},
            ],
        },
    }


def validate(document: Json) -> None:
    """Validate a document by the schema, and refuse unknown fields.

    Raises:
        jsonschema.ValidationError: The API would refuse the document.
    """
    Draft202012Validator(_closed(SCHEMA)).validate(document)


def _closed(schema: Any) -> Any:
    """Return a schema that refuses unknown fields."""
    match schema:
        case {"properties": dict() as properties}:
            below = {name: _closed(prop) for name, prop in properties.items()}
            return {**schema, "properties": below, "additionalProperties": False}
        case {"items": items}:
            return {**schema, "items": _closed(items)}
    return schema
