"""Random clusters on a real control plane: what ``simulate`` says about events, and what happens after them.

``python -m tests.e2e.simulations --cases 1000`` runs many and prints each difference; the end-to-end tests run a few.
With ``--outages``, the kubelets of some nodes stop, on a control plane with the node lifecycle controller.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.builders import HOSTNAME, ZONE, Json, constraint, selector
from tests.controlplane import binaries, nodes
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import OUTAGE
from tests.e2e import own_nodes
from tests.e2e.manifests import pod_spec
from tests.e2e.own_nodes import RACK, OnOwnNodes, budget, cordon, in_namespace, workload, zone_of
from tests.e2e.spread import Program
from tests.e2e.volumes import claim_templates
from tests.e2e.workloads import pods, scheduled

_BACKOFF: Final = 45.0
"""The seconds after which the scheduler has tried a pod again, and a Job has replaced pods that it has lost."""
_DRAINED: Final = 25
"""The seconds after which the drain of a node still waits only for a budget that refuses an eviction."""
_AUTOSCALED: Final = 20.0
"""The seconds in which an autoscaler looks at the replicas (--horizontal-pod-autoscaler-sync-period)."""
_RUNS: Final = "50"
_LATE: Final = 3.0
"""The seconds by which an eviction may be late."""
_POLLED: Final = 0.2
"""The seconds between two counts of ready pods."""
_MOST: Final = 10
"""The largest number of replicas after a change of it."""
_TAINT: Final[Json] = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
_CLASSES: Final = {"high": 1000, "low": 10}
"""The priorities of pods, which never preempt."""
_MESSAGES: Final[Mapping[str, Sequence[str]]] = {
    "their constraint on": ("didn't match pod topology spread constraints",),
    "Insufficient cpu": ("Insufficient cpu",),
    "port ": ("have free ports",),
    "cordoned": ("were unschedulable", "was unschedulable"),
    "untolerated taint": ("had untolerated taint",),
    "anti-affinity": ("anti-affinity rules",),
    "its volume is in": ("didn't match PersistentVolume's node affinity",),
}
"""What the scheduler says where the simulation names a reason with these words."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """An event.

    Attributes:
        arguments: The arguments of ``simulate``.
        carry_out: Carries it out, in a namespace.
        lost: The nodes that are then gone.
        drained: Returns the nodes that it has drained.
        manifest: The input of ``simulate``.
    """

    arguments: tuple[str, ...]
    carry_out: Callable[[ControlPlane, str], object]
    lost: Sequence[str] = ()
    drained: Callable[[ControlPlane], Sequence[str]] = lambda _: ()
    manifest: Json | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """A cluster and the events on it.

    Attributes:
        seed: The number from which the case is made.
        slots: The cpu of each node.
        cordoned: The nodes that are cordoned before the events.
        tainted: Those with a taint.
        objects: The workloads and budgets, without a namespace.
        volumes: The zone of each claim.
        restarted: The workload that is rolled out before; "" for none. Its rollout may not end.
        events: The events.
    """

    seed: int
    slots: dict[str, int]
    cordoned: Sequence[str]
    tainted: Sequence[str]
    objects: Sequence[Json]
    volumes: Mapping[str, str]
    restarted: str
    events: Sequence[Event] = field(repr=False)

    @property
    def arguments(self) -> list[str]:
        """The arguments of ``simulate``."""
        return [argument for event in self.events for argument in event.arguments]

    @property
    def manifest(self) -> str | None:
        """The manifest that ``--apply`` reads from standard input."""
        return next((json.dumps(event.manifest) for event in self.events if event.manifest is not None), None)


def random_case(seed: int, *, outages: bool = False) -> Case:
    """Return the case of a seed: six to forty nodes, one to four workloads, one to three events.

    With ``outages``, nodes stop answering first.
    """
    chance = random.Random(seed)
    zones = [f"s{seed}-{letter}" for letter in "abcd"[: chance.choice([2, 3, 3, 3, 4])]]
    most = chance.choice([2, 3, 3, 4, 10])
    slots = {
        f"{zone}-{number}": chance.choice([2, 3, 4, 8])
        for zone in zones
        for number in range(max(chance.randint(1, most), 6 // len(zones)))
    }
    objects = [each for number in range(chance.randint(1, 4)) for each in _workload(chance, f"w{number}", seed)]
    workloads = [each for each in objects if each["kind"] != "PodDisruptionBudget"]
    objects += _further(random.Random(f"{seed}/further"), workloads)
    volumes = {
        f"data-{each['metadata']['name']}-{ordinal}": chance.choice(zones)
        for each in workloads
        if "volumeClaimTemplates" in each["spec"]
        for ordinal in range(_MOST)
    }
    rolled = [
        f"{each['kind'].lower()}/{each['metadata']['name']}" for each in workloads if each["kind"] != "ReplicaSet"
    ]
    kinds = ["delete", "drain", "drain", "restart", "scale", "add", "apply"]
    events, left = [*(_outage(chance, zones, slots, workloads) if outages else ())], dict(slots)
    for kind in () if outages else chance.sample(kinds, k=chance.choice([1, 1, 1, 2, 2, 3])):
        event = _event(kind, chance, zones, left, workloads)
        left = {node: cpu for node, cpu in left.items() if node not in event.lost}
        zones = [zone for zone in zones if zone in map(zone_of, left)]
        events.append(event)
    objects += _bystanders(random.Random(f"{seed}/bystanders"), seed)
    return Case(
        seed=seed,
        slots=slots,
        cordoned=[node for node in slots if chance.random() < 0.06],
        tainted=[node for node in slots if chance.random() < 0.06],
        objects=objects,
        volumes=volumes,
        restarted=chance.choice(rolled) if chance.random() < 0.3 and rolled else "",
        events=events,
    )


def _workload(chance: random.Random, name: str, seed: int) -> Iterator[Json]:
    """Yield a workload and, sometimes, its budget."""
    kind, replicas = chance.choice(["Deployment", "Deployment", "ReplicaSet", "StatefulSet"]), chance.randint(1, 8)
    amounts = {"cpu": str(chance.choice([1, 1, 1, 2])), "memory": chance.choice(["64Mi", "1Gi"])}
    spec = pod_spec(
        list(_constraints(chance, name)),
        containers=[{"name": "app", "image": "registry.example/app:1", "resources": {"requests": amounts}}],
        nodeSelector={"case": f"s{seed}"},
    )
    if chance.random() < 0.2:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if chance.random() < 0.3:
        spec["priorityClassName"] = chance.choice(list(_CLASSES))
    if chance.random() < 0.3:
        spec["affinity"] = _affinity(chance, name)
    pace: Json = chance.choice([{}, {}, {"maxSurge": 1, "maxUnavailable": 0}, {"maxSurge": 0, "maxUnavailable": 1}])
    more: Json = {}
    if kind == "Deployment":
        more = {"strategy": {"type": "RollingUpdate", "rollingUpdate": pace} if pace else {"type": "RollingUpdate"}}
    elif kind == "StatefulSet":
        more = {"serviceName": name, "podManagementPolicy": chance.choice(["Parallel", "OrderedReady"])}
        if chance.random() < 0.4:
            more["volumeClaimTemplates"] = claim_templates("data")
    yield workload(kind, name, replicas, spec, **more)
    if chance.random() < 0.3:
        limit: Json = chance.choice(
            [{"minAvailable": max(1, replicas - 1)}, {"maxUnavailable": 1}, {"minAvailable": "50%"}]
        )
        yield budget(name, limit)


def _further(chance: random.Random, workloads: Sequence[Json]) -> Iterator[Json]:
    """Change fields of workloads that decide where pods go, and yield objects that decide about them."""
    for each in workloads:
        name, kind = each["metadata"]["name"], each["kind"]
        _change(chance, each["spec"]["template"]["spec"])
        if kind == "StatefulSet" and chance.random() < 0.3:
            each["spec"]["updateStrategy"] = chance.choice([{"type": "OnDelete"}, _from(chance.randint(1, 3))])
        if kind == "Deployment" and chance.random() < 0.1:
            each["spec"]["strategy"] = {"type": "Recreate"}
        if chance.random() < 0.07:
            yield {**budget(name, {"minAvailable": 1}), "metadata": {"name": f"{name}-second"}}
        if kind == "Deployment" and chance.random() < 0.15:
            yield _autoscaler(chance, name, each["spec"]["replicas"])
    if chance.random() < 0.15:
        template = workloads[0]["spec"]["template"]["spec"]
        metadata = {"name": "bare", "labels": {"app": "bare"}}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**template, **_ALONE}}
        if chance.random() < 0.5:
            yield budget("bare", chance.choice([{"maxUnavailable": 1}, {"minAvailable": 1}]))


_ALONE: Final[Json] = {"topologySpreadConstraints": [], "affinity": {}}


def _change(chance: random.Random, spec: Json) -> None:
    """Let pods take ports of their nodes, or have data there."""
    if chance.random() < 0.1:
        spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": chance.choice([8080, 8081])}]
    elif chance.random() < 0.05:
        spec["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 8080}]
        spec["hostNetwork"] = True
    if chance.random() < 0.2:
        spec["volumes"] = [*spec.get("volumes", ()), {"name": "cache", "emptyDir": {}}]


def _from(partition: int) -> Json:
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}


def _autoscaler(chance: random.Random, name: str, replicas: int) -> Json:
    """Return an autoscaler without metrics, which keeps the replicas of a Deployment inside its bounds."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": chance.randint(1, replicas),
            "maxReplicas": chance.randint(replicas, _MOST),
        },
    }


def _bystanders(chance: random.Random, seed: int) -> Iterator[Json]:
    """Yield, sometimes, a DaemonSet and a Job, which no event is about."""
    spec = pod_spec(
        [],
        containers=[{"name": "app", "image": "registry.example/app:1", "resources": {"requests": {"cpu": "500m"}}}],
        nodeSelector={"case": f"s{seed}"},
    )
    if chance.random() < 0.3:
        daemon = workload("DaemonSet", "daemon", 0, spec)
        del daemon["spec"]["replicas"]
        yield daemon
    if chance.random() < 0.3:
        number = chance.randint(1, 4)
        constraints = list(_constraints(chance, "batch"))
        job = workload("Job", "batch", 0, {**spec, "topologySpreadConstraints": constraints, "restartPolicy": "Never"})
        del job["spec"]["replicas"], job["spec"]["selector"]
        job["spec"] |= {"parallelism": number, "completions": number, "backoffLimit": chance.choice([0, 1, 6])}
        yield {**job, "apiVersion": "batch/v1"}


def _constraints(chance: random.Random, name: str) -> Iterator[Json]:
    for key in chance.choice([[], [ZONE], [ZONE], [HOSTNAME], [ZONE, HOSTNAME], [ZONE, RACK], [ZONE, HOSTNAME, RACK]]):
        hard = chance.random() < 0.7
        yield constraint(
            key=key,
            hard=hard,
            max_skew=chance.choice([1, 1, 2]),
            selects=selector({"app": name}),
            match=chance.choice([(), (), ("pod-template-hash",)]),
            minDomains=chance.choice([2, 3]) if hard and chance.random() < 0.2 else None,
            nodeTaintsPolicy="Honor" if chance.random() < 0.3 else None,
        )


def _affinity(chance: random.Random, name: str) -> Json:
    term = {"topologyKey": chance.choice([HOSTNAME, HOSTNAME, ZONE]), "labelSelector": selector({"app": name})}
    if chance.random() < 0.5:
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    weighted = {"weight": chance.choice([1, 50, 100]), "podAffinityTerm": term}
    kind = chance.choice(["podAffinity", "podAntiAffinity"])
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}


def _event(
    kind: str, chance: random.Random, zones: Sequence[str], slots: Mapping[str, int], workloads: Sequence[Json]
) -> Event:
    workload = chance.choice(workloads)
    name = f"{workload['kind'].lower()}/{workload['metadata']['name']}"
    if kind in {"restart", "apply"} and workload["kind"] == "ReplicaSet":
        kind = "scale"
    zone = chance.choice(zones)
    whole = chance.random() < 0.5
    chosen = [node for node in slots if zone_of(node) == zone]
    if not whole:
        chosen = sorted(chance.sample(list(slots), k=min(len(slots), chance.choice([1, 2]))))
    written = f"zone={zone}" if whole else ",".join(chosen)
    match kind:
        case "delete":
            return Event(
                arguments=("--delete", written),
                carry_out=lambda cluster, _: _delete(cluster, _nodes_of(cluster, zone) if whole else chosen),
                lost=chosen,
            )
        case "drain":
            return Event(
                arguments=("--drain", written),
                carry_out=lambda cluster, _: _drain(cluster, _nodes_of(cluster, zone) if whole else chosen),
                drained=lambda cluster: _nodes_of(cluster, zone) if whole else chosen,
            )
        case "restart":
            return Event(
                arguments=("--restart", name),
                carry_out=lambda cluster, namespace: cluster.kubectl("rollout", "restart", name, "-n", namespace),
            )
        case "scale":
            replicas = chance.randint(0, _MOST)
            return Event(
                arguments=("--scale", f"{name}={replicas}"),
                carry_out=lambda cluster, namespace: cluster.kubectl(
                    "scale", name, "-n", namespace, f"--replicas={replicas}"
                ),
            )
        case "apply":
            changed = _changed(chance, workload)
            return Event(
                arguments=("--apply", "-"),
                carry_out=lambda cluster, namespace: cluster.apply(in_namespace(changed, namespace)),
                manifest=changed,
            )
    number = chance.randint(1, 2)
    model = chance.choice(list(slots))
    return Event(arguments=("--add", f"{model}:{number}"), carry_out=lambda cluster, _: _add(cluster, model, number))


def _outage(
    chance: random.Random, zones: Sequence[str], slots: Mapping[str, int], workloads: Sequence[Json]
) -> Iterator[Event]:
    """Yield the outage of a node, of a part of a zone, of a zone or of all, and up to two events after it."""
    if chance.random() < 0.1:
        every = ",".join(f"zone={zone}" for zone in zones)
        yield Event(arguments=("--lose", every), carry_out=lambda cluster, _: _lose(cluster, list(slots)))
        return
    zone = zone_of(chance.choice(list(slots)))
    of_zone = [node for node in slots if zone_of(node) == zone]
    most = math.ceil(0.55 * len(of_zone))
    number = chance.choice([1, max(1, min(len(of_zone) - 1, max(most, 3))), len(of_zone), len(of_zone)])
    chosen = sorted(chance.sample(of_zone, k=number))
    written = f"zone={zone}" if number == len(of_zone) else ",".join(chosen)
    yield Event(arguments=("--lose", written), carry_out=lambda cluster, _: _lose(cluster, chosen))
    left = {node: cpu for node, cpu in slots.items() if node not in chosen}
    for kind in chance.sample(["delete", "restart", "scale", "drain", "apply"], k=chance.choice([0, 0, 1, 1, 2])):
        if kind == "delete":
            yield Event(arguments=("--delete", written), carry_out=lambda cluster, _: _delete(cluster, chosen))
        elif left:
            yield _event(kind, chance, [*dict.fromkeys(map(zone_of, left))], left, workloads)


def _lose(cluster: ControlPlane, chosen: Sequence[str]) -> None:
    """Stop the kubelets of nodes, and wait until the last pod was evicted, if any is."""
    cluster.kubelet.silent |= {*chosen}

    def unknown() -> bool:
        stored = [cluster.api.get(f"/api/v1/nodes/{name}") for name in chosen]
        return all(
            condition["status"] == "Unknown"
            for node in stored
            for condition in node["status"]["conditions"]
            if condition["type"] == "Ready"
        )

    cluster.wait_for(unknown, OUTAGE.grace * 4, "the nodes are NotReady")
    most = max(Counter(map(zone_of, chosen)).values())
    time.sleep(most * OUTAGE.eviction + OUTAGE.toleration + _LATE)


def _changed(chance: random.Random, stored: Json) -> Json:
    """Return a workload with another template and, sometimes, another number of replicas."""
    changed = deepcopy(stored)
    spec, template = changed["spec"], changed["spec"]["template"]
    spec["replicas"] = max(1, spec["replicas"] + chance.choice([0, 0, 0, -2, 2]))
    template["metadata"]["labels"]["version"] = "2"
    for each in template["spec"]["topologySpreadConstraints"]:
        if chance.random() < 0.3:
            each["maxSkew"] = chance.choice([1, 2])
    if chance.random() < 0.3:
        template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = chance.choice(["1", "2"])
    further = random.Random(chance.random())
    if further.random() < 0.2:
        template["spec"].pop("tolerations", None)
    if further.random() < 0.2:
        template["spec"]["priorityClassName"] = further.choice(list(_CLASSES))
    if further.random() < 0.05:
        template["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
    return changed


def _nodes_of(cluster: ControlPlane, zone: str) -> list[str]:
    """Return the nodes that a zone has now, with those that an event before has added."""
    stored = cluster.api.get(f"/api/v1/nodes?labelSelector={quote(ZONE)}%3D{zone}")["items"]
    return [node["metadata"]["name"] for node in stored]


def _delete(cluster: ControlPlane, chosen: Sequence[str]) -> None:
    # Else the scheduler may bind a pod to a node that is about to be lost, while nodes are lost one after the other.
    for name in chosen:
        cordon(cluster, name)
    for name in chosen:
        cluster.api.request("DELETE", f"/api/v1/nodes/{name}")
    for pod in cluster.api.get("/api/v1/pods")["items"]:
        if pod["spec"].get("nodeName") in chosen:
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            cluster.api.request("DELETE", f"{path}?gracePeriodSeconds=0")


def _drain(cluster: ControlPlane, chosen: Sequence[str]) -> None:
    for name in chosen:
        cordon(cluster, name)
    flags = ["--ignore-daemonsets", "--force", "--delete-emptydir-data", f"--timeout={_DRAINED}s"]
    command = [str(binaries.kubectl()), "drain", *chosen, *flags]
    subprocess.run(command, check=False, capture_output=True, env=cluster.environment())


def _add(cluster: ControlPlane, model: str, number: int) -> None:
    stored = cluster.api.get(f"/api/v1/nodes/{model}")
    taints = [taint for taint in stored["spec"].get("taints", []) if taint["key"] == _TAINT["key"]]
    added = []
    for each in range(number):
        labels = {key: stored["metadata"]["labels"][key] for key in ("case", RACK)}
        node = nodes.node(f"{model}-{each}", stored["metadata"]["labels"][ZONE], labels)
        added.append({**node, "status": {**node["status"], "allocatable": stored["status"]["allocatable"]}})
    nodes.add(cluster.api, added, taints)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What happened differently than simulated.

    Attributes:
        case: The case.
        about: The workload, and what was said and seen.
        certain: Whether one number was said.
        capture: The objects before the events.
    """

    case: Case
    about: str
    certain: bool
    capture: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Played:
    """A case that was played: its workloads, those with one number, and what differs."""

    workloads: int
    certain: int
    pending: int
    differences: list[Difference]


class Play(OnOwnNodes):
    """One case on a real cluster."""

    def __init__(self, cluster: ControlPlane, spread: Program, case: Case, namespace: str) -> None:
        """Take a case."""
        super().__init__(cluster, spread, namespace, f"s{case.seed}")
        self._case = case

    def play(self) -> Played:
        """Make the situation, simulate the events, carry them out and compare."""
        self._prepare()
        capture = self._capture()
        arguments = [*self._case.arguments, "-n", self.namespace, "--runs", _RUNS, "-o", "json"]
        report = self.spread("simulate", *arguments, input=self._case.manifest).report
        with self._watched() as fewest:
            left = 0
            for event in self._case.events:
                event.carry_out(self.cluster, self.namespace)
                if self._is_autoscaled(event):
                    time.sleep(_AUTOSCALED)
                self.settle()
                left += self._left_on(event.drained(self.cluster))
            with suppress(TimeoutError):
                self.cluster.wait_for(
                    lambda: not any(map(self._outside, report["workloads"])), _BACKOFF, "the numbers said"
                )
        differences = [
            Difference(case=self._case, about=text, certain=certain, capture=capture)
            for row in report["workloads"]
            for text, certain in (*self._differences(row), *_fewer(row, fewest))
        ]
        span = report["summary"]["refused"]
        if not _is_in(left, span):
            text = f"refused evictions: {span} said, {left} seen"
            certain = span["min"] == span["max"]
            differences.append(Difference(case=self._case, about=text, certain=certain, capture=capture))
        ranges = [row["after"]["pending"] for row in report["workloads"]]
        return Played(
            workloads=len(ranges),
            certain=sum(pending["min"] == pending["max"] for pending in ranges),
            pending=sum(pending["max"] > 0 for pending in ranges),
            differences=differences,
        )

    @contextmanager
    def _watched(self) -> Iterator[dict[str, int]]:
        """Note the fewest ready pods of each workload while the events happen."""
        fewest: dict[str, int] = {}
        stopping = threading.Event()

        def watch() -> None:
            while not stopping.wait(_POLLED):
                ready: dict[str, int] = dict.fromkeys(fewest, 0)
                for pod in pods(self.cluster, self.namespace):
                    ready.setdefault(pod["metadata"]["labels"]["app"], 0)
                    ready[pod["metadata"]["labels"]["app"]] += _is_ready(pod)
                fewest.update({name: min(number, fewest.get(name, number)) for name, number in ready.items()})

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield fewest
        finally:
            stopping.set()
            thread.join()

    def _prepare(self) -> None:
        case = self._case
        self.add({name: cpu for name, cpu in case.slots.items() if name not in case.tainted})
        self.add({name: case.slots[name] for name in case.tainted}, [_TAINT])
        for name in case.cordoned:
            cordon(self.cluster, name)
        self.claim(case.volumes)
        self.apply(case.objects)
        if case.restarted:
            self.cluster.kubectl("rollout", "restart", case.restarted, "-n", self.namespace)
            self.settle()

    def _capture(self) -> str:
        kinds = "nodes,pods,deploy,rs,sts,ds,jobs,pdb,pvc,pv,hpa,priorityclasses"
        return self.cluster.kubectl("get", kinds, "-n", self.namespace, "-o", "json").stdout

    def _is_autoscaled(self, event: Event) -> bool:
        """Tell whether an autoscaler may change the replicas after an event."""
        kinds = {each["kind"] for each in self._case.objects}
        return "HorizontalPodAutoscaler" in kinds and event.arguments[0] in ("--scale", "--apply")

    def _left_on(self, drained: Sequence[str]) -> int:
        """Return the number of pods that a drain has left, without those that it waits for or that belong to nodes."""
        return sum(
            pod["spec"].get("nodeName") in drained
            and "deletionTimestamp" not in pod["metadata"]
            and not any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", ()))
            for pod in pods(self.cluster, self.namespace)
        )

    def clean(self) -> None:
        """Delete what it made; nodes of the same names may answer again."""
        super().clean()
        self.cluster.kubelet.silent -= {*self._case.slots}

    def _of(self, row: Json) -> tuple[list[Json], list[Json]]:
        """Return the pods of a workload, and apart those on nodes that do not answer, which nothing replaces.

        Only the controllers of some kinds replace pods that are Terminating.
        """
        name, silent = row["workload"]["name"], self.cluster.kubelet.silent
        own = [pod for pod in pods(self.cluster, self.namespace) if pod["metadata"]["labels"]["app"] == name]
        lost = [pod for pod in own if pod["spec"].get("nodeName") in silent]
        if row["workload"]["kind"] not in {"StatefulSet", "DaemonSet", "Pod"}:
            lost = [pod for pod in lost if "deletionTimestamp" not in pod["metadata"]]
        return [pod for pod in own if pod["spec"].get("nodeName") not in silent], lost

    def _outside(self, row: Json) -> bool:
        (own, lost), after = self._of(row), row["after"]
        pending = len(_pending(own))
        numbers = {"pending": pending, "running": len(own) - pending, "notReplaced": len(lost)}
        return not all(_is_in(number, after[name]) for name, number in numbers.items())

    def _differences(self, row: Json) -> Iterator[tuple[str, bool]]:
        """Yield what differs in a workload, and whether that was said as one number."""
        span, name = row["after"]["pending"], row["workload"]["name"]
        own, lost = self._of(row)
        pending = _pending(own)
        if not _is_in(len(pending), span):
            yield f"{name} pending: {span} said, {len(pending)} seen", span["min"] == span["max"]
            return
        span, running = row["after"]["running"], len(own) - len(pending)
        if not _is_in(running, span):
            yield f"{name} running: {span} said, {running} seen", span["min"] == span["max"]
        span = row["after"]["notReplaced"]
        if not _is_in(len(lost), span):
            yield f"{name} not replaced: {span} said, {len(lost)} seen", span["min"] == span["max"]
        if not pending:
            return
        messages = [scheduled(pod).get("message", "") for pod in pending]
        unseen = [reason for reason in row["reasons"] if not _is_seen(reason["text"], messages)]
        # A reason of some runs may be that of no pod, but one reason must be seen.
        for reason in unseen:
            if reason["pods"]["min"] > 0 or unseen == row["reasons"]:
                yield f"{name}: {reason['text']!r} said, {messages} seen", reason["pods"]["min"] > 0


def _fewer(row: Json, fewest: Mapping[str, int]) -> Iterator[tuple[str, bool]]:
    """Yield that fewer pods of a workload were ready at some moment than was said."""
    span, name = row["least"], row["workload"]["name"]
    if row["before"]["ready"] and fewest.get(name, 0) < span["min"]:
        yield f"{name} at once: {span} said, {fewest.get(name, 0)} seen", span["min"] == span["max"]


def _is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", ())
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def _is_in(number: int, span: Mapping[str, int]) -> bool:
    return span["min"] <= number <= span["max"]


def _is_seen(reason: str, messages: Sequence[str]) -> bool:
    """Tell whether the scheduler says what a reason names first; True where its words are in no message."""
    named = [words for words in _MESSAGES if words in reason]
    if not named:
        return True
    return any(each in message for message in messages for each in _MESSAGES[min(named, key=reason.index)])


def _pending(own: Sequence[Json]) -> list[Json]:
    return [pod for pod in own if "nodeName" not in pod["spec"]]


def play(cluster: ControlPlane, spread: Program, seeds: Sequence[int], *, outages: bool = False) -> list[Played]:
    """Play the cases of some seeds, several at the same time, on a cluster without nodes."""
    if outages:
        # While no node of the cluster is ready, no pod is evicted.
        nodes.add(cluster.api, [nodes.node("answers", "elsewhere", {"case": "none"})], [])
        cordon(cluster, "answers")
    for name, value in _CLASSES.items():
        cluster.apply(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "preemptionPolicy": "Never",
            }
        )
    return own_nodes.play(
        cluster, seeds, lambda seed, namespace: Play(cluster, spread, random_case(seed, outages=outages), namespace)
    )


def main() -> int:
    """Play as many cases as asked for, and print each difference."""
    parser = own_nodes.arguments(__doc__)
    parser.add_argument("--keep", type=Path, help="a directory for the objects before the events of these cases")
    parser.add_argument("--outages", action="store_true", help="let nodes stop answering")
    options = parser.parse_args()
    with own_nodes.empty_cluster(outages=options.outages) as (cluster, spread):
        seeds = range(options.first, options.first + options.cases)
        played = play(cluster, spread, seeds, outages=options.outages)
    differences = [difference for each in played for difference in each.differences]
    for difference in differences:
        print(f"case {difference.case.seed} {' '.join(difference.case.arguments)}: {difference.about}")
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            path = options.keep / f"{difference.case.seed}.json"
            path.write_text(json.dumps(json.loads(difference.capture)), encoding="utf-8")
    workloads, certain = sum(each.workloads for each in played), sum(each.certain for each in played)
    pending = sum(each.pending for each in played)
    print(f"{len(played)} of {options.cases} cases, {workloads} workloads, {pending} of them with pending pods")
    print(f"{certain} workloads with one number: {sum(each.certain for each in differences)} differ")
    print(f"{workloads - certain} with a range: {sum(not each.certain for each in differences)} differ")
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main())
