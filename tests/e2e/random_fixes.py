"""Random clusters on a real control plane, where printed fixes are carried out one after another.

``python -m tests.e2e.random_fixes --cases 400`` runs many and says what went wrong; the end-to-end tests run a few.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from urllib3.exceptions import HTTPError

from kubectl_spread.phrases import listed
from tests.builders import HOSTNAME, ZONE, Json, constraint, selector, term
from tests.controlplane import nodes
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import ControlPlane, KubectlError
from tests.e2e.manifests import pod_spec
from tests.e2e.shell import paste
from tests.e2e.spread import Plugin, Program
from tests.e2e.volumes import claim_templates, zonal_claim
from tests.e2e.workloads import pods, rests

_QUIET: Final = 3.0
"""The seconds without a change after which nothing changes; the first backoff of the scheduler is one second."""
_FIXES: Final = 4
"""The most fixes that are carried out in one case."""
_TOGETHER: Final = 4
"""The cases that run at the same time, on nodes of their own."""
_TAINT: Final[Json] = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One cluster: its nodes, a workload, and what happens to them before the first check.

    Attributes:
        seed: The number from which the case is made.
        slots: The pods that each node takes, by node.
        kind: The kind of the workload.
        replicas: Its replicas at first, and those after a scaling.
        constraints: Its spread constraints.
        strategy: The update strategy of a Deployment.
        tolerates: Whether its pods tolerate the taint.
        closed_first: The zones that are cordoned while the pods are placed, and opened then.
        cordoned: The zones that are cordoned afterwards.
        tainted: The zones that are tainted afterwards.
        filled: The zones whose last room other pods take.
        relabelled: How many pods get another value of the label ``rev``, or lose it.
        removed: Whether they lose it.
        minimum: The ``minAvailable`` of a disruption budget; 0 for none.
        apart: The topology key of a term of anti-affinity among its pods; "" for none.
        must: Whether that term is required.
        port: Whether its pods take a host port.
        volumes: The zones of the volumes of a StatefulSet's first pods; none for pods without volumes.
    """

    seed: int
    slots: dict[str, int]
    kind: str
    replicas: tuple[int, int]
    constraints: Sequence[Json]
    strategy: Json = field(default_factory=dict)
    tolerates: bool = False
    closed_first: Sequence[str] = ()
    cordoned: Sequence[str] = ()
    tainted: Sequence[str] = ()
    filled: Sequence[str] = ()
    relabelled: int = 0
    removed: bool = False
    minimum: int = 0
    apart: str = ""
    must: bool = False
    port: bool = False
    volumes: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The name of the workload and of the case, which begins those of its zones and nodes."""
        return f"c{self.seed}"

    def nodes_of(self, zones: Sequence[str]) -> list[str]:
        """Return the nodes of some zones."""
        return [node for node in self.slots if zone_of(node) in zones]


def zone_of(node: str) -> str:
    """Return the zone of a node: all of its name but the last digit."""
    return node[:-1]


def random_case(seed: int) -> Case:
    """Return the case of a seed."""
    chance = random.Random(seed)
    zones = [f"c{seed}-{letter}" for letter in "abcd"[: chance.choice([2, 3, 3, 3, 4])]]
    room = chance.choice([2, 3, 4, 30])
    slots = {f"{zone}{number}": room for zone in zones for number in range(chance.randint(1, 2))}
    replicas = chance.randint(2, 7)
    some = [zone for zone in zones if chance.random() < 0.3]
    rarely = [[zone] if chance.random() < odds else [] for zone, odds in zip(zones, (0.4, 0.2), strict=False)]
    kind = chance.choice(["Deployment", "Deployment", "Deployment", "ReplicaSet", "StatefulSet", "StatefulSet"])
    with_volumes = kind == "StatefulSet" and chance.random() < 0.5
    return Case(
        seed=seed,
        slots=slots,
        kind=kind,
        replicas=(replicas, max(1, replicas + chance.choice([0, 0, -1, -2, 2]))),
        constraints=list(_constraints(chance, len(zones))),
        strategy=chance.choice([{}, {}, {}, {"type": "Recreate"}, _pace(1, 0), _pace(0, 1)]),
        tolerates=chance.random() < 0.2,
        closed_first=some if len(some) < len(zones) and chance.random() < 0.5 else [],
        cordoned=rarely[0],
        tainted=rarely[1],
        filled=[zone for zone in zones if chance.random() < 0.25],
        relabelled=chance.choice([0, 1, 2, 2, 3]),
        removed=chance.random() < 0.3,
        minimum=chance.choice([0, 0, 0, 1, max(1, replicas - 1)]),
        apart=chance.choice(["", "", HOSTNAME, ZONE]),
        must=chance.random() < 0.6,
        port=chance.random() < 0.15,
        volumes=[chance.choice(zones) for _ in range(replicas + 2)] if with_volumes else (),
    )


def _pace(surge: int, unavailable: int) -> Json:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def _constraints(chance: random.Random, zones: int) -> Iterator[Json]:
    for key in chance.choice([[ZONE], [ZONE], [ZONE], [HOSTNAME], [ZONE, HOSTNAME]]):
        hard = chance.random() < 0.8
        fields: Json = {}
        if hard and chance.random() < 0.25:
            fields["minDomains"] = chance.randint(2, zones + 1)
        if chance.random() < 0.25:
            fields["nodeTaintsPolicy"] = "Honor"
        lists = [
            (),
            ("rev",),
            ("rev",),
            ("rev",),
            ("pod-template-hash",),
            ("pod-template-hsah",),
            ("controller-revision-hash",),
        ]
        selects = selector({"app": "wbe"}) if chance.random() < 0.1 else None
        yield constraint(
            key=key,
            hard=hard,
            max_skew=chance.choice([1, 1, 2, 3]),
            selects=selects,
            match=chance.choice(lists),
            **fields,
        )


@dataclass(frozen=True, kw_only=True)
class Fix:
    """A printed fix that was carried out, and what became of it.

    Attributes:
        case: The case.
        code: The code of the rule.
        commands: What was pasted.
        refused: What was printed on stderr where a command failed.
        pending: The pending pods before and after.
        stays: The finding, where it is still reported for the same pods with the same commands.
        new: The codes of the errors and warnings that were not there before, and that the fix did not announce.
        capture: The objects before.
    """

    case: Case
    code: str
    commands: str
    refused: str
    pending: tuple[int, int]
    stays: bool
    new: Sequence[str]
    capture: str

    @property
    def harmful(self) -> bool:
        """Whether more pods are pending than before, or another finding is there."""
        return self.pending[1] > self.pending[0] or bool(self.new)

    @property
    def summary(self) -> str:
        """What became of it, in one line."""
        outcome = "HARMFUL" if self.harmful else "refused" if self.refused else "stays" if self.stays else "ends"
        new = f", new {listed(list(self.new))}" if self.new else ""
        return (
            f"{outcome}: {self.code} of case {self.case.seed}, pending pods {self.pending[0]} to {self.pending[1]}{new}"
        )


class Play:
    """One case on a real cluster, on nodes of its own."""

    def __init__(self, cluster: ControlPlane, spread: Program, case: Case, namespace: str, directory: Path) -> None:
        """Prepare a case, which ``fixes`` plays; commands run in ``directory``."""
        self._cluster = cluster
        self._spread = spread
        self._case = case
        self._namespace = namespace
        self._directory = directory

    def fixes(self) -> Iterator[Fix]:
        """Make the situation, and carry out one fix after another that was not carried out before."""
        self._prepare()
        done: set[str] = set()
        for _ in range(_FIXES):
            before = self._checked()
            finding = next((each for each in self._own(before) if "\n".join(each["commands"]) not in done), None)
            if finding is None:
                return
            commands = "\n".join(finding["commands"])
            done.add(commands)
            fix = self._carried_out(finding, commands, before)
            print(fix.summary, file=sys.stderr, flush=True)
            yield fix

    def clean(self) -> None:
        """Delete the nodes; the namespace is deleted by who made it."""
        for path in (f"/apis/apps/v1/namespaces/{self._namespace}/{kind}" for kind in _RESOURCES.values()):
            self._cluster.api.request("DELETE", path)
        self._cluster.api.request("DELETE", f"/api/v1/namespaces/{self._namespace}/pods?gracePeriodSeconds=0")
        for name in self._case.slots:
            self._cluster.api.request("DELETE", f"/api/v1/nodes/{name}")
        for number, _ in enumerate(self._case.volumes):
            name = f"{self._namespace}-data-{self._case.name}-{number}"
            self._cluster.api.request("DELETE", f"/api/v1/persistentvolumes/{name}")

    def _carried_out(self, finding: Json, commands: str, findings: Sequence[Json]) -> Fix:
        capture, before = self._capture(), self._pending()
        pasted = paste(commands, self._directory, self._spread.environment)
        self._settle()
        # On a busy machine the scheduler may need longer for a replacement than the time without a change.
        with suppress(TimeoutError):
            self._cluster.wait_for(lambda: self._pending() <= before, timeout=60, what="no more pods are pending")
            self._settle()
        after = self._checked()
        same = [
            each
            for each in self._own(after)
            if (each["code"], each["path"], each["pods"]) == (finding["code"], finding["path"], finding["pods"])
            and each["commands"] == finding["commands"]
            and not ("patch" in finding and self._case.kind == "ReplicaSet")
        ]
        return Fix(
            case=self._case,
            code=finding["code"],
            commands=commands,
            refused=pasted.stderr if pasted.returncode else "",
            pending=(before, self._pending()),
            stays=bool(same),
            new=sorted(_codes(after) - _before(findings) - _announced(finding)),
            capture=capture,
        )

    def _prepare(self) -> None:
        case, api = self._case, self._cluster.api
        added = []
        for name, slots in case.slots.items():
            node = nodes.node(name, zone_of(name), {"case": case.name})
            node["status"]["allocatable"] = {**node["status"]["allocatable"], "cpu": str(slots)}
            added.append(node)
        nodes.add(api, added, [])
        self._cordon(case.closed_first, closed=True)
        for number, zone in enumerate(case.volumes):
            for each in zonal_claim(f"data-{case.name}-{number}", self._namespace, zone):
                self._cluster.apply(each)
        self._cluster.apply(self._workload())
        self._settle()
        self._cordon(case.closed_first, closed=False)
        if case.replicas[1] != case.replicas[0]:
            self._cluster.kubectl(
                "scale", f"{case.kind}/{case.name}", "-n", self._namespace, f"--replicas={case.replicas[1]}"
            )
            self._settle()
        self._fill()
        self._relabel()
        self._cordon(case.cordoned, closed=True)
        for name in case.nodes_of(case.tainted):
            api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": [_TAINT]}})
        if case.minimum:
            self._cluster.apply(self._budget())
        self._settle()

    def _cordon(self, zones: Sequence[str], *, closed: bool) -> None:
        for name in self._case.nodes_of(zones):
            self._cluster.kubectl("cordon" if closed else "uncordon", name)

    def _workload(self) -> Json:
        case = self._case
        labels = {"app": "web", "rev": "r1"}
        spec = pod_spec(
            case.constraints,
            containers=[_container(port=case.port)],
            nodeSelector={"case": case.name},
            **({"affinity": _apart(case.apart, must=case.must)} if case.apart else {}),
            **({"tolerations": [{"key": "dedicated", "operator": "Exists"}]} if case.tolerates else {}),
        )
        more: Json = {"strategy": case.strategy} if case.kind == "Deployment" and case.strategy else {}
        if case.kind == "StatefulSet":
            more = {"serviceName": case.name, "podManagementPolicy": ("Parallel", "OrderedReady")[case.seed % 2]}
        if case.volumes:
            more["volumeClaimTemplates"] = claim_templates("data")
        return {
            "apiVersion": "apps/v1",
            "kind": case.kind,
            "metadata": {"name": case.name, "namespace": self._namespace},
            "spec": {
                "replicas": case.replicas[0],
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": labels}, "spec": spec},
                **more,
            },
        }

    def _budget(self) -> Json:
        spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": self._case.minimum}
        metadata = {"name": "web", "namespace": self._namespace}
        return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}

    def _fill(self) -> None:
        """Let other pods take the last room of zones."""
        used = Counter(pod["spec"].get("nodeName") for pod in self._pods())
        for node in self._case.nodes_of(self._case.filled):
            for number in range(min(self._case.slots[node] - used[node], 4)):
                metadata = {"name": f"other-{node}-{number}", "namespace": self._namespace, "labels": {"app": "other"}}
                spec = pod_spec(containers=[_container()], nodeName=node)
                self._cluster.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def _relabel(self) -> None:
        names = sorted(pod["metadata"]["name"] for pod in self._pods())
        for name in islice(names, self._case.relabelled):
            value = None if self._case.removed else "r2"
            path = f"/api/v1/namespaces/{self._namespace}/pods/{name}"
            self._cluster.api.patch(path, {"metadata": {"labels": {"rev": value}}})

    def _own(self, findings: Sequence[Json]) -> list[Json]:
        """Return the findings with commands that are for this case alone, those with pending pods first."""
        return [each for each in findings if any(self._is_own(command) for command in each.get("commands", ()))]

    def _checked(self) -> list[Json]:
        """Return all findings."""
        answer = self._spread("check", "-n", self._namespace, "--fail-on", "never", "--severity", "info", "-o", "json")
        assert answer.status == 0, answer.stderr
        findings: list[Json] = answer.report["findings"]
        return findings

    def _is_own(self, command: str) -> bool:
        words = shlex.split(command)
        return words[:2] != ["kubectl", "spread"] and any(
            self._namespace in word or word in self._case.slots for word in words
        )

    def _pods(self) -> list[Json]:
        """Return the pods of the workload."""
        return [pod for pod in pods(self._cluster, self._namespace) if pod["metadata"]["labels"].get("app") == "web"]

    def _pending(self) -> int:
        return sum("nodeName" not in pod["spec"] for pod in self._pods())

    def _capture(self) -> str:
        kinds = (
            "nodes,pods,deployments,replicasets,statefulsets,poddisruptionbudgets,"
            "persistentvolumeclaims,persistentvolumes"
        )
        answer = json.loads(self._cluster.kubectl("get", kinds, "-n", self._namespace, "-o", "json").stdout)
        own = [
            each for each in answer["items"] if each["kind"] != "Node" or each["metadata"]["name"] in self._case.slots
        ]
        return json.dumps({**answer, "items": own})

    def _settle(self) -> None:
        """Wait until the controller has seen the workload, no pod is on its way, and nothing has changed for a time."""
        since, last = time.monotonic(), self._state()

        def quiet() -> bool:
            nonlocal since, last
            if (now := self._state()) != last:
                since, last = time.monotonic(), now
            return self._observed() and all(map(rests, self._pods())) and time.monotonic() - since > _QUIET

        self._cluster.wait_for(quiet, timeout=90, what=f"nothing changes any more in {self._case}")

    def _state(self) -> dict[str, tuple[str, str]]:
        return {
            pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["spec"].get("nodeName", "")) for pod in self._pods()
        }

    def _observed(self) -> bool:
        path = f"/apis/apps/v1/namespaces/{self._namespace}/{_RESOURCES[self._case.kind]}/{self._case.name}"
        workload = self._cluster.api.get(path)
        return bool(workload["status"].get("observedGeneration", 0) >= workload["metadata"]["generation"])


def _codes(findings: Sequence[Json]) -> set[str]:
    """Return the codes of errors and warnings."""
    return {finding["code"] for finding in findings if finding["severity"] != "info"}


def _before(findings: Sequence[Json]) -> set[str]:
    """Return the codes of all findings; SPR303 says why no node takes the pods, which is SPR304 or SPR307 elsewhere."""
    codes = {finding["code"] for finding in findings}
    lacks_domains = any(each["code"] == "SPR303" and "minDomains" in each["message"] for each in findings)
    held_down = {"SPR303", "SPR307"} if codes & {"SPR303", "SPR307"} else set()
    return codes | held_down | ({"SPR304"} if lacks_domains else set())


def _announced(finding: Json) -> set[str]:
    """Return the codes of what a change may leave, where its fix says so.

    A domain that holds the minimum is SPR303 where no node takes the pods because of it, and the pods that still wait
    may have another cause. Pods on one node are in one zone, too.
    """
    announced = {
        "(SPR208)": {"SPR301", "SPR302"},
        "(SPR302)": {"SPR302"},
        "(SPR303)": {"SPR303"},
        "(SPR307)": {"SPR303", "SPR307"},
        "(SPR501)": {"SPR501", "SPR502"},
        "(SPR502)": {"SPR502"},
        " still wait": {"SPR303", "SPR304", "SPR307", "SPR315"},
    }
    text = f"{finding['message']} {finding['fix']}"
    return {code for words, codes in announced.items() if words in text for code in codes}


_RESOURCES: Final = {"Deployment": "deployments", "ReplicaSet": "replicasets", "StatefulSet": "statefulsets"}
_AMOUNTS: Final[Json] = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}


def _container(*, port: bool = False) -> Json:
    ports = {"ports": [{"containerPort": 8080, "hostPort": 8080}]} if port else {}
    return {"name": "app", "image": "registry.example/app:1", "resources": _AMOUNTS, **ports}


def _apart(key: str, *, must: bool) -> Json:
    """Return the affinity of pods that keep away from each other."""
    apart = term(key=key)
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    if not must:
        terms = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "podAffinityTerm": apart}]}
    return {"podAntiAffinity": terms}


class Played(NamedTuple):
    """The fixes of all cases, and the seeds of the cases that could not be played to their end."""

    fixes: list[Fix]
    broken_off: list[int]


def play(cluster: ControlPlane, spread: Program, seeds: Sequence[int], directory: Path) -> Played:
    """Play the cases of some seeds, several at the same time, on a cluster without nodes."""
    with ThreadPoolExecutor(_TOGETHER) as pool:
        played = dict(zip(seeds, pool.map(lambda seed: _play(cluster, spread, seed, directory), seeds), strict=True))
    fixes = [fix for of_case in played.values() for fix in of_case or ()]
    return Played(fixes, [seed for seed, of_case in played.items() if of_case is None])


def _play(cluster: ControlPlane, spread: Program, seed: int, directory: Path) -> list[Fix] | None:
    """Play one case; return None where it was broken off."""
    own = directory / f"case-{seed}"
    own.mkdir()
    with cluster.namespace("fixes") as namespace:
        case = Play(cluster, spread, random_case(seed), namespace, own)
        try:
            return list(case.fixes())
        except (TimeoutError, subprocess.TimeoutExpired, HTTPError, ApiError, KubectlError) as error:
            print(f"case {seed} was broken off: {error}", file=sys.stderr)
            return None
        finally:
            case.clean()


def main() -> int:
    """Play as many cases as asked for; print each fix that left more pods pending, and those that ended nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first case")
    parser.add_argument("--keep", type=Path, help="a directory for what was read before each of these fixes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "cluster").mkdir()
        with ControlPlane.start(directory / "cluster", kubelet=True) as cluster:
            spread = Plugin(directory / "plugins").program(cluster)
            fixes, broken_off = play(cluster, spread, range(options.first, options.first + options.cases), directory)
    bad = [fix for fix in fixes if fix.harmful or fix.refused or fix.stays]
    for number, fix in enumerate(bad):
        print(f"{fix.summary}: {fix.case}\n  {fix.commands}\n  {fix.refused}")
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            path = options.keep / f"{fix.code}-{fix.case.seed}-{number}.json"
            path.write_text(fix.capture, encoding="utf-8")
    codes = Counter(fix.code for fix in fixes)
    print(f"{options.cases} cases, {len(fixes)} fixes ({dict(sorted(codes.items()))}), broken off: {broken_off}")
    print(f"{sum(fix.harmful for fix in fixes)} left more pods pending, {len(bad)} are listed above")
    return int(any(fix.harmful for fix in fixes))


if __name__ == "__main__":
    sys.exit(main())
