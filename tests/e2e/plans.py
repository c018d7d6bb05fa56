"""Random imbalances on a real control plane: what ``plan`` says about them, and what its script does.

``python -m tests.e2e.plans --cases 300`` runs many and prints each difference; the end-to-end tests run a few.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.builders import HOSTNAME, ZONE, Json, constraint, selector
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.e2e import own_nodes
from tests.e2e.manifests import pod_spec
from tests.e2e.own_nodes import RACK, OnOwnNodes, budget, workload, zone_of
from tests.e2e.spread import Program, Report
from tests.e2e.volumes import claim_templates
from tests.e2e.workloads import pods

_REVISION: Final = "rev"
_COST: Final = "controller.kubernetes.io/pod-deletion-cost"


@dataclass(frozen=True, kw_only=True)
class Case:
    """An imbalance.

    Attributes:
        seed: The number from which the case is made.
        slots: The cpu of each node; those of the last zone come after the pods.
        late: The nodes of that zone.
        objects: The workloads and budgets, without a namespace.
        scaled: The number of pods that each workload keeps of those in its first zones.
        volumes: The zone of each claim.
        relabelled: The workloads of which a pod gets another value of a label that matchLabelKeys names.
        arguments: The options of ``plan``.
    """

    seed: int | str
    slots: dict[str, int]
    late: Sequence[str]
    objects: Sequence[Json] = field(repr=False)
    scaled: dict[str, int]
    volumes: dict[str, str] = field(default_factory=dict)
    relabelled: Sequence[str] = ()
    arguments: Sequence[str] = ()


def random_case(seed: int) -> Case:
    """Return the case of a seed: three or four zones, one of them late, one to four workloads."""
    chance = random.Random(seed)
    zones = [f"p{seed}-{letter}" for letter in "abcd"[: chance.choice([3, 3, 4])]]
    slots = {f"{zone}-{number}": chance.choice([3, 4, 8]) for zone in zones for number in range(chance.randint(1, 3))}
    names = [f"w{number}" for number in range(chance.randint(1, 4))]
    objects = [each for name in names for each in _workload(chance, name, seed)]
    arguments = [*_softened(chance, objects)] if chance.random() < 0.3 else []
    if chance.random() < 0.3:
        arguments += ["--max-per-workload", str(chance.randint(2, 3))]
    return Case(
        seed=seed,
        slots=slots,
        late=[node for node in slots if zone_of(node) == zones[-1]],
        objects=objects,
        scaled={name: chance.randint(2, 4) for name in names if chance.random() < 0.5},
        volumes={
            f"data-{each['metadata']['name']}-{ordinal}": chance.choice(zones[:-1])
            for each in objects
            if "volumeClaimTemplates" in each["spec"]
            for ordinal in range(each["spec"]["replicas"])
        },
        relabelled=[name for name in names if chance.random() < 0.2],
        arguments=arguments,
    )


def _softened(chance: random.Random, objects: Sequence[Json]) -> Iterator[str]:
    """Make some constraints soft; yield the option that corrects them."""
    for each in objects:
        for stored in each["spec"].get("template", {}).get("spec", {}).get("topologySpreadConstraints", ()):
            if chance.random() < 0.5:
                stored["whenUnsatisfiable"] = "ScheduleAnyway"
    yield "--soft"


def _workload(chance: random.Random, name: str, seed: int) -> Iterator[Json]:
    kind, replicas = chance.choice(["Deployment", "Deployment", "StatefulSet"]), chance.randint(2, 6)
    match = chance.choice([(), (), (_REVISION,)])
    constraints = [
        constraint(key=key, max_skew=chance.choice([1, 1, 2]), selects=selector({"app": name}), match=match)
        for key in chance.choice([[ZONE], [ZONE], [ZONE, HOSTNAME], [ZONE, RACK]])
    ]
    spec = pod_spec(
        constraints,
        containers=[{"name": "app", "image": "registry.example/app:1", "resources": {"requests": {"cpu": "1"}}}],
        nodeSelector={"case": f"p{seed}"},
    )
    if chance.random() < 0.2:
        term = {"topologyKey": HOSTNAME, "labelSelector": selector({"app": name})}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    more: Json = {}
    if kind == "StatefulSet":
        more = {
            "serviceName": name,
            **({"volumeClaimTemplates": claim_templates("data")} if chance.random() < 0.3 else {}),
        }
    made = workload(kind, name, replicas, spec, **more)
    made["spec"]["template"]["metadata"]["labels"][_REVISION] = "r1"
    yield made
    if chance.random() < 0.4:
        limit: Json = chance.choice([{"maxUnavailable": 1}, {"minAvailable": 1}, {"minAvailable": "50%"}])
        yield budget(name, limit)


@dataclass(frozen=True, kw_only=True)
class Played:
    """A case that was played: its evictions and waves, the workloads that stay uneven, and each difference."""

    seed: int | str
    evictions: int
    waves: int
    left: int
    differences: list[str]


class PlanPlay(OnOwnNodes):
    """One case on a real cluster."""

    def __init__(self, cluster: ControlPlane, spread: Program, case: Case, namespace: str) -> None:
        """Take a case, which ``prepare`` makes."""
        super().__init__(cluster, spread, namespace, f"p{case.seed}")
        self.case = case

    def prepare(self) -> None:
        """Make the imbalance: pods in the first zones, fewer of them, and then a further zone."""
        late, slots = self.case.late, self.case.slots
        self.add({node: cpu for node, cpu in slots.items() if node not in late})
        self.claim(self.case.volumes)
        self.apply(self.case.objects)
        for each in self.case.objects:
            name = each["metadata"]["name"]
            if each["kind"] == "Deployment" and name in self.case.scaled:
                self._scale_down(name, min(self.case.scaled[name], each["spec"]["replicas"]))
        self.settle()
        self.add({node: slots[node] for node in late})
        self.settle()
        for name in self.case.relabelled:
            # Of a pending pod the change would make the scheduler try again, some time while the plan is made.
            running = [pod for pod in self._of(name) if "nodeName" in pod["spec"]]
            pod = max(running, key=lambda pod: str(pod["metadata"]["uid"]))
            self._patch(pod, {"labels": {_REVISION: "r2"}})

    def plan(self) -> Report:
        """Return the plan."""
        return self.spread("plan", "-n", self.namespace, *self.case.arguments, "-o", "json").report

    def script(self) -> str:
        """Return the script of the plan, with short times."""
        text = self.spread("plan", "-n", self.namespace, *self.case.arguments, "-o", "script").stdout
        return text.replace("refused_for=60", "refused_for=4").replace("arrives_in=300", "arrives_in=20")

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script to its end."""
        return subprocess.run(
            ["sh"], input=script, check=False, capture_output=True, text=True, env=self.environment, timeout=300
        )

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which scripts find kubectl and the cluster."""
        environment = self.cluster.environment()
        return {**environment, "PATH": f"{binaries.kubectl().parent}{os.pathsep}{environment['PATH']}"}

    def uids(self) -> dict[str, str]:
        """Map the UID of each pod to its name."""
        return {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in pods(self.cluster, self.namespace)}

    def play(self) -> Played:
        """Make the imbalance and correct it."""
        self.prepare()
        return self.correct()

    def correct(self) -> Played:
        """Plan, run the script, and compare the end with the plan."""
        before, report, script = self.uids(), self.plan(), self.script()
        done = self.run(script)
        self.settle()
        steps = [step for wave in report["waves"] for step in wave["evictions"]]
        differences = []
        if done.returncode:
            differences.append(f"the script ended with {done.returncode}: {done.stderr.strip()}")
        gone = before.keys() - self.uids().keys()
        if gone != {step["uid"] for step in steps}:
            differences.append(f"evicted {sorted(before[uid] for uid in gone)}, planned {[s['pod'] for s in steps]}")
        again = self.plan()
        if again["waves"]:
            differences.append(f"a second plan has {again['waves']}")
        left = [sorted(each["workload"]["name"] for each in every["notCorrectable"]) for every in (report, again)]
        if left[0] != left[1]:
            differences.append(f"{left[0]} were not correctable, these are: {again['notCorrectable']}")
        return Played(
            seed=self.case.seed,
            evictions=len(steps),
            waves=len(report["waves"]),
            left=len(left[0]),
            differences=differences,
        )

    def _of(self, name: str) -> list[Json]:
        return [pod for pod in pods(self.cluster, self.namespace) if pod["metadata"]["labels"]["app"] == name]

    def _patch(self, pod: Json, metadata: Json) -> None:
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}"
        self.cluster.api.patch(path, {"metadata": metadata})

    def _scale_down(self, name: str, replicas: int) -> None:
        """Leave pods in as few zones as possible."""
        own = sorted(self._of(name), key=lambda pod: str(pod["spec"].get("nodeName", "")), reverse=True)
        for cost, pod in enumerate(own):
            self._patch(pod, {"annotations": {_COST: str(cost)}})
        self.cluster.kubectl("scale", f"deployment/{name}", "-n", self.namespace, f"--replicas={replicas}")


def play(cluster: ControlPlane, spread: Program, seeds: Sequence[int]) -> list[Played]:
    """Play the cases of some seeds, several at the same time, on a cluster without nodes."""
    return own_nodes.play(
        cluster, seeds, lambda seed, namespace: PlanPlay(cluster, spread, random_case(seed), namespace)
    )


def main() -> int:
    """Play as many cases as asked for, and print each difference."""
    options = own_nodes.arguments(__doc__).parse_args()
    with own_nodes.empty_cluster() as (cluster, spread):
        played = play(cluster, spread, range(options.first, options.first + options.cases))
    for each in played:
        for difference in each.differences:
            print(f"case {each.seed}: {difference}")
    print(f"{len(played)} of {options.cases} cases, {sum(each.evictions for each in played)} evictions")
    print(f"{sum(each.waves for each in played)} waves, {sum(each.left for each in played)} workloads stay uneven")
    differing = sum(bool(each.differences) for each in played)
    print(f"{differing} cases differ")
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
