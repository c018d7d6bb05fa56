"""The lines of a manifest that a patch changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kubectl_spread.errors import Position
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.report.model import ManifestLines, Operation


def changed(
    position_of: Callable[[tuple[str | int, ...]], Position], operations: Sequence[Operation]
) -> list[ManifestLines]:
    """Return the lines that a patch changes in a manifest, each with its place."""
    return [_changed(position_of, operation) for operation in operations if operation.op != "test"]


def _changed(position_of: Callable[[tuple[str | int, ...]], Position], operation: Operation) -> ManifestLines:
    from kubectl_spread.render import yaml_text  # noqa: PLC0415 - only manifests with a patch need YAML

    path = _path(operation.path)
    field, parent = str(path[-1]), FieldPath(path[:-1])
    in_list = isinstance(path[-1], int)
    # The place of a missing field is that of the innermost one around it.
    is_there = not in_list and position_of(path) != position_of(parent)
    place = position_of(path if is_there or operation.op != "add" else parent)
    value: Any = [operation.value] if in_list else {field: operation.value}
    target = str(path) if in_list else f"{field} in {parent}"
    match operation.op:
        case "remove":
            action, text = f"remove {target}", ""
        case _ if operation.op == "replace" or is_there:
            action, text = f"change {target} to", yaml_text.dump(value)
        case _:
            action, text = f"add in {parent}", yaml_text.dump(value)
    return ManifestLines(file=file_name(place.source), line=place.line or 1, action=action, yaml=text)


def file_name(source: str) -> str:
    """Return a path with slashes, as text: no format can hold a file name that is not UTF-8."""
    return Path(source).as_posix().encode(errors="surrogateescape").decode(errors="backslashreplace")


def _path(pointer: str) -> FieldPath:
    steps = (step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])
    return FieldPath(int(step) if step.isdecimal() else step for step in steps)
