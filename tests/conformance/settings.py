"""Settings: a Kubernetes minor with a named set of feature gates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kubectl_spread.kube import features
from kubectl_spread.kube.features import Behaviour, Gate
from tests.conformance.oracles import VERSIONS

GATES: Final = ("default", "merge-off", "keys-off", "comparison")
"""The names of the sets of gates."""
CI_MINORS: Final = (33, 37, 38)
"""The minors that CI compares: the oldest, the newest release, and the next."""
CI_GATES: Final = ("default",)


@dataclass(frozen=True, slots=True)
class Setting:
    """A minor with a named set of feature gates."""

    minor: int
    name: str
    gates: tuple[tuple[str, bool], ...] = ()

    @property
    def behaviour(self) -> Behaviour:
        """The behaviour of such a cluster."""
        return features.behaviour(self.minor, features.gates(self.minor, dict(self.gates)))

    def __str__(self) -> str:
        return f"1.{self.minor} {self.name}"


def settings(minors: Sequence[int], names: Sequence[str]) -> Iterator[Setting]:
    """Yield each minor with each named set of gates that it knows."""
    for minor in minors:
        gates_of_minor = features.gates(minor, {})
        for name in names:
            gates = _GATES[name]
            if all(gate in gates_of_minor for gate, _ in gates):
                yield Setting(minor, name, gates)
            elif name == "keys-off":
                yield Setting(minor, name, tuple((gate, value) for gate, value in gates if gate in gates_of_minor))


def all_settings() -> tuple[Setting, ...]:
    """Return every minor with every set of gates."""
    return tuple(settings(tuple(VERSIONS), GATES))


_GATES: Final[dict[str, tuple[tuple[str, bool], ...]]] = {
    "default": (),
    "merge-off": ((Gate.SELECTOR_MERGE, False),),
    # From 1.35 on the merge cannot be on without the keys.
    "keys-off": ((Gate.MATCH_LABEL_KEYS, False), (Gate.SELECTOR_MERGE, False)),
    "comparison": ((Gate.TOLERATION_COMPARISON, True),),
}
