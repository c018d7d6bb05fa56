"""Random workloads on a real control plane: what ``recommend`` promises, and what its patch and an event leave.

``python -m tests.e2e.recommendations --cases 100`` runs many and prints each difference.
"""

from __future__ import annotations

import random
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.builders import HOSTNAME, ZONE, Json, constraint, selector
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.e2e import own_nodes
from tests.e2e.manifests import pod_spec
from tests.e2e.own_nodes import OnOwnNodes, budget, cordon, workload, zone_of
from tests.e2e.shell import paste
from tests.e2e.spread import Program
from tests.e2e.workloads import pods

_NAME: Final = "web"
_DRAINED: Final = 45.0
"""The seconds after which a drain still waits only for a budget that refuses an eviction."""
_BACKOFF: Final = 45.0
"""The seconds after which the scheduler has tried a pod again."""
EVENTS: Final = {
    "lose any zone": "delete",
    "drain any zone": "drain",
    "drain any node": "drain node",
    "restart, zone closed": "closed",
}
"""Maps the events of the report to what carries them out; the nodes of a lost zone are deleted."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A workload.

    Attributes:
        seed: The number from which the case is made.
        slots: The cpu of each node.
        kind: The kind of the workload.
        objects: The workload and, sometimes, its budget.
        event: The event that is carried out, as in the report.
    """

    seed: int
    slots: dict[str, int]
    kind: str
    objects: Sequence[Json] = field(repr=False)
    event: str


def random_case(seed: int) -> Case:
    """Return the case of a seed: three zones, six to nine nodes, two to eight replicas."""
    chance = random.Random(f"recommend/{seed}")
    zones = [f"s{seed}-{letter}" for letter in "abc"]
    slots = {f"{zone}-{number}": chance.choice([3, 4, 8]) for zone in zones for number in range(chance.randint(2, 3))}
    kind, replicas = chance.choice(["Deployment", "Deployment", "Deployment", "StatefulSet"]), chance.randint(2, 8)
    constraints = [
        constraint(
            key=key,
            hard=chance.random() < 0.7,
            max_skew=chance.choice([1, 1, 2]),
            selects=selector({"app": _NAME}),
            match=chance.choice([(), ("pod-template-hash",)]) if kind == "Deployment" else (),
        )
        for key in chance.choice([[], [ZONE], [ZONE], [HOSTNAME], [ZONE, HOSTNAME]])
    ]
    spec = pod_spec(
        constraints,
        containers=[{"name": "app", "image": "registry.example/app:1", "resources": {"requests": {"cpu": "1"}}}],
        nodeSelector={"case": f"s{seed}"},
    )
    pace: Json = chance.choice([{}, {"maxSurge": 1, "maxUnavailable": 0}])
    more: Json = {"serviceName": _NAME}
    if kind == "Deployment":
        more = {"strategy": {"type": "RollingUpdate", **({"rollingUpdate": pace} if pace else {})}}
    objects = [workload(kind, _NAME, replicas, spec, **more)]
    if chance.random() < 0.4:
        objects.append(budget(_NAME, chance.choice([{"maxUnavailable": 1}, {"minAvailable": replicas}])))
    return Case(seed=seed, slots=slots, kind=kind, objects=objects, event=chance.choice([*EVENTS]))


@dataclass(frozen=True, kw_only=True)
class Played:
    """A case that was played: whether something was changed, whether the event was promised, and what differs."""

    case: Case
    changed: bool
    promised: bool
    differences: list[str]


class Play(OnOwnNodes):
    """One case on a real cluster."""

    def __init__(self, cluster: ControlPlane, spread: Program, case: Case, namespace: str) -> None:
        """Take a case."""
        super().__init__(cluster, spread, namespace, f"s{case.seed}")
        self._case = case
        self._target = f"{case.kind.lower()}/{_NAME}"

    def play(self) -> Played:
        """Make the workload, ask, patch, carry the event out and compare."""
        case = self._case
        self.add(case.slots)
        self.apply(case.objects)
        report = self.spread("recommend", self._target, "-n", self.namespace, "--runs", "10", "-o", "json").report
        commands: list[str] = report.document.get("change", {}).get("commands", [])
        with TemporaryDirectory() as directory:
            for command in commands:
                done = paste(command, Path(directory), self.cluster.environment())
                if done.returncode:
                    return Played(case=case, changed=True, promised=False, differences=[f"{command}: {done.stderr}"])
        self._settle_with_backoff(0)
        (event,) = [each for each in report["events"] if each["event"] == case.event]
        promise = event["patched"] if "patched" in event else event["now"]
        differences = [*self._differences_before(report["events"])]
        self._carry_out(EVENTS[case.event])
        self._settle_with_backoff(promise["pending"])
        if self._pending() > promise["pending"]:
            differences.append(f"{case.event}: {promise['pending']} pending said, {self._pending()} seen")
        return Played(case=case, changed=bool(commands), promised=promise["survived"], differences=differences)

    def _differences_before(self, events: Sequence[Json]) -> Iterator[str]:
        """Yield where more pods would be lost at once than promised: they are in one zone, or on one node."""
        places = [pod["spec"]["nodeName"] for pod in pods(self.cluster, self.namespace) if "nodeName" in pod["spec"]]
        for text, counts in (("lose any zone", Counter(map(zone_of, places))), ("lose any node", Counter(places))):
            (event,) = [event for event in events if event["event"] == text]
            promise = event["patched"] if "patched" in event else event["now"]
            left = len(places) - max(counts.values(), default=0)
            if left < promise["least"]:
                yield f"{text}: {promise['least']} at once said, {left} seen"

    def _carry_out(self, event: str) -> None:
        places = Counter(
            pod["spec"]["nodeName"] for pod in pods(self.cluster, self.namespace) if "nodeName" in pod["spec"]
        )
        zone = random.Random(self._case.seed).choice(sorted({*map(zone_of, self._case.slots)}))
        nodes = [node for node in self._case.slots if zone_of(node) == zone]
        match event:
            case "drain":
                self._drain(nodes)
            case "drain node":
                self._drain([name for name, _ in places.most_common(1)])
            case "closed":
                for name in nodes:
                    cordon(self.cluster, name)
                self.cluster.kubectl("rollout", "restart", self._target, "-n", self.namespace)
            case _:
                self._delete(nodes)

    def _settle_with_backoff(self, pending: int) -> None:
        """Wait until nothing changes, and for pods that the scheduler tries again; so many may stay pending."""
        self.settle()
        with suppress(TimeoutError):
            self.cluster.wait_for(lambda: self._pending() <= pending, _BACKOFF, "no further pod waits")

    def _drain(self, nodes: Sequence[str]) -> None:
        for name in nodes:
            cordon(self.cluster, name)
        command = [str(binaries.kubectl()), "drain", *nodes, "--ignore-daemonsets", "--force"]
        with suppress(subprocess.TimeoutExpired):
            # A refused eviction is tried again and again.
            subprocess.run(command, check=False, capture_output=True, env=self.cluster.environment(), timeout=_DRAINED)

    def _delete(self, nodes: Sequence[str]) -> None:
        for name in nodes:
            cordon(self.cluster, name)
        for name in nodes:
            self.cluster.api.request("DELETE", f"/api/v1/nodes/{name}")
        for pod in pods(self.cluster, self.namespace):
            if pod["spec"].get("nodeName") in nodes:
                path = f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}"
                self.cluster.api.request("DELETE", f"{path}?gracePeriodSeconds=0")

    def _pending(self) -> int:
        return sum("nodeName" not in pod["spec"] for pod in pods(self.cluster, self.namespace))


def play(cluster: ControlPlane, spread: Program, seeds: Sequence[int]) -> list[Played]:
    """Play the cases of some seeds, several at the same time, on a cluster without nodes."""
    return own_nodes.play(cluster, seeds, lambda seed, namespace: Play(cluster, spread, random_case(seed), namespace))


def main() -> int:
    """Play as many cases as asked for, and print each difference."""
    options = own_nodes.arguments(__doc__).parse_args()
    with own_nodes.empty_cluster() as (cluster, spread):
        played = play(cluster, spread, range(options.first, options.first + options.cases))
    for each in played:
        for difference in each.differences:
            print(f"case {each.case.seed} {shlex.quote(each.case.event)}: {difference}")
    changed, promised = sum(each.changed for each in played), sum(each.promised for each in played)
    print(f"{len(played)} of {options.cases} cases, {changed} changed, {promised} of the events promised")
    differ = sum(bool(each.differences) for each in played)
    print(f"{differ} differ")
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
