"""Comparison: does kube-scheduler carry out plans as printed, and does no other eviction help where a plan ends?

A plan is carried out wave by wave. Where it leaves skews above maxSkew, all sets of up to three evictions of different
workloads are tried that budgets allow together. A set helps if, however often kube-scheduler places the replacements,
none of them stays pending, no skew grows, and one pod of the set leaves a domain that is too full, so that the skew
falls and the replacement cannot return. The others make room on the node to which the replacement goes: that a pod
makes room for one that makes room is out of reach of a plan (docs/plan.md).
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice, permutations
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from kubectl_spread.engine.planner import PlannedStep
from kubectl_spread.kube.api.objects import ObjectRef
from tests.builders import Json
from tests.conformance.compare import PARTS, Disagreement, Tally
from tests.conformance.oracles import Process
from tests.conformance.placements.oracles import oracle
from tests.plan import small

KIND: Final = "plans"
AS_PRINTED, NOT_CORRECTABLE = PARTS[KIND]

_AGAIN: Final = 12
"""How often a set that helped is tried again, in each order of its pods in turn.

The nodes are in another order each time, because Kubernetes 1.37 takes the first of the best nodes, and 1.34 any.
"""
_MOST_PLANS: Final = 20

_Tried = Mapping[str, Json]
"""Maps evicted pods to the scheduler's last steps for their replacements."""


def run(seed: int, indices: range) -> Tally:
    """Ask the cases with these numbers."""
    total = Tally()
    with oracle() as process, tempfile.TemporaryDirectory() as scratch:
        for index in indices:
            case = _Case(process, small.cluster_of(f"{KIND}/{seed}/{index}", varied=index % 2 == 1), Path(scratch))
            total.cases += 1
            total.count(case.disagreements())
    return total


class _Case:
    """A cluster whose plans kube-scheduler carries out."""

    def __init__(self, process: Process, objects: list[Json], scratch: Path) -> None:
        self._process, self._objects, self._scratch = process, objects, scratch
        self._number = 0
        self._chance = Random(0)

    def disagreements(self) -> Iterator[Disagreement]:
        for _ in range(_MOST_PLANS):
            plan = small.made(self._objects, self._scratch).plan()
            if not plan.waves:
                yield from self._not_correctable(plan.left)
                return
            for wave in plan.waves:
                yield from self._as_printed(wave)
        raise RuntimeError("plans do not end")

    def _as_printed(self, wave: Sequence[PlannedStep]) -> Iterator[Disagreement]:
        """Let a wave happen, and yield the difference if a replacement is where the plan does not expect it."""
        (tried,) = self._ask([tuple(step.record.name for step in wave)])
        expected = {step.record.name: (step.topology_key, list(step.to)) for step in wave}
        domains = {name: self._domain(step["node"], expected[name][0]) for name, step in tried.items()}
        if any(domains[name] not in to for name, (_, to) in expected.items()):
            real: Json = {"domains": domains, "steps": [*tried.values()]}
            yield Disagreement(AS_PRINTED, self._question(tuple(tried)), real, {"domains": expected})
        pods = [each for each in self._pods() if each["metadata"]["name"] not in tried]
        pods += [_on(self._replacement(name), step["node"]) for name, step in tried.items()]
        self._objects = [*(each for each in self._objects if each["kind"] != "Pod"), *pods]

    def _not_correctable(self, left: Mapping[ObjectRef, Sequence[str]]) -> Iterator[Disagreement]:
        sets = [each for each in self._sets() if self._allowed(each)] if left else []
        helpful = {names: tried for names, tried in zip(sets, self._ask(sets), strict=True) if self._helps(tried)}
        for names, tried in helpful.items():
            orders = [*islice(cycle(permutations(names)), _AGAIN)]
            if all(self._helps(again) for again in self._ask(orders)):
                reasons = {str(ref): list(texts) for ref, texts in left.items()}
                yield Disagreement(NOT_CORRECTABLE, self._question(names), {"steps": [*tried.values()]}, reasons)
                return

    def _sets(self) -> Iterator[tuple[str, ...]]:
        """Yield sets of pods, each once of those whose pods are alike."""
        pods = {each["metadata"]["name"]: each for each in self._pods()}
        alike = {name: (_app(pod), pod["spec"]["nodeName"], _claims(pod)) for name, pod in pods.items()}
        seen = set()
        for names in small.sets({name: _app(pod) for name, pod in pods.items()}):
            key = tuple(alike[name] for name in names)
            if key not in seen:
                seen.add(key)
                yield names

    def _allowed(self, names: Sequence[str]) -> bool:
        """Tell whether budgets allow evictions of one pod of each workload; all pods are ready."""
        apps = {_app(pod) for pod in self._pods() if pod["metadata"]["name"] in names}
        budgets = [each for each in self._objects if each["kind"] == "PodDisruptionBudget"]
        return not any(each["metadata"]["name"] in apps and "minAvailable" in each["spec"] for each in budgets)

    def _helps(self, tried: _Tried) -> bool:
        if any(not step["node"] for step in tried.values()):
            return False
        pods = {each["metadata"]["name"]: each for each in self._pods()}
        on = {name: (_app(pod), pod["spec"]["nodeName"]) for name, pod in pods.items()}
        before = small.skews(self._objects, on.values())
        moved = {name: (on[name][0], step["node"]) for name, step in tried.items()}
        after = small.skews(self._objects, {**on, **moved}.values())
        falls = {each: sum(after[each].values()) - sum(values.values()) for each, values in before.items()}
        return all(change <= 0 for change in falls.values()) and any(
            app == on[name][0]
            and self._leaves(tried[name], on[name][1], key, before[app, key])
            and all(on[other][1] == moved[name][1] for other in tried if other != name)
            for (app, key), change in falls.items()
            for name in tried
            if change < 0
        )

    def _leaves(self, step: Json, node: str, key: str, uneven: Mapping[str, int]) -> bool:
        """Tell whether a pod was in a domain that is too full, and its replacement cannot be there."""
        domain = self._domain(node, key)
        return domain in uneven and domain not in {self._domain(each, key) for each in step["feasible"]}

    def _domain(self, node: str, key: str) -> str:
        for each in self._objects:
            if each["kind"] == "Node" and each["metadata"]["name"] == node:
                value: str = each["metadata"]["labels"][key]
                return value
        return ""

    def _pods(self) -> list[Json]:
        return [each for each in self._objects if each["kind"] == "Pod"]

    def _ask(self, sets: Sequence[Sequence[str]]) -> list[_Tried]:
        """Return what kube-scheduler does with the replacements of each set of pods."""
        questions = [self._question(names) for names in sets]
        answers = self._process.ask([msgspec.json.encode(question) for question in questions])
        tried: list[_Tried] = []
        for names, question, line in zip(sets, questions, answers, strict=True):
            steps = {step["pod"]: step for step in msgspec.json.decode(line)["steps"]}
            tried.append(
                {name: steps[pod["metadata"]["name"]] for name, pod in zip(names, question["queue"], strict=True)}
            )
        return tried

    def _question(self, names: Sequence[str]) -> Json:
        of_kind: dict[str, list[Json]] = {}
        for each in self._objects:
            of_kind.setdefault(each["kind"], []).append(each)
        nodes = of_kind["Node"]
        return {
            "kind": KIND,
            "nodes": self._chance.sample(nodes, len(nodes)),
            "pods": [_stored(each) for each in of_kind["Pod"] if each["metadata"]["name"] not in names],
            "queue": [_stored(self._replacement(name)) for name in names],
            "namespaces": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}],
            "services": [],
            "replicaSets": of_kind.get("ReplicaSet", []),
            "claims": [_bound(each) for each in of_kind.get("PersistentVolumeClaim", [])],
            "volumes": of_kind.get("PersistentVolume", []),
        }

    def _replacement(self, name: str) -> Json:
        (pod,) = (each for each in self._pods() if each["metadata"]["name"] == name)
        copied = copy.deepcopy(pod)
        del copied["spec"]["nodeName"]
        copied["status"] = {"phase": "Pending"}
        if copied["metadata"]["ownerReferences"][0]["kind"] != "StatefulSet":
            self._number += 1
            copied["metadata"]["name"] = f"{small.owner_of(pod)}-again-{self._number}"
        copied["metadata"]["uid"] = f"uid-again-{copied['metadata']['name']}"
        return copied


def _app(pod: Json) -> str:
    app: str = pod["metadata"]["labels"]["app"]
    return app


def _claims(pod: Json) -> tuple[str, ...]:
    return tuple(each["persistentVolumeClaim"]["claimName"] for each in pod["spec"].get("volumes", ()))


def _on(pod: Json, node: str) -> Json:
    """Return a pod that runs on a node."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-09-01T10:01:00Z"}
    return {
        **pod,
        "spec": {**pod["spec"], "nodeName": node},
        "status": {"phase": "Running", "conditions": [ready]},
    }


def _stored(pod: Json) -> Json:
    """Return a pod with the defaults of the API server; preemption is off."""
    defaults = {"schedulerName": "default-scheduler", "priority": 0, "preemptionPolicy": "Never"}
    return {**pod, "spec": {**pod["spec"], **defaults}}


def _bound(claim: Json) -> Json:
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    return {**claim, "metadata": {**claim["metadata"], "annotations": bound}}
