"""One uneven cluster, corrected by the script of ``plan`` and by the descheduler.

``python -m tests.e2e.rebalanced`` prints the table of docs/comparison.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from kubectl_spread.phrases import noun, plural
from tests.builders import HOSTNAME, ZONE, Json, constraint, requirement, selector
from tests.controlplane.cluster import ControlPlane
from tests.e2e import own_nodes, peers
from tests.e2e.manifests import pod_spec
from tests.e2e.own_nodes import budget, workload
from tests.e2e.plans import Case, PlanPlay
from tests.e2e.spread import Program, Report
from tests.e2e.volumes import claim_templates
from tests.e2e.workloads import pods

MOST_PASSES: Final = 10
"""The most passes of the descheduler."""
_SITUATIONS: Final[Mapping[str, str]] = {
    "api": "zone c was added",
    "cart": "the same, and a budget with maxUnavailable 1",
    "db": "the same, and each pod has a volume in its zone",
    "mail": "a label of one pod was changed, and matchLabelKeys names it",
    "search": "zone c was added and counts, but a node affinity forbids it",
    "web": "zone c was added with one node, and another constraint is on nodes",
}
_REFUSED: Final = 429
_BACKOFF: Final = 15.0
"""The seconds after which the scheduler has tried a pod again; its longest backoff is ten."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a tool did, by workload: its evictions, those that a budget refused, and the end.

    ``rounds`` is the number of waves or passes with evictions; skews are mapped by the kind of domain.
    """

    rounds: int
    evicted: Counter[str]
    refused: Counter[str]
    pending: Counter[str]
    stale: Counter[str]
    before: Mapping[str, Mapping[str, int]]
    after: Mapping[str, Mapping[str, int]]
    differences: Sequence[str]


class Rebalancing(PlanPlay):
    """The cluster, for one tool."""

    def outcome(self, correct: Callable[[Rebalancing], tuple[int, Sequence[str]]]) -> Outcome:
        """Make the cluster uneven and correct it."""
        self.prepare()
        before, since = self._skews(), self.cluster.audit_position()
        rounds, differences = correct(self)
        findings = self._check()["findings"]
        return Outcome(
            rounds=rounds,
            evicted=self._evictions(since, refused=False),
            refused=self._evictions(since, refused=True),
            pending=self._pending(),
            stale=Counter(each["object"]["name"] for each in findings if each["code"] == "SPR101"),
            before=before,
            after=self._skews(),
            differences=differences,
        )

    def by_plan(self) -> tuple[int, Sequence[str]]:
        """Run the script of ``plan``; return its waves and what differs from it."""
        played = self.correct()
        return played.waves, played.differences

    def by_descheduler(self) -> tuple[int, Sequence[str]]:
        """Run the descheduler until it evicts nothing; no pod becomes ready during a pass, which takes a second."""
        for number in range(MOST_PASSES):
            since = self.cluster.audit_position()
            with self.cluster.kubelet.paused():
                peers.deschedule(self.cluster)
            self.settle()
            with suppress(TimeoutError):
                self.cluster.wait_for(lambda: not self._pending(), _BACKOFF, "no pod is pending")
            if not self._evictions(since, refused=False):
                return number, ()
        return MOST_PASSES, ()

    def _check(self) -> Report:
        return self.spread("check", "-n", self.namespace, "-o", "json").report

    def _skews(self) -> dict[str, dict[str, int]]:
        skews: dict[str, dict[str, int]] = {}
        for row in self._check()["constraints"]:
            own, domain = skews.setdefault(row["workload"]["name"], {}), noun(row["topologyKey"])
            own[domain] = max(own.get(domain, 0), row["skew"])
        return skews

    def _pending(self) -> Counter[str]:
        waiting = [pod for pod in pods(self.cluster, self.namespace) if "nodeName" not in pod["spec"]]
        return Counter(pod["metadata"]["labels"]["app"] for pod in waiting)

    def _evictions(self, since: int, *, refused: bool) -> Counter[str]:
        asked = [
            event
            for event in self.cluster.audited(since)
            if event["requestURI"].partition("?")[0].endswith("/eviction")
        ]
        answered = [event for event in asked if (event["responseStatus"]["code"] == _REFUSED) is refused]
        return Counter(event["objectRef"]["name"].partition("-")[0] for event in answered)


def play(cluster: ControlPlane, spread: Program) -> dict[str, Outcome]:
    """Return what ``plan`` and the descheduler did, each from the same start."""
    outcomes = {}
    for tool, correct in (("plan", Rebalancing.by_plan), ("descheduler", Rebalancing.by_descheduler)):
        with cluster.namespace("case") as namespace:
            case = Rebalancing(cluster, spread, _case(tool), namespace)
            try:
                outcomes[tool] = case.outcome(correct)
            finally:
                case.clean()
    return outcomes


def _case(tool: str) -> Case:
    zones = {name: f"{tool}-{name}" for name in "abc"}
    late = f"{zones['c']}-0"
    return Case(
        seed=tool,
        slots={**{f"{zones[zone]}-{number}": 8 for zone in "ab" for number in (0, 1)}, late: 8},
        late=[late],
        objects=[*_objects(tool, zones["c"])],
        scaled={},
        volumes={f"data-db-{ordinal}": zones[zone] for ordinal, zone in enumerate("aba")},
        relabelled=["mail"],
    )


def _objects(tool: str, late: str) -> Iterator[Json]:
    def spread(name: str, replicas: int, *keys: str, kind: str = "Deployment", **more: Any) -> Json:
        match = ("rev",) if name == "mail" else ()
        constraints = [constraint(key=key, selects=selector({"app": name}), match=match) for key in keys]
        made = workload(kind, name, replicas, pod_spec(constraints, nodeSelector={"case": f"p{tool}"}), **more)
        made["spec"]["template"]["metadata"]["labels"]["rev"] = "r1"
        return made

    yield spread("api", 6, ZONE)
    yield spread("cart", 6, ZONE)
    yield budget("cart", {"maxUnavailable": 1})
    yield spread("db", 3, ZONE, kind="StatefulSet", serviceName="db", volumeClaimTemplates=claim_templates("data"))
    yield spread("mail", 2, ZONE)
    search = spread("search", 4, ZONE)
    pod = search["spec"]["template"]["spec"]
    pod["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = "Ignore"
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement(ZONE, "NotIn", late)]}]}
    pod["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    yield search
    yield spread("web", 9, ZONE, HOSTNAME)


def table(outcomes: Mapping[str, Outcome]) -> str:
    """Return the outcomes as a Markdown table."""
    rows = [["workload", "situation", "skew", "after `plan`", "after the descheduler"], ["---"] * 5]
    for name, situation in _SITUATIONS.items():
        before = _skews(outcomes["plan"].before[name])
        rows.append([f"`{name}`", situation, before, *(_cell(outcome, name) for outcome in outcomes.values())])
    totals = [plural(outcome.evicted.total(), "eviction") for outcome in outcomes.values()]
    rounds = [outcome.rounds for outcome in outcomes.values()]
    rows.append(["all", "", "", f"{totals[0]} in {rounds[0]} waves", f"{totals[1]} in {rounds[1]} passes"])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(outcome: Outcome, name: str) -> str:
    numbers = {"refused": outcome.refused[name], "pending": outcome.pending[name], "stale": outcome.stale[name]}
    parts = [f"{number} {what}" for what, number in numbers.items() if number]
    return ", ".join([plural(outcome.evicted[name], "eviction"), *parts, _skews(outcome.after[name])])


def _skews(skews: Mapping[str, int]) -> str:
    return ", ".join(f"{domain} {skew}" for domain, skew in skews.items())


if __name__ == "__main__":
    with own_nodes.empty_cluster() as (cluster, spread):
        print(table(play(cluster, spread)), end="")
