"""Record the answers of the real code to the vectors' cases: ``python -m tests.conformance.record``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Final

import msgspec

from tests.builders import Json
from tests.conformance.cases import KINDS, case
from tests.conformance.edges import EDGES
from tests.conformance.oracles import Oracle
from tests.conformance.settings import Setting, all_settings
from tests.conformance.vectors import DIRECTORY, Recorded, Vector

_SEED: Final = 1
_RANDOM: Final = 20


def main() -> None:
    """Write every file of vectors."""
    with ExitStack() as stack:
        oracles = {
            setting: stack.enter_context(Oracle(setting.minor, dict(setting.gates))) for setting in all_settings()
        }
        for name, questions in _files():
            vectors = [_vector(title, question, oracles) for title, question in questions.items()]
            lines = b",\n".join(msgspec.json.encode(vector) for vector in vectors)
            (DIRECTORY / f"{name}.json").write_bytes(b"[\n" + lines + b"\n]\n")


def _files() -> Iterator[tuple[str, Mapping[str, Json]]]:
    yield from EDGES.items()
    yield (
        "random",
        {f"{kind} {index}": case(kind, _SEED, index) for kind in KINDS for index in range(_RANDOM)},
    )


def _vector(name: str, question: Json, oracles: Mapping[Setting, Oracle]) -> Vector:
    line = msgspec.json.encode(question)
    recorded: dict[bytes, list[str]] = {}
    for setting, oracle in oracles.items():
        (answer,) = oracle.ask([line])
        recorded.setdefault(answer.strip(), []).append(str(setting))
    answers = tuple(Recorded(tuple(names), msgspec.json.decode(answer)) for answer, names in recorded.items())
    return Vector(name, question, answers)


if __name__ == "__main__":
    main()
