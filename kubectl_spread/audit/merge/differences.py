"""The difference between two selectors, as text."""

from __future__ import annotations

from typing import Any

import msgspec

from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.kube.api.types import LabelSelector


def lines(stored: LabelSelector | None, merged: LabelSelector | None) -> list[str]:
    """Return the difference as ``kubectl diff`` prints it: ``-`` for stored, ``+`` for merged values."""
    if stored == merged:
        return []
    from deepdiff import DeepDiff  # noqa: PLC0415 - it takes 0.2 s, and a healthy cluster does not need it

    before, after = _plain(stored), _plain(merged)
    tree = DeepDiff(before, after, view="tree")
    changes = [(level.path(output_format="list"), level) for levels in tree.values() for level in levels]
    text = []
    for path, level in sorted(changes, key=lambda change: change[0]):
        where = FieldPath(path)
        for sign, value in (("-", level.t1), ("+", level.t2)):
            if isinstance(value, str | dict | list | tuple):
                text.append(f"{sign}{where}: {_compact(value)}" if where else f"{sign}{_compact(value)}")
    return text


def _plain(selector: LabelSelector | None) -> Any:
    return {} if selector is None else msgspec.to_builtins(selector)


def _compact(value: object) -> str:
    if isinstance(value, str):
        return value or '""'
    return msgspec.json.encode(value).decode()
