"""The trials of changes give the same answers in whichever order pods are read."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.engine.answers import Shortfall, Trial
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.controllers import DaemonRollout, Rollout
from kubectl_spread.engine.engine import Engine
from kubectl_spread.engine.world import World
from kubectl_spread.kube.api.objects import ObjectRef
from tests.audits import audit, deployment
from tests.builders import HOSTNAME, ZONE, Json, affinity, constraint, node_json, pod_json, term
from tests.plan import small
from tests.simulate import clusters

NODES = [node_json(name) for name in ("a1", "b1", "c1")]
SOFT = constraint(key=HOSTNAME, when="ScheduleAnyway")


def engine_of(evaluation: Audit) -> Engine:
    return Engine(evaluation.snapshot, evaluation.context.behaviour)


def pod(name: str, node: str, labels: dict[str, str]) -> Json:
    return pod_json(name, node=node, constraints=[SOFT], owner="ReplicaSet/web", labels={"app": "web", **labels})


@pytest.mark.parametrize("last", ["b1", "c1"])
def test_pods_that_differ_in_a_label_of_their_own_have_equal_replacements(last: str) -> None:
    """The first pod of each class, which stands for all of them, is on another node."""
    pods = [pod("web-1", "a1", {}), pod("web-2", last, {"debug": "yes"}), pod("web-3", "a1", {"debug": "yes"})]
    orders = [pods, pods[::-1]]
    removed = []
    for order in orders:
        evaluation = audit(*order, *NODES)
        crowded = sorted((each for each in evaluation.pods if each.node == "a1"), key=lambda each: each.name)
        removed.append([each.name for each in engine_of(evaluation).removable(crowded).pods])
    assert removed == [["web-1", "web-3"]] * 2


@pytest.mark.parametrize(("zones", "waiting"), [("ab", 1), ("abc", 0)])
def test_a_restart_of_a_stateful_set_cannot_end_while_its_pending_pod_finds_no_node(zones: str, waiting: int) -> None:
    """A pod is pending already, but the restart is to replace all of them. Zones a and b may have one pod each."""
    spread = constraint(minDomains=3)
    placed = [("web-0", "a1"), ("web-1", "b1"), ("web-2", "")]
    pods = [pod_json(name, node=node, constraints=[spread], owner="StatefulSet/web") for name, node in placed]
    web = deployment(constraints=[spread], kind="StatefulSet")
    web["spec"]["replicas"] = 3
    evaluation = audit(web, *pods, *(node_json(f"{zone}1") for zone in zones))
    shortfall = engine_of(evaluation).rollout(ObjectRef("default", "StatefulSet", "web")).shortfall
    assert (shortfall.pods if shortfall else 0) == waiting


@pytest.mark.parametrize(("cordoned", "helps"), [(False, True), (True, False)])
def test_a_restart_is_stuck_until_an_old_pod_may_go_first(*, cordoned: bool, helps: bool) -> None:
    """Each node has one of the pods that repel each other, and the strategy adds a pod before it removes one."""
    apart = affinity("podAntiAffinity", term(key=HOSTNAME))
    web = deployment(affinity=apart)
    owned = deployment("web-1", kind="ReplicaSet", owner="Deployment/web", affinity=apart)
    web["spec"] |= {"replicas": 3, "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}
    owned["spec"]["replicas"] = 3
    pods = [pod_json(f"web-{name}", node=name, owner="ReplicaSet/web-1", affinity=apart) for name in ("a1", "b1", "c1")]
    nodes = [node_json(name) for name in ("a1", "b1", "c1")]
    for node in nodes:
        node["spec"]["unschedulable"] = cordoned
    engine = engine_of(audit(web, owned, *pods, *nodes, detailed=False))
    workload = ObjectRef("default", "Deployment", "web")
    assert engine.rollout(workload).shortfall is not None
    roomier = engine.roomier_rollout(workload)
    assert (roomier is not None and roomier[0].commands[0][:3] == ("kubectl", "patch", "deploy/web")) is helps


def test_a_rollout_that_surely_ends_ends_when_it_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rollouts that are not simulated, because all new pods have room, leave no pod waiting when they are."""
    evaluations = [audit(*small.cluster_of(f"ends-{seed}", varied=True)) for seed in range(150)]
    workloads = [
        (evaluation, workload)
        for evaluation in evaluations
        for workload in sorted(evaluation.snapshot.workload_objects)
        if workload.kind == "Deployment"
    ]
    surely_ends, answers = Rollout.surely_ends, []

    def noted(rollout: Rollout, cluster: SimulatedCluster) -> bool:
        answers.append(surely_ends(rollout, cluster))
        return False

    monkeypatch.setattr(Rollout, "surely_ends", noted)
    ended = Counter[bool]()
    for evaluation, workload in workloads:
        answers.clear()
        shortfall = engine_of(evaluation).rollout(workload).shortfall
        ended[answers[0]] += 1
        assert not answers[0] or shortfall is None, (workload, shortfall)
    assert ended[True] > 20
    assert ended[False] > 20


@pytest.mark.parametrize(("tainted", "simulated"), [(False, False), (True, True)])
def test_a_rollout_of_a_daemon_set_is_simulated_only_where_a_node_may_refuse(
    monkeypatch: pytest.MonkeyPatch, *, tainted: bool, simulated: bool
) -> None:
    agent = deployment("agent", kind="DaemonSet")
    pods = [pod_json(f"agent-{name}", node=name, owner="DaemonSet/agent") for name in ("a1", "b1")]
    taints = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}] if tainted else []
    nodes = [node_json("a1"), {**node_json("b1"), "spec": {"taints": taints}}]
    steps, step = [], DaemonRollout.step

    def counted(rollout: DaemonRollout, cluster: SimulatedCluster) -> bool:
        steps.append(rollout)
        return step(rollout, cluster)

    monkeypatch.setattr(DaemonRollout, "step", counted)
    engine_of(audit(agent, *pods, *nodes)).rollout(ObjectRef("default", "DaemonSet", "agent"))
    assert bool(steps) is simulated


@pytest.mark.parametrize(("rival", "waiting"), [("3", 1), ("4", 0), ("", 0)], ids=["fits later", "too large", "none"])
def test_a_waiting_pod_may_take_the_room_that_an_old_pod_leaves(rival: str, waiting: int) -> None:
    """The node has room for the new pod and for the other one only without the old pod, and not for both."""
    pace = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    web = clusters.deployment("web", ["a1"], strategy=pace, cpu="2")
    other = [clusters.pod("other", "", clusters.template("other", cpu=rival))] if rival else []
    engine = engine_of(audit(clusters.node("a1", zone="a", cpu=3), *web, *other))
    shortfall = engine.rollout(ObjectRef("shop", "Deployment", "web")).shortfall
    assert (shortfall.pods if shortfall else 0) == waiting


def test_a_trial_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pods of the cluster are filed as before, so that answers do not depend on what was asked earlier."""
    monkeypatch.setattr(Rollout, "surely_ends", lambda *_: False)
    asked = 0
    for seed in range(40):
        evaluation = audit(*small.cluster_of(f"trace-{seed}", varied=True))
        engine = engine_of(evaluation)
        filed = [(pod.name, pod.node) for pod in engine._settled.all_pods()]
        for workload in sorted(evaluation.snapshot.workload_objects):
            if workload.kind in ("Deployment", "StatefulSet"):
                engine.rollout(workload)
                asked += 1
                assert [(pod.name, pod.node) for pod in engine._settled.all_pods()] == filed
    assert asked > 50


def test_each_template_is_tried_as_it_is() -> None:
    """Templates that are gone have given their identity to later ones."""
    web = clusters.deployment("web", ["a1"])
    evaluation = audit(clusters.node("a1", zone="a", cpu=4), *web)
    engine, workload = engine_of(evaluation), ObjectRef("shop", "Deployment", "web")
    template = evaluation.snapshot.workload_objects[workload].template
    for number in range(20):
        zone = "ab"[number // 2 % 2]
        tried = replace(template, spec=replace(template.spec, node_selector={ZONE: zone}))
        assert (engine.rollout(workload, tried).shortfall is None) is (zone == "a"), number


def test_a_run_leaves_nothing_in_the_next_one() -> None:
    """Runs share how pods were read; a terminating pod takes room where the cluster is as it was read."""
    gone = pod("web-3", "c1", {})
    gone["metadata"]["deletionTimestamp"] = "2026-11-29T09:00:00Z"
    evaluation = audit(pod("web-1", "a1", {}), pod("web-2", "", {}), gone, *NODES)
    world = World(evaluation.snapshot, evaluation.context.behaviour, None)
    used = []
    for _ in range(2):
        cluster, as_read = SimulatedCluster(world, Random(0)), SimulatedCluster(world, Random(0), now=True)
        used.append([[sum(amounts.values()) for amounts in each.state.used] for each in (cluster, as_read)])
        assert [pod.node for pod in cluster.all_pods()] == ["a1", ""]
        cluster.settle()
        cluster.delete_nodes({"a1"})
    assert used[0] == used[1]
    assert [sum(map(bool, amounts)) for amounts in used[0]] == [1, 2]


@pytest.mark.parametrize(("unavailable", "ends"), [(1, False), (2, True)])
def test_a_rollout_ends_or_is_stuck_where_a_pod_waits_as_before_it(unavailable: int, *, ends: bool) -> None:
    """The node has room for one of the two pods. The other one waits, and its replacement too."""
    pace = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": unavailable}}
    web = clusters.deployment("web", ["a1", ""], strategy=pace, cpu="3")
    evaluation = audit(clusters.node("a1", zone="a", cpu=4), *web)
    workload = ObjectRef("shop", "Deployment", "web")
    template = evaluation.snapshot.workload_objects[workload].template
    trial = engine_of(evaluation).rollout(
        workload, replace(template, spec=replace(template.spec, node_selector={ZONE: "a"}))
    )
    left = Shortfall(workload, 1, "1 node: Insufficient cpu")
    assert trial == (Trial(waiting=left) if ends else Trial(left))


@pytest.mark.parametrize(("zones", "together"), [("ab", {ZONE}), ("aa", set()), ("a", set())])
def test_a_rollout_names_the_zone_in_which_all_pods_may_be_afterwards(zones: str, together: set[str]) -> None:
    """Zone b is closed. Two nodes of zone a take the pods then, one each, because they keep away from each other."""
    nodes = [clusters.node("a1", zone="a", cpu=4), clusters.node("a2", zone="a", cpu=4)]
    closed = clusters.node("b1", zone="b", cpu=4)
    closed["spec"] = {"unschedulable": True}
    apart = affinity("podAntiAffinity", term(key=HOSTNAME))
    running = ["a1", *(["b1"] if zones == "ab" else ["a2"] if zones == "aa" else [])]
    pace = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    web = clusters.deployment("web", running, strategy=pace, affinity=apart)
    trial = engine_of(audit(*nodes, closed, *web)).rollout(ObjectRef("shop", "Deployment", "web"))
    assert trial == Trial(together=frozenset(together))


@pytest.mark.parametrize(("room", "waiting"), [(1, 1), (2, 0)])
def test_pods_may_wait_after_a_node_is_opened_too(room: int, waiting: int) -> None:
    """Two pods wait for a node that is cordoned."""
    nodes = [clusters.node("a1", cpu=room, cordoned=True), clusters.node("b1", cpu=1)]
    engine = engine_of(audit(*nodes, *clusters.deployment("web", ["b1", "", ""])))
    left = engine.waiting_when_open(["a1"], ObjectRef("shop", "Deployment", "web"))
    assert (left.pods if left else 0) == waiting
    assert left is None or left.why == "2 nodes: Insufficient cpu"
