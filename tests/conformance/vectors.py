"""Recorded vectors: cases with the answers of the real code, under ``vectors/``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from tests.builders import Json

DIRECTORY: Final = Path(__file__).parent / "vectors"


class Recorded(msgspec.Struct, frozen=True):
    """One answer, and the settings (minor and gates) of the oracles that gave it."""

    settings: tuple[str, ...]
    answer: Json


class Vector(msgspec.Struct, frozen=True):
    """A case and its answers."""

    name: str
    question: Json
    answers: tuple[Recorded, ...]


def load() -> dict[str, list[Vector]]:
    """Return the recorded vectors by file."""
    return {
        path.stem: msgspec.json.decode(path.read_bytes(), type=list[Vector])
        for path in sorted(DIRECTORY.glob("*.json"))
    }
