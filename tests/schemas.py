"""The JSON Schemas of the package, generated from its types and from the tables of fields in the pages."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.report.domains import SpreadDomains
from kubectl_spread.report.fleet import SpreadFleet
from kubectl_spread.report.mergereport import MergeReport
from kubectl_spread.report.model import API_VERSION, Part, Report
from kubectl_spread.report.plan import SpreadPlan
from kubectl_spread.report.recommendation import SpreadRecommendation
from kubectl_spread.report.simulation import SpreadSimulation
from kubectl_spread.rules.model import RuleList

ROOT: Final = Path(__file__).parent.parent
DIRECTORY: Final = "kubectl_spread/schemas"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
HOME: Final = "https://raw.githubusercontent.com/kubectl-spread/kubectl-spread/main"
KINDS: Final[Mapping[str, tuple[type[Part], str]]] = {
    "MergeReport": (MergeReport, "docs/json.md"),
    "RuleList": (RuleList, "docs/json.md"),
    "SpreadDomains": (SpreadDomains, "docs/json.md"),
    "SpreadExplanation": (Explanation, "docs/json.md"),
    "SpreadFleet": (SpreadFleet, "docs/json.md"),
    "SpreadPlan": (SpreadPlan, "docs/json.md"),
    "SpreadRecommendation": (SpreadRecommendation, "docs/json.md"),
    "SpreadReport": (Report, "docs/json.md"),
    "SpreadSimulation": (SpreadSimulation, "docs/json.md"),
}
"""Maps a kind to its type, and to the page with a table of fields for each of its types."""

_SECTION: Final = re.compile(r"^##+ (\w+)\n(.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE)
_ROW: Final = re.compile(r"^\| `(\w+)` \| (.*) \|$", re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_NULL: Final = re.compile(r"\bNone\b")
"""The word for null in docstrings."""


def path(kind: str) -> str:
    """Return the file of a kind's schema, in the checkout."""
    return f"{DIRECTORY}/{kind}.json"


def text(kind: str) -> str:
    """Return the schema of a kind as the text of its file."""
    return json.dumps(schema(kind), indent=2, sort_keys=True) + "\n"


def schema(kind: str) -> dict[str, Any]:
    """Return the schema of a kind, which refuses fields that the types do not have."""
    root, page = KINDS[kind]
    parts = parts_of(root)
    tables = {**documented(page), root.__name__: documented(page)[kind]}
    types = {name: _described(part, tables[name]) for name, part in parts.items()}
    own = types.pop(root.__name__)
    own["properties"]["apiVersion"]["const"] = API_VERSION
    own["properties"]["kind"]["const"] = kind
    return {**own, "$schema": DIALECT, "$id": f"{HOME}/{path(kind)}", "title": kind, "$defs": types}


def _inlined(field: dict[str, Any], enums: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of a field with the values of an enum, or of a list of them."""
    if "$ref" in field.get("items", {}):
        return {**field, "items": enums.get(field["items"]["$ref"], field["items"])}
    return enums.get(field.get("$ref", ""), field)


def parts_of(root: type[Part]) -> dict[str, dict[str, Any]]:
    """Return the schema of each type in a document, by the name of the type.

    A field of a Part with a default is always written, unless the default is UNSET, which msgspec leaves out of the
    schema. A message of the Kubernetes API leaves defaults out. The values of enums are repeated in their fields.
    """
    types: dict[str, dict[str, Any]] = msgspec.json.schema(root, schema_hook=lambda _: {"type": "string"})["$defs"]
    enums = {f"#/$defs/{name}": {"enum": part["enum"]} for name, part in types.items() if "enum" in part}
    structs = {name: part for name, part in types.items() if "enum" not in part}
    ours = {subclass.__name__ for subclass in _subclasses(Part)}
    for name, part in structs.items():
        part["properties"] = {name: _inlined(field, enums) for name, field in part["properties"].items()}
        fields = part["properties"].items()
        if name in ours:
            part["required"] += [field for field, definition in fields if "default" in definition]
        part["required"].sort()
        for _, field in fields:
            field.pop("default", None)
    return structs


def documented(page: str) -> dict[str, dict[str, str]]:
    """Return the description of each field in a page, by the title of its section."""
    content = (ROOT / page).read_text(encoding="utf-8")
    return {
        title: {field: _LINK.sub(r"\1", about) for field, about in _ROW.findall(body)}
        for title, body in _SECTION.findall(content)
    }


def _described(part: dict[str, Any], table: Mapping[str, str]) -> dict[str, Any]:
    """Return the schema of a type with the descriptions of its fields, and without any other field.

    Raises:
        KeyError: The page does not describe a field.
    """
    properties = {name: {**field, "description": table[name]} for name, field in part["properties"].items()}
    about = _NULL.sub("null", inspect.cleandoc(part["description"])).replace("``", "`")
    return {**part, "description": about, "properties": properties, "additionalProperties": False}


def _subclasses(of: type[Part]) -> Iterator[type[Part]]:
    for subclass in of.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)
