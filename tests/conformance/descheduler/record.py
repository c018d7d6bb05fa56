"""Record the answers of the real descheduler: ``python -m tests.conformance.descheduler.record``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from tests.builders import Json
from tests.conformance.descheduler.cases import case
from tests.conformance.descheduler.edges import EDGES
from tests.conformance.descheduler.oracles import oracle

FILE: Final = Path(__file__).parent / "vectors.json"

_SEED: Final = 1
_RANDOM: Final = 10


class Vector(msgspec.Struct, frozen=True):
    """A case and the real answer."""

    name: str
    question: Json
    answer: Json


def load() -> list[Vector]:
    """Return the recorded vectors."""
    return msgspec.json.decode(FILE.read_bytes(), type=list[Vector])


def main() -> None:
    """Write the vectors."""
    questions = dict(_questions())
    with oracle() as process:
        answers = process.ask([msgspec.json.encode(question) for question in questions.values()])
    vectors = [
        Vector(name, question, msgspec.json.decode(answer))
        for (name, question), answer in zip(questions.items(), answers, strict=True)
    ]
    FILE.write_bytes(b"[\n" + b",\n".join(msgspec.json.encode(vector) for vector in vectors) + b"\n]\n")


def _questions() -> Iterator[tuple[str, Json]]:
    yield from EDGES.items()
    for index in range(_RANDOM):
        yield f"random {index}", case(_SEED, index)


if __name__ == "__main__":
    main()
