"""Uneven workloads on the real control plane, before and after the evictions that ``explain`` advises."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.builders import Json, constraint
from tests.controlplane import nodes
from tests.controlplane.client import STRATEGIC_PATCH, parallel
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.spread import Spread, counts
from tests.e2e.uneven_cases import Case, Way
from tests.e2e.workloads import end_pods, pods, scheduled

_CORDON: Json = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_QUIET = 4.0
"""The seconds without a change after which nothing changes; the backoffs of the scheduler are one and two seconds."""
_GPU: Json = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The advised pods, and the counts before and after the evictions."""

    case: Case
    before: Mapping[str, int]
    named: Sequence[str] = ()
    sure: bool = False
    reason: str = ""
    after: Mapping[str, int] = field(default_factory=dict)
    skews: tuple[int, int] = (0, 0)
    pending: int = 0
    stuck: Sequence[str] = ()

    @property
    def even(self) -> bool:
        """Whether the skew is within maxSkew at the end and every pod runs."""
        return self.skews[1] <= self.case.max_skew and not self.pending

    @property
    def possible(self) -> bool:
        """Whether an even placement of all pods exists, if each of them may move."""
        most = {name: self.before[name] if name in self.stuck else self.case.room(name) for name in self.before}
        levels = range(min(most.values()) + 1)
        replicas, skew = self.case.replicas, self.case.max_skew
        return any(
            level * len(most) <= replicas <= sum(min(room, level + skew) for room in most.values()) for level in levels
        )


class Play:
    """One case on a real cluster that has no other nodes."""

    def __init__(self, cluster: ControlPlane, spread: Spread, case: Case, namespace: str) -> None:
        """Prepare a case, which ``outcome`` runs."""
        self._cluster = cluster
        self._spread = spread
        self._case = case
        self._namespace = namespace
        self._low = list(case.held)

    def outcome(self) -> Outcome:
        """Make the pods uneven, and evict the pods that ``explain`` names."""
        self._make_uneven()
        case, before = self._case, self._row()
        (advice,) = self._explain()["evictions"]
        named: list[str] = advice.get("pods", [])
        for name in named or self._surplus(before):
            self._evict(name)
        self._settle(hopeful=bool(named))
        if not named:
            self._stay()
        after = self._row()
        outcome = Outcome(
            case=case,
            before=counts(before),
            named=named,
            sure=advice.get("sure", False),
            reason=advice.get("reason", ""),
            after=counts(after),
            skews=(before["skew"], after["skew"]),
            pending=sum("nodeName" not in pod["spec"] for pod in self._pods()),
            stuck=self._low if case.stuck else (),
        )
        end_pods(self._cluster, self._namespace)
        return outcome

    def _make_uneven(self) -> None:
        case, api = self._case, self._cluster.api
        for node in api.get("/api/v1/nodes")["items"]:
            api.request("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")
        self._cluster.forget_nodes()
        first = [domain for domain in case.domains if case.way is not Way.LATE or domain not in case.held]
        self._add_nodes(first)
        if case.way is Way.CORDONED:
            self._cordon(taints=[_CORDON])
        self._cluster.apply(self._workload(case.before))
        self._settle(hopeful=True)
        if case.way is Way.CORDONED:
            self._uncordon()
        elif case.way is Way.LATE:
            self._add_nodes(case.held)
        else:
            self._scale_down()
        if case.stuck:
            self._cordon()

    def _add_nodes(self, domains: Sequence[str]) -> None:
        case = self._case
        for domain in domains:
            labels: dict[str, str | None] = {"disk": "ssd"}
            domain_nodes = [nodes.node(name, domain[0], labels) for name in case.names(domain)]
            for node in domain_nodes:
                node["status"]["allocatable"] = {**node["status"]["allocatable"], "cpu": str(case.slots[domain])}
            nodes.add(self._cluster.api, domain_nodes, [_GPU] if domain in case.tainted else [])
        if case.other_disk:
            # The node selector excludes this node, so it is not a domain.
            nodes.add(self._cluster.api, [nodes.node(f"y-{domains[0]}", "y", {"disk": "hdd"})], [])

    def _cordon(self, taints: Sequence[Json] = ()) -> None:
        for domain in self._low:
            for name in self._case.names(domain):
                spec = {"unschedulable": True, **({"taints": taints} if taints else {})}
                self._cluster.api.patch(f"/api/v1/nodes/{name}", {"spec": spec}, STRATEGIC_PATCH)

    def _uncordon(self) -> None:
        for domain in self._low:
            taints = [_GPU] if domain in self._case.tainted else []
            for name in self._case.names(domain):
                self._cluster.api.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None, "taints": taints}})

    def _workload(self, replicas: int) -> Json:
        case = self._case
        pod_constraint = constraint(key=case.key, max_skew=case.max_skew, **case.fields)
        amounts = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
        containers = [{"name": "app", "image": "registry.example/app:1", "resources": amounts}]
        return deployment(
            constraints=[pod_constraint],
            replicas=replicas,
            namespace=self._namespace,
            containers=containers,
            **case.spec,
        )

    def _scale_down(self) -> None:
        """Make the ReplicaSet delete the pods of the smallest domain first."""
        domain_counts = counts(self._row())
        self._low = [min(sorted(domain_counts), key=lambda domain: domain_counts[domain])]
        held = self._case.names(self._low[0])

        def price(manifest: Json) -> None:
            cost = "0" if manifest["spec"]["nodeName"] in held else "100"
            annotations = {"controller.kubernetes.io/pod-deletion-cost": cost}
            path = f"/api/v1/namespaces/{self._namespace}/pods/{manifest['metadata']['name']}"
            self._cluster.api.patch(path, {"metadata": {"annotations": annotations}})

        parallel(price, self._pods())
        self._cluster.kubectl("scale", "deploy/web", "-n", self._namespace, f"--replicas={self._case.replicas}")
        self._settle(hopeful=True)

    def _explain(self) -> Json:
        answer = self._spread("explain", "deploy/web", "-n", self._namespace, "-o", "json")
        assert answer.status in (0, 1), answer.stderr
        return answer.report.document

    def _row(self) -> Json:
        answer = self._spread("check", "-n", self._namespace, "-o", "json")
        return answer.report.row("Deployment/web")

    def _surplus(self, row: Json) -> list[str]:
        """Return the surplus pods of the fullest domain, where ``explain`` names none."""
        domain_counts = counts(row)
        fullest = max(sorted(domain_counts), key=lambda value: domain_counts[value])
        there = [
            pod["metadata"]["name"] for pod in self._pods() if pod["spec"]["nodeName"] in self._case.names(fullest)
        ]
        return sorted(there)[: row["skew"] - self._case.max_skew]

    def _evict(self, name: str) -> None:
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        self._cluster.api.request("POST", f"/api/v1/namespaces/{self._namespace}/pods/{name}/eviction", eviction)
        if self._case.patient:
            self._settle(hopeful=False)

    def _settle(self, *, hopeful: bool) -> None:
        """Wait until all replicas run; unless ``hopeful``, a refused pod counts as well."""

        def settled() -> bool:
            pods = self._pods()
            expected = self._cluster.api.get(f"/apis/apps/v1/namespaces/{self._namespace}/deployments/web")
            ending = any("deletionTimestamp" in pod["metadata"] for pod in pods)
            if ending or len(pods) != expected["spec"]["replicas"]:
                return False
            return all(pod["status"]["phase"] == "Running" or (not hopeful and _refused(pod)) for pod in pods)

        try:
            self._cluster.wait_for(settled, timeout=120, what=f"the pods of {self._case} are placed")
        except TimeoutError as error:
            error.add_note("\n".join(map(self._described, self._cluster.api.get("/api/v1/pods")["items"])))
            raise

    def _described(self, pod: Json) -> str:
        name = "/".join((pod["metadata"]["namespace"], pod["metadata"]["name"]))
        return f"{name} on {pod['spec'].get('nodeName')}, {pod['metadata'].get('deletionTimestamp')}: {scheduled(pod)}"

    def _stay(self) -> None:
        """Wait until nothing changes any more, because the scheduler retries refused pods after others were deleted."""
        since, last = time.monotonic(), self._places()

        def quiet() -> bool:
            nonlocal since, last
            if (now := self._places()) != last:
                since, last = time.monotonic(), now
            return time.monotonic() - since > _QUIET

        self._cluster.wait_for(quiet, timeout=60, what="nothing changes any more")

    def _places(self) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in self._pods()}

    def _pods(self) -> list[Json]:
        return pods(self._cluster, self._namespace)


def _refused(manifest: Json) -> bool:
    return scheduled(manifest).get("reason") == "Unschedulable"
