"""The input that is mutated: manifests of the tests and examples, and pages of a real apiserver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.decode.yaml_values import read_all

_ROOT: Final = Path(__file__).parents[2]
_MANIFESTS: Final = ("tests/rules", "tests/threads", "tests/e2e/healthy", "examples")
_RECORDED: Final = _ROOT / "tests/sources/recorded"
_LARGEST: Final = 30_000


@cache
def texts() -> tuple[bytes, ...]:
    """Return the bytes of the manifests, in the order of their paths."""
    paths = [path for directory in _MANIFESTS for path in sorted((_ROOT / directory).rglob("*.*"))]
    bodies = (path.read_bytes() for path in paths if path.suffix in (".json", ".yaml"))
    return tuple(body for body in bodies if 0 < len(body) <= _LARGEST)


@cache
def objects() -> tuple[Any, ...]:
    """Return the objects of all manifests as JSON values, with the items of lists instead of lists."""
    sample = json.loads((_ROOT / "examples/cluster.json").read_bytes())
    return (*sample["items"], *(manifest for body in texts() for manifest in _objects(body)))


@cache
def pages() -> dict[str, bytes]:
    """Map a resource in the plural to a page in protobuf."""
    return {path.stem: path.read_bytes() for path in sorted(_RECORDED.glob("*.pb"))}


def _objects(body: bytes) -> Iterator[Any]:
    try:
        values = read_all(body, "")
    except SourceError:
        return
    for value in values:
        if isinstance(value, dict):
            yield from value["items"] if isinstance(value.get("items"), list) else [value]
