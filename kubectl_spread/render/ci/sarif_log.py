"""The parts of a SARIF 2.1.0 log that the format has here, by their names in the specification.

Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/sarif-v2.1.0-errata01-os-complete.html
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

Level = Literal["error", "warning", "note"]


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a log; fields that are UNSET are left out."""


class SarifMessage(_Part, frozen=True, kw_only=True):
    """A text, and the same as Markdown."""

    text: str
    markdown: str | UnsetType = UNSET


class Configuration(_Part, frozen=True, kw_only=True):
    """The level of a rule's results without a level of their own."""

    level: Level


class Descriptor(_Part, frozen=True, kw_only=True):
    """A rule."""

    id: str
    name: str
    short_description: SarifMessage
    full_description: SarifMessage
    help: SarifMessage
    help_uri: str
    default_configuration: Configuration
    properties: dict[str, str | list[str]]


class Driver(_Part, frozen=True, kw_only=True):
    """The program, and its rules."""

    name: str
    version: str
    information_uri: str
    rules: list[Descriptor]


class Tool(_Part, frozen=True, kw_only=True):
    """The program that wrote the log."""

    driver: Driver


class Region(_Part, frozen=True, kw_only=True):
    """A place in a file; line and column count from 1."""

    start_line: int
    start_column: int | UnsetType = UNSET


class ArtifactLocation(_Part, frozen=True, kw_only=True):
    """A file."""

    uri: str


class PhysicalLocation(_Part, frozen=True, kw_only=True):
    """A place in a file."""

    artifact_location: ArtifactLocation
    region: Region


class LogicalLocation(_Part, frozen=True, kw_only=True):
    """A place that has a name and no file."""

    name: str
    fully_qualified_name: str
    kind: str


class Location(_Part, frozen=True, kw_only=True):
    """Where a result is."""

    physical_location: PhysicalLocation | UnsetType = UNSET
    logical_locations: list[LogicalLocation]


class Result(_Part, frozen=True, kw_only=True):
    """A finding of a rule."""

    rule_id: str
    rule_index: int
    level: Level
    message: SarifMessage
    locations: list[Location]
    partial_fingerprints: dict[str, str]
    properties: dict[str, object]


class Notification(_Part, frozen=True, kw_only=True):
    """A message of the program about its run."""

    level: Level
    message: SarifMessage


class Invocation(_Part, frozen=True, kw_only=True):
    """The outcome of a run."""

    execution_successful: bool
    tool_execution_notifications: list[Notification]


class AutomationDetails(_Part, frozen=True, kw_only=True):
    """The category of a run: the ``id`` up to its last slash. The rest of the ``id`` is about this run only."""

    id: str


class Run(_Part, frozen=True, kw_only=True):
    """One run of the program."""

    tool: Tool
    automation_details: AutomationDetails | UnsetType = UNSET
    invocations: list[Invocation]
    column_kind: Literal["unicodeCodePoints"] = "unicodeCodePoints"
    results: list[Result]
    properties: dict[str, dict[str, str]]


class Log(_Part, frozen=True, kw_only=True):
    """A log."""

    schema: str = msgspec.field(
        name="$schema",
        default="https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
    )
    version: Literal["2.1.0"] = "2.1.0"
    runs: list[Run]
