"""Default constraints on a real scheduler with a configuration file of several profiles.

A pod without constraints is created at a scheduling gate and explained; then the gate is lifted. What was said must be
what the scheduler does next: the nodes that its spread plugin refuses, with its numbers, are those of the default rows,
and it has exactly the nodes to choose from that were allowed. No controllers run, so that owners keep their pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.builders import HOSTNAME, ZONE, Json
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import require_built
from tests.e2e.manifests import SCHEDULING_GATE, WITHOUT_GATE, pod, pod_spec
from tests.e2e.scheduler_log import Decision, Refusal, SchedulerLog
from tests.e2e.spread import Plugin, Spread
from tests.e2e.users import allow_listing
from tests.e2e.workloads import owner_reference

pytestmark = pytest.mark.e2e

ARGS = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "PodTopologySpreadArgs"}
WEB = {"app": "web"}


def default(key: str, *, hard: bool = True, **more: Any) -> Json:
    when = "DoNotSchedule" if hard else "ScheduleAnyway"
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, **more}


def profile(name: str, *defaults: Json, **more: Any) -> Json:
    args = {**ARGS, "defaultingType": "List", "defaultConstraints": list(defaults)}
    return {"schedulerName": name, "pluginConfig": [{"name": "PodTopologySpread", "args": args}], **more}


PROFILES = (
    profile("default-scheduler", default(ZONE)),
    profile("hosts", default(HOSTNAME, maxSkew=2), default(ZONE, hard=False)),
    profile("wide", default(ZONE, maxSkew=2, minDomains=5, matchLabelKeys=["rev"])),
    {"schedulerName": "system"},
    {
        "schedulerName": "unfiltered",
        "pluginConfig": profile("", default(ZONE))["pluginConfig"],
        "plugins": {"filter": {"disabled": [{"name": "PodTopologySpread"}]}},
    },
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Return a control plane whose scheduler has profiles: two nodes in zones a and b, one in c, one in none."""
    require_built()
    with ControlPlane.start(tmp_path_factory.mktemp("defaults"), controllers=False, profiles=PROFILES) as started:
        started.add_nodes(("a", "b"))
        started.add_nodes(("c",), per_zone=1)
        started.add_nodes(("x",), per_zone=1, labels={ZONE: None})
        yield started


@pytest.fixture(scope="module")
def spread(cluster: ControlPlane, plugin: Plugin) -> Spread:
    return plugin.on(cluster)


@dataclass(frozen=True)
class Case:
    """One pod, the other objects in its namespace, and the number of its default rows.

    ``bound`` are nodes with one more pod like it each; ``others`` with one of another revision.
    """

    scheduler: str = "default-scheduler"
    owner: str = ""
    services: Sequence[Mapping[str, str] | None] = ()
    bound: Sequence[str] = ()
    newer: Sequence[str] = ()
    rows: int = 1
    spec: Json = field(default_factory=dict)


SERVICE = (WEB,)
CASES = {
    "a Service": Case(services=SERVICE, bound=("a1", "a2", "b1")),
    "several Services and one without selector": Case(
        services=(WEB, {"rev": "r1"}, None), bound=("a1",), newer=("b1",)
    ),
    "a ReplicaSet counts its own revision": Case(owner="ReplicaSet", bound=("a1",), newer=("b1", "c1")),
    "a ReplicaSet and a Service": Case(owner="ReplicaSet", services=SERVICE, bound=("a1", "b1"), newer=("c1",)),
    "a StatefulSet": Case(owner="StatefulSet", bound=("a1", "c1")),
    "a ReplicationController": Case(owner="ReplicationController", bound=("b1", "b2", "b2")),
    "a DaemonSet without a Service": Case(owner="DaemonSet", bound=("a1", "a1"), rows=0),
    "a DaemonSet with a Service": Case(owner="DaemonSet", services=SERVICE, bound=("a1", "a1")),
    "no Service and no owner": Case(bound=("a1", "a1"), rows=0),
    "a Service that selects others": Case(services=({"app": "api"},), bound=("a1", "a1"), rows=0),
    "no node is left": Case(services=SERVICE, bound=("a1", "a2"), spec={"nodeSelector": {ZONE: "a"}}),
    "only the node without a zone is left": Case(
        services=SERVICE, bound=("a1", "a2"), spec={"nodeSelector": {HOSTNAME: "x1"}}
    ),
    "an own soft constraint": Case(
        services=SERVICE,
        bound=("a1", "a1", "a1"),
        rows=0,
        spec={"topologySpreadConstraints": [default(ZONE, hard=False, labelSelector={"matchLabels": WEB})]},
    ),
    "the second profile": Case("hosts", services=SERVICE, bound=("a1", "a1", "b1"), rows=2),
    "the second profile, a StatefulSet": Case("hosts", "StatefulSet", bound=("a1", "a1", "x1", "x1", "x1"), rows=2),
    "minDomains and matchLabelKeys": Case("wide", services=SERVICE, bound=("a1", "b1", "c1"), newer=("a1", "b1")),
    "the system's": Case("system", services=SERVICE, bound=("a1", "a1", "x1", "b1"), rows=2),
    "the system's, a ReplicaSet": Case("system", "ReplicaSet", bound=("a1", "x1", "x1"), newer=("c1",), rows=2),
    "hard ones that are not filtered by": Case("unfiltered", services=SERVICE, bound=("a1", "a1"), rows=0),
}


@dataclass(frozen=True)
class Outcome:
    """The explanation of a gated pod, and the decision of the scheduler without the gate."""

    explanation: Json
    decision: Decision
    nodes: Mapping[str, Mapping[str, str]]
    counted: Counter[str]

    @property
    def defaults(self) -> list[Json]:
        return [row for row in self.explanation["constraints"] if row["default"]]


@pytest.fixture(params=CASES, scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    """Return the outcomes of all earlier cases."""
    return []


@pytest.fixture(scope="module")
def outcome(case: Case, cluster: ControlPlane, spread: Spread, outcomes: list[Outcome]) -> Iterator[Outcome]:
    """Create the objects of a case, explain its pod, and lift the pod's gate."""
    with cluster.namespace("defaults") as namespace:
        outcomes.append(_outcome(case, namespace, cluster, spread))
        yield outcomes[-1]


def _outcome(case: Case, namespace: str, cluster: ControlPlane, spread: Spread) -> Outcome:
    log, api = SchedulerLog(cluster), cluster.api
    for number, selects in enumerate(case.services):
        api.create(_service(f"web-{number}", selects, namespace))
    placed_pods: list[tuple[str, str, str]] = [
        *((f"bound-{number}", "r1", node) for number, node in enumerate(case.bound)),
        *((f"other-{number}", "r2", node) for number, node in enumerate(case.newer)),
        ("next", "r1", ""),
    ]
    metadata = {revision: _owner(case.owner, revision, namespace, cluster) for revision in ("r1", "r2")}
    for revision, owned in metadata.items():
        more = {"labels": {**WEB, "rev": revision}, "namespace": namespace, "metadata": owned}
        api.create_all([_pod(case, name, node, **more) for name, own, node in placed_pods if own == revision])
    answer = spread(
        "explain", "po/next", "-n", namespace, "--scheduler-config", str(cluster.scheduler_config), "-o", "json"
    )
    assert answer.status == 0, answer.stderr
    api.patch(f"/api/v1/namespaces/{namespace}/pods/next", WITHOUT_GATE)
    stored_nodes = api.get("/api/v1/nodes")["items"]
    nodes = {stored["metadata"]["name"]: stored["metadata"]["labels"] for stored in stored_nodes}
    counted = Counter(case.bound if case.owner == "ReplicaSet" else (*case.bound, *case.newer))
    return Outcome(answer.report.document, log.decision(f"{namespace}/next"), nodes, counted)


def _pod(case: Case, name: str, node: str, **more: Any) -> Json:
    """Return a bound pod, or the gated pod of the case."""
    spec = {"nodeName": node} if node else {**SCHEDULING_GATE, **case.spec}
    return pod(name, schedulerName=case.scheduler, **spec, **more)


def _service(name: str, selects: Mapping[str, str] | None, namespace: str) -> Json:
    spec: Json = {"ports": [{"port": 80}], **({} if selects is None else {"selector": dict(selects)})}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _owner(kind: str, revision: str, namespace: str, cluster: ControlPlane) -> Json:
    """Create the owner of one revision, and return the metadata of its pods; only ReplicaSets select a revision."""
    if not kind:
        return {}
    labels = {**WEB, "rev": revision}
    selects: Json = {"matchLabels": labels if kind == "ReplicaSet" else WEB}
    template = {"metadata": {"labels": labels}, "spec": {**pod_spec(), "restartPolicy": "Always"}}
    api_version = "v1" if kind == "ReplicationController" else "apps/v1"
    owner = cluster.api.create(
        {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": f"web-{revision}", "namespace": namespace},
            "spec": {
                "selector": WEB if kind == "ReplicationController" else selects,
                "template": template,
                **({"serviceName": "web"} if kind == "StatefulSet" else {}),
            },
        }
    )
    return {"ownerReferences": [owner_reference(owner)]}


def test_there_is_a_row_for_each_default(case: Case, outcome: Outcome) -> None:
    assert [row["path"] for row in outcome.defaults] == [f"defaultConstraints[{index}]" for index in range(case.rows)]


def test_refused_nodes_and_their_numbers_are_those_of_the_log(case: Case, outcome: Outcome) -> None:
    """Only nodes that other plugins do not refuse first are compared."""
    node_selector: Json = case.spec.get("nodeSelector", {})
    fitting = {name: labels for name, labels in outcome.nodes.items() if node_selector.items() <= labels.items()}
    expected = {refusal for name in fitting for refusal in _refusals(name, fitting[name], outcome.defaults)}
    assert outcome.decision.refusals == expected


def test_the_scheduler_chooses_from_the_allowed_nodes(outcome: Outcome) -> None:
    allowed = {node for placing in outcome.explanation.get("waiting", ()) for node in placing["allowed"]}
    assert outcome.decision.feasible == len(allowed)
    assert (outcome.decision.node or None) in (allowed or {None})


def test_a_pod_that_no_node_takes_is_an_error(outcome: Outcome) -> None:
    """Only hard default constraints cause an error, apart from the gate for which the pod waits."""
    findings = [finding for finding in outcome.explanation["findings"] if finding["code"] != "SPR315"]
    errors = [finding["path"] for finding in findings if finding["severity"] == "error"]
    hard = [row["path"] for row in outcome.defaults if row["whenUnsatisfiable"] == "DoNotSchedule"]
    assert errors == ([] if outcome.decision.feasible else hard)


def test_soft_defaults_count_the_pods_of_the_nodes(case: Case, outcome: Outcome) -> None:
    """For system defaults, nodes without a zone are one domain; for listed defaults they are in no domain."""
    for row in outcome.defaults:
        if row["whenUnsatisfiable"] == "ScheduleAnyway":
            lenient = case.scheduler == "system"
            expected: Counter[str] = Counter()
            for name, labels in outcome.nodes.items():
                if lenient or row["topologyKey"] in labels:
                    expected[labels.get(row["topologyKey"], "")] += outcome.counted[name]
            assert {domain["value"]: domain["matchNum"] for domain in row["domains"]} == dict(expected)


def _refusals(node: str, labels: Mapping[str, str], rows: Sequence[Json]) -> Iterator[Refusal]:
    """Yield the refusals of nodes, each by the first hard row that refuses it, as the scheduler logs them."""
    for row in rows:
        key = row["topologyKey"]
        if row["whenUnsatisfiable"] != "DoNotSchedule":
            continue
        if key not in labels:
            yield Refusal(node, key)
            return
        if labels[key] in row["next"]["blocked"]:
            counts = {domain["value"]: domain["matchNum"] for domain in row["domains"]}
            numbers = (row["selfMatchNum"], row["minMatchNum"], row["maxSkew"])
            yield Refusal(node, key, counts[labels[key]], *numbers)
            return


def test_enough_was_compared(outcomes: list[Outcome]) -> None:
    """The comparison cannot pass by comparing nothing."""
    refusals = [refusal for outcome in outcomes for refusal in outcome.decision.refusals]
    counted = [refusal for refusal in refusals if refusal.match_num is not None]
    rows = [row for outcome in outcomes for row in outcome.defaults]
    bound = [outcome for outcome in outcomes if outcome.decision.node]
    figures = (
        f"{len(outcomes)} pods, {len(bound)} bound; {len(rows)} default rows; {len(refusals)} refusals of nodes, "
        f"{len(counted)} with numbers, {len(set(counted))} different"
    )
    print(figures)
    assert len(outcomes) == len(CASES), figures
    assert len(counted) >= 15, figures
    assert len(refusals) - len(counted) >= 5, figures


def test_system_defaults_by_option_are_those_of_the_profile(cluster: ControlPlane, spread: Spread) -> None:
    """``--defaults`` has the same effect as a configuration file whose profile has no arguments."""
    with cluster.namespace("defaults") as namespace:
        cluster.api.create(_service("web", WEB, namespace))
        placed_pods = [("next", ""), ("p", "a1"), ("q", "x1")]
        for scheduler in ("system", "default-scheduler"):
            case = Case(scheduler)
            cluster.api.create_all(
                [_pod(case, f"{name}-{scheduler}", node, namespace=namespace) for name, node in placed_pods]
            )
        by_file = spread.report("-n", namespace, "--scheduler-config", str(cluster.scheduler_config), status=1)
        by_option = spread.report("-n", namespace, "--defaults", status=1)
        for name, _ in placed_pods:
            of_option = [
                row for row in by_option["constraints"] if row["workload"]["name"] == f"{name}-default-scheduler"
            ]
            of_profile = [row for row in by_file["constraints"] if row["workload"]["name"] == f"{name}-system"]
            assert len(of_option) == 2
            assert [{**row, "workload": None} for row in of_option] == [{**row, "workload": None} for row in of_profile]


def test_a_user_who_may_not_list_services_gets_no_defaults(cluster: ControlPlane, plugin: Plugin) -> None:
    """Without Services the constraints would select wrong pods, so there is no answer and the exit status is 2."""
    with cluster.namespace("defaults") as namespace:
        cluster.api.create(_service("web", WEB, namespace))
        cluster.api.create(_pod(Case(), "p", "a1", namespace=namespace))
        allow_listing(cluster, "some", "pods", namespace=namespace)
        answer = plugin.on(cluster, cluster.kubeconfig_for("some"))(
            "check", "-n", namespace, "--defaults", "-o", "json"
        )
        assert answer.status == 2
        assert 'cannot list resource "services"' in answer.stderr
        assert "default constraints are not known" in answer.stderr
        assert answer.report["constraints"] == []


def test_without_its_owner_a_pod_gets_no_defaults(cluster: ControlPlane, plugin: Plugin) -> None:
    """The selector of the Service alone would count the pods of all revisions."""
    with cluster.namespace("defaults") as namespace:
        cluster.api.create(_service("web", WEB, namespace))
        owned = {"labels": {**WEB, "rev": "r1"}, "metadata": _owner("ReplicaSet", "r1", namespace, cluster)}
        cluster.api.create(_pod(Case(), "owned", "a1", namespace=namespace, **owned))
        cluster.api.create(_pod(Case(), "bare", "a1", namespace=namespace))
        allow_listing(cluster, "other", "pods", "services", namespace=namespace)
        spread = plugin.on(cluster, cluster.kubeconfig_for("other"))
        answer = spread("check", "-n", namespace, "--defaults", "-o", "json")
        assert answer.status == 2
        assert "default constraints are not known of the pods of ReplicaSet/web-r1" in answer.stderr
        assert {row["workload"]["name"] for row in answer.report["constraints"]} == {"bare"}
