"""A report of what lists and events say equals that of a fresh check of the same objects, after any changes."""

from __future__ import annotations

import gc
import json
import os
from typing import Final, NamedTuple

import msgspec
import pytest

from kubectl_spread.audit.evaluation.evaluate import evaluate
from kubectl_spread.audit.evaluation.volumes import Volumes
from kubectl_spread.audit.snapshot.podclasses import PodReader
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.diagnosis import needs
from kubectl_spread.diagnosis.exposure import running_pods
from kubectl_spread.follow.following import Following
from kubectl_spread.kube.features import Gate, gates
from kubectl_spread.kube.scheduler.configuration import WITHOUT_DEFAULTS
from kubectl_spread.render import openmetrics, structured
from kubectl_spread.report import model
from kubectl_spread.rules import RULES
from kubectl_spread.rules.engine import complete
from kubectl_spread.rules.model import SelectedRules, Selection
from kubectl_spread.run.hints import unknown_nodes
from kubectl_spread.run.options import CheckOptions
from kubectl_spread.run.run import CheckRun
from kubectl_spread.sources.apiserver import responses
from kubectl_spread.sources.apiserver.transport import Response
from kubectl_spread.sources.decode.resources import PODS, SPARSE_PODS
from tests.audits import deployment, snapshot
from tests.builders import (
    ZONE,
    Json,
    affinity,
    claim_json,
    constraint,
    node_json,
    pod_json,
    requirement,
    selector,
    term,
    volume_json,
)
from tests.follow.simulated import SimulatedCluster
from tests.follow.worlds import Key, RandomCluster
from tests.fuzz import corpus

_BATCHES: Final = 12
_SEEDS: Final = int(os.environ.get("KUBECTL_SPREAD_MONITOR_SEEDS", "40"))
_FIRST: Final = int(os.environ.get("KUBECTL_SPREAD_MONITOR_FIRST_SEED", "0"))
_STORAGE: Final = ("PersistentVolumeClaim", "PersistentVolume")
_OTHER_SERVER: Final = 0.2
_OPTIONS: Final = (
    CheckOptions(all_namespaces=True),
    CheckOptions(all_namespaces=True, recreate=True, to_version="1.38"),
    CheckOptions(all_namespaces=True, defaults=True),
    CheckOptions(namespace="default"),
    CheckOptions(all_namespaces=True, exclude_namespace=("other",), defaults=True),
    CheckOptions(all_namespaces=True, field_selector="spec.nodeName!="),
    CheckOptions(all_namespaces=True, field_selector="status.phase=Pending"),
)


class Printed(NamedTuple):
    """A report as JSON, and its metrics."""

    json: str
    metrics: str


def current(following: Following, options: CheckOptions) -> tuple[CheckRun, Printed]:
    """Evaluate what is stored."""
    with following.evaluation() as run:
        report = run.report()
        return run, Printed(structured.json(report), openmetrics.text(report, run.running_pods()))


def fresh(objects: list[Json], run: CheckRun, cluster: model.Cluster) -> Printed:
    """Return the report of a check that reads all objects, by the same version and gates as a run."""
    scope, facts = run.scope, run.audit.context
    schedulers = run.audit.snapshot.schedulers
    others = [
        each
        for each in objects
        if each["kind"] not in _STORAGE
        and (each["kind"] == "Node" or scope.namespace in ("", each["metadata"]["namespace"]))
    ]
    read = snapshot(*others, scope=scope, schedulers=schedulers, detailed=False)
    read.budgets.read = True
    audit = evaluate(read, facts, nodes="none" if unknown_nodes(read) else "listed")
    if needs.claims_decide(audit):
        read.volumes = snapshot(*(each for each in objects if each["kind"] in _STORAGE)).volumes
        read.volumes.complete = True
        audit = msgspec.structs.replace(audit, volumes=Volumes(read, audit.nodes))
    report = complete(audit, cluster, SelectedRules(RULES, Selection()), read.skipped)
    return Printed(structured.json(report), openmetrics.text(report, running_pods(audit)))


def compare(cluster: SimulatedCluster, following: Following, options: CheckOptions) -> Printed:
    """Return the current report, which is that of a fresh check."""
    run, printed = current(following, options)
    assert printed == fresh([*cluster.objects.values()], run, run.report().cluster)
    return printed


def in_turn(*changes: list[Json], defaults: bool = False) -> list[str]:
    """Return the report after each change, which adds objects or replaces those of the same name."""
    options = CheckOptions(all_namespaces=True, defaults=defaults)
    cluster = SimulatedCluster({})
    following = cluster.following(options)
    compare(cluster, following, options)
    reports = []
    for manifests in changes:
        cluster.set({**cluster.objects, **{key_of(manifest): manifest for manifest in manifests}})
        assert not following.unchanged
        reports.append(compare(cluster, following, options).json)
        assert following.unchanged
    return reports


def key_of(manifest: Json) -> Key:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + _SEEDS))
def test_the_current_report_is_that_of_a_fresh_check(seed: int) -> None:
    options = _OPTIONS[seed % len(_OPTIONS)]
    world = RandomCluster(seed, far=seed % 3 == 0, unconstrained=0.5 if options.defaults else 0.0)
    cluster = SimulatedCluster(world.objects)
    following = cluster.following(options)
    for _ in range(_BATCHES):
        compare(cluster, following, options)
        if world.random.random() < _OTHER_SERVER:
            cluster.minor = world.random.choice((31, 33, 36, 37))
            switched = {str(Gate.SELECTOR_MERGE): False} if cluster.minor == 37 and world.random.random() < 0.5 else {}
            cluster.gates = gates(cluster.minor, switched)
        for _ in range(world.random.choice((1, 1, 2, 5, 20))):
            world.change()
        cluster.set(world.objects)


def test_fields_that_are_not_read_change_nothing() -> None:
    pod = pod_json("p1", node="a1", constraints=[constraint()])
    node = node_json("a1")
    options = CheckOptions(all_namespaces=True)
    cluster = SimulatedCluster({key_of(each): each for each in (pod, node)})
    following = cluster.following(options)
    compare(cluster, following, options)
    cluster.set({key_of(pod): {**pod, "status": {"message": "new"}}, key_of(node): {**node, "status": {"images": []}}})
    assert following.unchanged
    cluster.set({key_of(node): node})
    assert not following.unchanged


def test_a_pod_of_a_list_is_that_of_an_event() -> None:
    """Lists are decoded sparsely. A pod of an event would otherwise be a change."""
    recorded = Response(200, "application/vnd.kubernetes.protobuf", corpus.pages()["pods"])
    listed = responses.ListDecoder(SPARSE_PODS).page(recorded)
    decoded = responses.ListDecoder(PODS).page(recorded)
    reader = PodReader(Scope(), WITHOUT_DEFAULTS)
    assert [reader.read(pod) for pod in listed] == [reader.read_alone(pod) for pod in decoded]


def test_classes_of_pods_that_are_gone_are_forgotten() -> None:
    options = CheckOptions(all_namespaces=True)
    cluster = SimulatedCluster({})
    following = cluster.following(options)
    for number in range(10):
        labels = {"app": "web", "revision": str(number)}
        pod = pod_json("p", node="a1", labels=labels, constraints=[constraint()])
        cluster.set({key_of(pod): pod})
        current(following, options)
    gc.collect()
    classes = [each for each in gc.get_objects() if isinstance(each, PodClass)]
    assert len([each for each in classes if "revision" in each.labels]) <= 2


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
    before, after = in_turn([node_json("a1"), node_json("b1"), owners[0], *pods], [owners[1]], defaults=True)
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


def test_a_budget_that_changes_changes_what_is_advised() -> None:
    pods = [pod_json(f"web-{number}", node="a1", owner="Deployment/web", constraints=[constraint()]) for number in "12"]
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default", "generation": 1},
        "spec": {"selector": {}, "minAvailable": 1},
    }
    counted = {"observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
    web = deployment("web", constraints=[constraint()])
    web["spec"]["replicas"] = 2
    reports = in_turn(
        [node_json("a1"), node_json("b1"), web, *pods],
        [{**budget, "status": {**counted, "disruptionsAllowed": 1}}],
        [{**budget, "status": {**counted, "disruptionsAllowed": 0}}],
    )
    assert ["kubectl delete pod" in report for report in reports] == [True, False, False]
    assert ["/pods/web-1/eviction" in report for report in reports] == [False, True, False]


def test_a_claim_that_is_bound_to_another_volume_changes_what_is_advised() -> None:
    workload = deployment("db", kind="StatefulSet", constraints=[constraint()])
    workload["spec"] |= {"replicas": 3, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
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
