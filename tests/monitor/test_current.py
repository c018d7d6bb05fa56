"""The report that the monitor keeps current equals that of a fresh check, after any sequence of changes."""

from __future__ import annotations

import gc
import gzip
import json
import os
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec
import pytest

from kubectl_spread.app.hints import unknown_nodes
from kubectl_spread.audit.evaluation.evaluate import Audit, evaluate
from kubectl_spread.audit.evaluation.volumes import Volumes
from kubectl_spread.audit.merge.extra_checks import ExtraChecks
from kubectl_spread.audit.merge.verdicts import ServerFacts
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.scope import FieldRequirement, Scope
from kubectl_spread.audit.snapshot.templates import Template
from kubectl_spread.diagnosis import volumes
from kubectl_spread.diagnosis.gates import decide as decided_by_gates
from kubectl_spread.diagnosis.running_pods import running_pods
from kubectl_spread.kube.api import sparse
from kubectl_spread.kube.api.types import TopologySpreadConstraint
from kubectl_spread.kube.api.workloads import KINDS
from kubectl_spread.kube.disruption import PodDisruptionBudget
from kubectl_spread.kube.features import Behaviour, Gate, behaviour, gates
from kubectl_spread.kube.scheduler.configuration import SYSTEM, WITHOUT_DEFAULTS, Profile
from kubectl_spread.kube.scheduler.defaultconstraints import Service
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets
from kubectl_spread.kube.scheduler.volumebinding import PersistentVolume, PersistentVolumeClaim
from kubectl_spread.monitor.current import CurrentReport
from kubectl_spread.monitor.world import World
from kubectl_spread.render import structured
from kubectl_spread.render.openmetrics import exposition
from kubectl_spread.render.openmetrics.exposition import Exposition
from kubectl_spread.report import model
from kubectl_spread.rules import RULES
from kubectl_spread.rules.engine import complete
from kubectl_spread.rules.selection import SelectedRules, Selection
from tests.audits import deployment, snapshot
from tests.builders import (
    HOSTNAME,
    ZONE,
    Json,
    affinity,
    claim_json,
    constraint,
    decode,
    decode_node,
    decode_pod,
    node_json,
    pod_json,
    requirement,
    selector,
    term,
    volume_json,
)
from tests.monitor.worlds import Key, RandomCluster

_BATCHES: Final = 12
_SEEDS: Final = int(os.environ.get("KUBECTL_SPREAD_MONITOR_SEEDS", "40"))
_FIRST: Final = int(os.environ.get("KUBECTL_SPREAD_MONITOR_FIRST_SEED", "0"))
CONTEXT: Final = ServerFacts(behaviour(37, gates(37, {})), gates_known=False)
_SERVERS: Final = (
    CONTEXT,
    *(
        ServerFacts(behaviour(minor, gates(minor, switched)), gates_known=True)
        for minor, switched in ((37, {}), (37, {str(Gate.SELECTOR_MERGE): False}), (38, {}), (33, {}), (31, {}))
    ),
    *(
        ServerFacts(behaviour(minor, gates(minor, {})), gates_known=True, extra_checks=checks)
        for minor, checks in (
            (37, ExtraChecks(recreate=True)),
            (33, ExtraChecks(upgrade=(behaviour(34, gates(34, {})),))),
            (33, ExtraChecks(recreate=True, upgrade=(behaviour(38, gates(38, {})),))),
            (37, ExtraChecks(upgrade=(behaviour(31, gates(31, {})),))),
        )
    ),
)
_SCHEDULERS: Final[tuple[Mapping[str, Profile], ...]] = (
    WITHOUT_DEFAULTS,
    WITHOUT_DEFAULTS,
    SYSTEM,
    {
        "default-scheduler": Profile(
            defaults=(
                TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule"),
                TopologySpreadConstraint(max_skew=1, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
            ),
            system_defaults=False,
        )
    },
)
_OTHER_SERVER: Final = 0.2
_STORAGE: Final = ("PersistentVolumeClaim", "PersistentVolume")
CLUSTER: Final = model.Cluster(
    judged_as="1.37", version_source="flag", gates={}, gates_source="version", nodes="listed", resource_versions={}
)
_SCOPES: Final = (
    Scope(),
    Scope(),
    Scope(namespace="default"),
    Scope(exclude_namespaces=frozenset({"other"})),
    Scope(fields=(FieldRequirement("spec.nodeName", "", equal=False),)),
    Scope(fields=(FieldRequirement("status.phase", "Pending", equal=True),)),
)


class Printed(NamedTuple):
    """A report as JSON, and its metrics as lines in an order of their own."""

    json: str
    metrics: list[str]


class Monitor:
    """A world with its current report and its metrics."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.world.budgets.read = True
        self.current = CurrentReport(world, CONTEXT, SelectedRules(RULES, Selection()))
        self._exposition = Exposition()

    def printed(self) -> Printed:
        """Return the refreshed report; the metrics of the groups that were not evaluated are those of before."""
        refreshed = self.current.refresh()
        for group in refreshed.gone:
            self._exposition.remove(group)
        for group in refreshed.evaluated:
            self._exposition.put(group, group.part, group.running_pods)
        page = self._exposition.publish(CLUSTER, self.current.summary())
        body = gzip.decompress(b"".join(page.compressed(openmetrics=True)))
        return Printed(structured.json(self.current.report(CLUSTER)), sorted(body.decode().splitlines()))


def fresh(
    objects: list[Json],
    scope: Scope,
    context: ServerFacts = CONTEXT,
    schedulers: Mapping[str, Profile] = WITHOUT_DEFAULTS,
) -> Printed:
    """Return the report of a check that reads all objects."""
    audit = audited(objects, scope, context, schedulers)
    report = complete(audit, CLUSTER, SelectedRules(RULES, Selection()), audit.snapshot.skipped)
    return Printed(structured.json(report), sorted(exposition.text(report, running_pods(audit)).splitlines()))


def audited(
    objects: list[Json], scope: Scope, context: ServerFacts, schedulers: Mapping[str, Profile] = WITHOUT_DEFAULTS
) -> Audit:
    """Return the audit of all objects, with claims and volumes only if answers depend on them, as in a check."""
    others = (each for each in objects if each["kind"] not in _STORAGE)
    read = snapshot(*others, scope=scope, schedulers=schedulers, detailed=False)
    read.budgets.read = True
    audit = evaluate(read, context, nodes="none" if unknown_nodes(read) else "listed")
    if not volumes.decide(audit, explaining=False):
        return audit
    read.volumes = snapshot(*(each for each in objects if each["kind"] in _STORAGE)).volumes
    read.volumes.complete = True
    return msgspec.structs.replace(audit, volumes=Volumes(read, audit.nodes))


def apply(world: World, before: dict[Key, Json], after: dict[Key, Json]) -> None:
    """Apply the difference of two states."""
    for key in before.keys() - after.keys():
        remove(world, *key)
    for key, manifest in after.items():
        if before.get(key) is not manifest:
            put(world, manifest)


def remove(world: World, kind: str, namespace: str, name: str) -> None:
    """Remove an object."""
    match kind:
        case "Pod":
            world.remove_pod(namespace, name)
        case "Node":
            world.remove_node(name)
        case "PersistentVolumeClaim":
            world.claims.remove_claim(namespace, name)
        case "PersistentVolume":
            world.claims.remove_volume(name)
        case "Service":
            world.remove_service(namespace, name)
        case "PodDisruptionBudget":
            world.remove_budget(namespace, name)
        case _:
            world.remove_workload(kind, namespace, name)


def put(world: World, manifest: Json) -> None:
    """Apply the present state of an object."""
    match manifest["kind"]:
        case "Pod":
            world.put_pod(sparse.alone(decode_pod(manifest)))
        case "Node":
            world.put_node(decode_node(manifest))
        case "PersistentVolumeClaim":
            world.claims.put_claim(decode(manifest, PersistentVolumeClaim))
        case "PersistentVolume":
            world.claims.put_volume(decode(manifest, PersistentVolume))
        case "Service":
            world.put_service(decode(manifest, Service))
        case "PodDisruptionBudget":
            world.put_budget(decode(manifest, PodDisruptionBudget))
        case kind:
            group = manifest["apiVersion"].rpartition("/")[0]
            world.put_workload(kind, decode(manifest, KINDS[group, kind]))


def compare(monitor: Monitor, objects: dict[Key, Json], context: ServerFacts = CONTEXT) -> str:
    """Return the refreshed report, which is that of a fresh check, as are its metrics."""
    printed = monitor.printed()
    assert printed == fresh([*objects.values()], monitor.world.scope, context, monitor.world.schedulers)
    return printed.json


def in_turn(*changes: list[Json], schedulers: Mapping[str, Profile] = WITHOUT_DEFAULTS) -> list[str]:
    """Return the report after each change, which adds objects or replaces those of the same name."""
    world = World(Scope(), schedulers)
    monitor = Monitor(world)
    before: dict[Key, Json] = {}
    reports = []
    for manifests in changes:
        after = {**before, **{key_of(manifest): manifest for manifest in manifests}}
        apply(world, before, after)
        reports.append(compare(monitor, after))
        before = after
    return reports


def key_of(manifest: Json) -> Key:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def test_pods_without_owner_are_siblings_although_no_selector_selects_them_now() -> None:
    merged = constraint(selects=selector({"app": "web"}, requirement("rev", "In", "r1")), match=["rev"])
    by_hand = constraint(selects=selector({"rev": "r1"}))
    first = pod_json("p1", node="a1", labels={"app": "web", "rev": "r1"}, constraints=[merged])
    second = pod_json("p2", node="a1", labels={"app": "api", "rev": "r1"}, constraints=[by_hand])
    relabelled = pod_json("p1", node="a1", labels={"app": "web", "rev": "r2"}, constraints=[merged])
    before, after = in_turn([node_json("a1"), node_json("b1"), first, second], [relabelled])
    assert "SPR101" not in before
    assert "Its sibling still selects rev=r1" in after


def test_default_constraints_follow_the_selector_of_the_owner() -> None:
    pods = [pod_json(f"web-{node}", node=node, owner="ReplicaSet/web") for node in ("a1", "a1", "b1")]
    owner = deployment("web", kind="ReplicaSet", owner="Deployment/web")
    owners = [{**owner, "spec": {**owner["spec"], "selector": selector(labels)}} for labels in ({"app": "web"}, {})]
    before, after = in_turn([node_json("a1"), node_json("b1"), owners[0], *pods], [owners[1]], schedulers=SYSTEM)
    assert '"default": true' in before
    assert '"default": true' not in after


def test_templates_concern_each_other_where_a_controller_sets_the_label_that_is_selected() -> None:
    name, index = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"
    selecting = constraint(selects=selector({"app": "web", name: "web-0"}), match=[index])
    web = deployment("web", kind="StatefulSet", constraints=[selecting])
    other = deployment("other", kind="StatefulSet")
    before, after = in_turn([node_json("a1"), web], [other])
    assert "SPR209" in before
    assert "SPR209" not in after


def test_a_pod_that_selects_namespaces_makes_all_answers_uncertain() -> None:
    spread = constraint()
    pods = [pod_json(f"web-{number}", node="a1", constraints=[spread], owner="ReplicaSet/web") for number in range(3)]
    elsewhere = term(selects=selector({"x": "y"}), namespaceSelector=selector({"team": "a"}))
    repelling = pod_json("far", node="a2", namespace="far", labels={}, affinity=affinity("podAntiAffinity", elsewhere))
    nodes = [node_json(name) for name in ("a1", "a2", "b1", "b2")]
    before, after = in_turn([*nodes, *pods], [repelling])
    assert json.loads(before)["findings"] != json.loads(after)["findings"]


def test_workloads_with_equal_labels_share_their_series() -> None:
    """An owner reference may have any kind and name."""
    owners = ("Web/web", "WEB/web", "Web/\x07", "Web/\\x07", f"Web/{'a' * 400}", f"Web/{'a' * 400}b")
    pods = [
        pod_json(f"p{number}", node="a1", labels={"app": str(number)}, constraints=[constraint()], owner=owner)
        for number, owner in enumerate(owners)
    ]
    in_turn([node_json("a1"), *pods])


def test_conditions_of_a_node_change_nothing_and_its_resources_only_what_depends_on_them() -> None:
    cluster = RandomCluster(7, far=False)
    world = World(Scope())
    current = CurrentReport(world, CONTEXT, SelectedRules(RULES, Selection()))
    apply(world, {}, cluster.objects)
    current.refresh()
    node = next(manifest for (kind, _, _), manifest in cluster.objects.items() if kind == "Node")
    put(world, {**node, "status": {**node.get("status", {}), "conditions": [{"type": "Ready", "status": "False"}]}})
    assert current.refresh() == ([], [])


def test_each_evaluation_gives_way_first() -> None:
    world = World(Scope())
    put(world, node_json("a1"))
    for name in ("web", "api"):
        put(world, deployment(name, labels={"app": name}, constraints=[constraint(selects=selector({"app": name}))]))
    calls = []
    refreshed = CurrentReport(world, CONTEXT, SelectedRules(RULES, Selection())).refresh(lambda: calls.append(1))
    assert len(calls) == len(refreshed.evaluated) == 2


@pytest.mark.parametrize(
    ("schedulers", "constraints", "most"),
    [(WITHOUT_DEFAULTS, [constraint()], 5), (SYSTEM, [], 8)],
    ids=["own", "defaults"],
)
def test_replaced_templates_and_classes_of_pods_are_forgotten(
    schedulers: Mapping[str, Profile], constraints: list[Json], most: int
) -> None:
    """The present ones are left, those of the evaluation before, and a class that is forgotten with the next one.

    With defaults there is what they made of these three classes too.
    """
    world = World(Scope(), schedulers)
    monitor = Monitor(world)
    put(world, node_json("a1"))
    put(
        world,
        {"kind": "Service", "metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}},
    )
    for number in range(10):
        labels = {"app": "web", "revision": str(number)}
        put(world, deployment("web", labels=labels, constraints=constraints))
        put(world, pod_json("p", node="a1", labels=labels, constraints=constraints, owner="Deployment/web"))
        monitor.current.refresh()
    gc.collect()
    living = [each for each in gc.get_objects() if isinstance(each, Template | PodClass)]
    of_web = [each for each in living if each.labels.get("app") == "web" and "revision" in each.labels]
    assert len(of_web) <= most


class Failing(World):
    """A world in which the evaluation of the second group fails once."""

    failures: Iterator[bool] = iter(())

    def node_sets(self, behaviour: Behaviour) -> NodeSets:
        if next(self.failures, False):
            msg = "an evaluation failed"
            raise RuntimeError(msg)
        return super().node_sets(behaviour)


def failed() -> tuple[Monitor, dict[Key, Json]]:
    """Return a monitor after an evaluation that failed, and the objects: two workloads and a node."""
    world = Failing(Scope())
    world.failures = iter((False, True))
    monitor = Monitor(world)
    node = node_json("a1")
    objects = {key_of(node): node}
    for name in ("web", "api"):
        own = constraint(selects=selector({"app": name}))
        manifest = deployment(name, labels={"app": name}, constraints=[own])
        objects[key_of(manifest)] = manifest
    apply(world, {}, objects)
    with pytest.raises(RuntimeError):
        monitor.printed()
    return monitor, objects


def test_what_failed_is_evaluated_again() -> None:
    monitor, objects = failed()
    compare(monitor, objects)


@pytest.mark.parametrize("name", ["web", "api"])
def test_a_workload_that_is_gone_after_a_failure_has_no_metrics(name: str) -> None:
    monitor, before = failed()
    after = {key: manifest for key, manifest in before.items() if key[2] != name}
    apply(monitor.world, before, after)
    compare(monitor, after)


@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + _SEEDS))
def test_the_current_report_is_that_of_a_fresh_check(seed: int) -> None:
    schedulers = _SCHEDULERS[seed % len(_SCHEDULERS)]
    unconstrained = 0.0 if schedulers is WITHOUT_DEFAULTS else 0.5
    cluster = RandomCluster(seed, far=seed % 3 == 0, unconstrained=unconstrained)
    scope = cluster.random.choice(_SCOPES)
    world = World(scope, schedulers)
    monitor = Monitor(world)
    before: dict[Key, Json] = {}
    context = CONTEXT
    for _ in range(_BATCHES):
        apply(world, before, cluster.objects)
        compare(monitor, cluster.objects, context)
        minor = context.behaviour.minor
        default = msgspec.structs.replace(context, behaviour=behaviour(minor, gates(minor, {})), gates_known=False)
        audit = audited([*cluster.objects.values()], scope, default, schedulers)
        assert monitor.current.needs_gates == decided_by_gates(audit)
        before = dict(cluster.objects)
        if cluster.random.random() < _OTHER_SERVER:
            context = cluster.random.choice(_SERVERS)
            monitor.current.set_context(context)
        for _ in range(cluster.random.choice((1, 1, 2, 5, 20))):
            cluster.change()


def test_a_budget_that_changes_changes_what_is_advised() -> None:
    pods = [pod_json(f"web-{number}", node="a1", owner="Deployment/web", constraints=[constraint()]) for number in "12"]
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default", "generation": 1},
        "spec": {"selector": {}, "minAvailable": 1},
    }
    counted = {"observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
    reports = in_turn(
        [node_json("a1"), node_json("b1"), deployment("web", constraints=[constraint()]), *pods],
        [{**budget, "status": {**counted, "disruptionsAllowed": 1}}],
        [{**budget, "status": {**counted, "disruptionsAllowed": 0}}],
    )
    assert ["kubectl delete pod" in report for report in reports] == [True, False, False]
    assert ["/pods/web-1/eviction" in report for report in reports] == [False, True, False]


def test_a_claim_that_is_bound_to_another_volume_changes_what_is_advised() -> None:
    workload = deployment("db", kind="StatefulSet", constraints=[constraint()])
    workload["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}}]
    pods = [
        pod_json(f"db-{ordinal}", node="a1", owner="StatefulSet/db", constraints=[constraint()]) for ordinal in range(3)
    ]
    anywhere = [claim_json(f"data-db-{ordinal}", "anywhere") for ordinal in range(3)]
    in_zone_a = [claim_json(f"data-db-{ordinal}", "in-zone-a") for ordinal in range(3)]
    volumes_read = [volume_json("anywhere"), volume_json("in-zone-a", requirement(ZONE, "In", "a"))]
    reports = in_turn(
        [node_json("a1"), node_json("b1"), workload, *pods, *anywhere, *volumes_read],
        in_zone_a,
        [volume_json("in-zone-a", requirement(ZONE, "Exists"))],
    )
    movable = ["kubectl delete pod" in report for report in reports]
    assert movable == [True, False, True]
