"""Random cases about resources: quantities, requests of pods, and allocatable amounts of nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.builders import Json

_HUGE: Final = "hugepages-2Mi"
_QUANTITIES: Final = {
    "cpu": ("0", "1m", "100m", "250m", "0.1", "1", "1.5", "2", "1e-1", "2e0", "1k"),
    "memory": ("0", "1", "64Mi", "128Mi", "0.5Gi", "1.5Gi", "129e6", "129M", "123456789", "100000k", "1Gi", "0.1Ki"),
    "ephemeral-storage": ("0", "1Gi", "2G", "10Mi", "1e9"),
    "nvidia.com/gpu": ("0", "1", "2", "1500m"),
    "example.com/a-b_c": ("1", "3", "1e0"),
    "kubernetes.io/batch-cpu": ("1", "2k"),
    "attachable-volumes-csi": ("1", "2"),
    # The scheduler does not count these.
    "storage": ("1Gi",),
    "pods": ("3",),
    "requests.example.com/a": ("1",),
    "example.com/": ("1",),
    "bad name/a": ("1",),
    "example.com/" + "a" * 64: ("1",),
}
_COMMON: Final = ("cpu", "cpu", "memory", "memory", "ephemeral-storage", "nvidia.com/gpu")
_HUGE_QUANTITIES: Final = ("2Mi", "4Mi", "6Mi")
_TINY: Final = ("100u", "1n", "1500u", "0.0001", "1e-6")
_OF_A_POD: Final = ("cpu", "memory")
_SUFFIXES: Final = (
    *("n", "u", "m", "", "", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"),
    *("e3", "E3", "e+3", "e-3", "E-7", "e-12", "e0", "e15", "E+2", "e-20"),
    *("K", "ki", "mi", "e", "i", "eE", "e1.5", "e-", "EE", "mm", "m3", "+3", "x", "Kib", "k1", "e1e1"),
)
_ODD: Final = (
    "",
    "-",
    "+",
    ".",
    "m",
    "Ki",
    "E",
    "e",
    "e3",
    "--1",
    "1..2",
    "1.2.3",
    "E5",
    "9E",
    "9Ei",
    "0x10",
    "_",
    "\u0663",
)


def question(random: Random) -> Json:
    """Return texts that may be quantities, a pod to place, and nodes with pods on them."""
    maker = _Maker(random, whole=random.random() < 0.3)
    names = [f"n{index}" for index in range(random.choice((1, 2, 3)))]
    return {
        "quantities": [maker.text() for _ in range(8)],
        "pod": maker.pod("p"),
        "nodes": [maker.node(name) for name in names],
        "pods": [
            maker.pod(f"p{index}", nodeName=random.choice((*names, "gone")), phase=maker.phase())
            for index in range(random.choice((0, 2, 5)))
        ],
    }


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the parts of one case; with ``whole`` pods have requests of their own too."""

    random: Random
    whole: bool

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def phase(self) -> str:
        return self.random.choice(("Running", "Running", "Pending", "Succeeded", "Failed"))

    def text(self) -> str:
        if self.chance(0.15):
            return self.random.choice(_ODD)
        suffix = self.random.choice(_SUFFIXES)
        digits = self.random.choice((1, 2, 3))
        whole = str(self.random.randrange(10**digits))
        fraction = self.random.choice(("", "", "", ".", ".5", ".25", ".001", ".0001", ".123456789123"))
        return self.random.choice(("", "", "", "+", "-", "00")) + whole + fraction + suffix

    def name(self) -> str:
        return self.random.choice(_COMMON if self.chance(0.8) else tuple(_QUANTITIES))

    def quantity(self, name: str) -> str:
        if name == "cpu" and not self.whole and self.chance(0.1):
            return self.random.choice(_TINY)
        return self.random.choice(_QUANTITIES[name])

    def listed(self, most: int, name: Callable[[], str] | None = None) -> Json:
        names = [(name or self.name)() for _ in range(self.random.randint(0, most))]
        return {name: self.quantity(name) for name in names}

    def requirements(self) -> Json:
        limits = self.listed(2) if self.chance(0.5) else {}
        requests = self.listed(3)
        if self.chance(0.2):
            # Huge pages are never overcommitted, so the request is the limit.
            limits[_HUGE] = self.random.choice(_HUGE_QUANTITIES)
            requests |= {_HUGE: limits[_HUGE]} if self.chance(0.5) else {}
        return {"limits": limits, "requests": requests} if self.chance(0.8) else {"requests": self.listed(2)}

    def of_pod(self) -> Json:
        def name() -> str:
            return self.random.choice(_OF_A_POD)

        limits, requests = self.listed(2, name), self.listed(2, name)
        if self.chance(0.2):
            limits[_HUGE] = self.random.choice(_HUGE_QUANTITIES)
            requests |= {_HUGE: limits[_HUGE]} if self.chance(0.5) else {}
        if self.chance(0.1):
            limits["example.com/a-b_c"] = "1"
        fields = {"limits": limits, "requests": requests}
        return {key: value for key, value in fields.items() if self.chance(0.7)}

    def container(self, *, init: bool) -> Json:
        always = init and self.chance(0.4)
        return {"resources": self.requirements(), **({"restartPolicy": "Always"} if always else {})}

    def containers(self, choice: tuple[int, ...], *, init: bool) -> list[Json]:
        return [
            {"name": f"{'i' if init else 'c'}{index}", **self.container(init=init)}
            for index in range(self.random.choice(choice))
        ]

    def pod(self, name: str, phase: str = "Pending", **spec: object) -> Json:
        return {
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {
                "containers": self.containers((0, 1, 1, 2, 3), init=False),
                "initContainers": self.containers((0, 0, 1, 2, 3), init=True),
                **({"overhead": self.listed(2)} if self.chance(0.2) else {}),
                **({"resources": self.of_pod()} if self.whole and self.chance(0.7) else {}),
                **spec,
            },
            "status": {"phase": phase},
        }

    def node(self, name: str) -> Json:
        status = {
            "cpu": self.random.choice(("1", "2", "4", "1930m", "0")),
            "memory": self.random.choice(("512Mi", "1Gi", "2000M", "4Gi")),
            "pods": self.random.choice(("0", "1", "3", "110")),
            "ephemeral-storage": self.random.choice(("1Gi", "20Gi")),
            "nvidia.com/gpu": self.random.choice(("0", "1", "2", "8")),
            _HUGE: self.random.choice(("0", "4Mi", "8Mi")),
            "example.com/a-b_c": "3",
        }
        listed = {key: value for key, value in status.items() if self.chance(0.85)}
        field = "allocatable" if self.chance(0.85) else "capacity"
        return {"metadata": {"name": name}, "status": {field: listed}}
