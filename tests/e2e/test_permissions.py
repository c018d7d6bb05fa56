"""Users with few permissions get a partial report, a list of what is missing, and exit status 2."""

from __future__ import annotations

import pytest

from tests.builders import ZONE, constraint
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.spread import Plugin, Spread, counts
from tests.e2e.users import allow, allow_listing
from tests.e2e.workloads import label, pods_per_zone, roll_out

pytestmark = pytest.mark.e2e

HASH = "pod-template-hash"


@pytest.fixture
def reader(control_plane: ControlPlane, namespace: str, plugin: Plugin) -> Spread:
    """Return ``kubectl spread`` for a user who may list pods in the test's namespace and nothing else."""
    user = f"reader-of-{namespace}"
    allow_listing(control_plane, user, "pods", namespace=namespace)
    return plugin.on(control_plane, control_plane.kubeconfig_for(user))


def test_a_user_who_may_only_list_pods(control_plane: ControlPlane, namespace: str, reader: Spread) -> None:
    """Selectors are evaluated, zones are those of the pods' own labels, and missing lists are reported."""
    web = deployment(
        constraints=[constraint(match=["rev"])], replicas=4, labels={"app": "web", "rev": "r1"}, namespace=namespace
    )
    changed, *_ = roll_out(control_plane, web)
    label(control_plane, namespace, changed, "rev=r2")
    answer = reader("check", "-n", namespace, "-o", "json")
    assert answer.status == 2
    assert 'cannot list resource "nodes"' in answer.stderr
    assert "Traceback" not in answer.stderr
    report = answer.report
    assert report["cluster"]["nodes"] == "inferred"
    assert report.verdict_of(changed)["keys"][0]["changedBy"]["manager"] == "kubectl-label"
    rows = report["constraints"]
    assert sorted(verdict for row in rows for verdict in row["verdicts"]) == ["merged", "stale-label"]
    assert all(row["lowerBound"] is True and "next" not in row for row in rows)


def test_inferred_zones_are_counted(control_plane: ControlPlane, namespace: str, reader: Spread) -> None:
    """Where every zone has pods, the counts are those that a user with all rights sees."""
    roll_out(control_plane, deployment(constraints=[constraint(match=[HASH])], replicas=5, namespace=namespace))
    (row,) = reader.report("-n", namespace, status=2)["constraints"]
    assert counts(row) == pods_per_zone(control_plane, namespace)
    assert (row["topologyKey"], row["lowerBound"]) == (ZONE, True)


def test_the_table_of_a_user_who_may_only_list_pods(
    control_plane: ControlPlane, namespace: str, reader: Spread
) -> None:
    """The table is on stdout, and the missing permissions are on stderr."""
    roll_out(control_plane, deployment(constraints=[constraint(match=[HASH])], replicas=5, namespace=namespace))
    answer = reader("check", "-n", namespace)
    assert answer.status == 2
    assert "domains inferred from pods' labels" in answer.stdout
    assert "No findings in 1 workload" in answer.stdout
    assert 'cannot list resource "nodes"' in answer.stderr


def test_rules_that_need_no_nodes_are_complete(control_plane: ControlPlane, namespace: str, reader: Spread) -> None:
    """With selector rules alone nodes are not requested, and the exit status is 0."""
    roll_out(control_plane, deployment(constraints=[constraint(match=[HASH])], namespace=namespace))
    report = reader.report("-n", namespace, "--select", "SPR1")
    assert [row["verdicts"] for row in report["constraints"]] == [{"merged": 3}]


def test_a_deployment_is_known_from_the_names_of_its_replica_sets(
    control_plane: ControlPlane, namespace: str, reader: Spread, spread: Spread
) -> None:
    """For a user who may not list workloads, its pods are those that a user with all rights sees."""
    roll_out(control_plane, deployment(constraints=[constraint(match=[HASH])], replicas=4, namespace=namespace))
    names = [
        sorted(pod for group in view.report("-n", namespace, status=status)["groups"] for pod in group["pods"])
        for view, status in ((spread, 0), (reader, 2))
    ]
    assert names[0] == names[1] != []
    answer = reader("explain", "deploy/web", "-n", namespace)
    assert answer.status == 2
    assert answer.stdout.startswith(f"deploy/web in {namespace}: ")
    assert "Deployments are known from the names of their ReplicaSets" in answer.stderr
    missing = reader("explain", "webs", "-n", namespace)
    assert (missing.status, missing.stdout) == (2, "")
    assert missing.stderr.endswith("did you mean deploy/web?\n")


def test_workloads_that_may_not_be_listed_are_an_error(
    control_plane: ControlPlane, namespace: str, plugin: Plugin
) -> None:
    """With pods and nodes alone the rules on pods are complete."""
    user = f"placer-of-{namespace}"
    allow_listing(control_plane, user, "pods", namespace=namespace)
    allow_listing(control_plane, user, "nodes")
    placer = plugin.on(control_plane, control_plane.kubeconfig_for(user))
    roll_out(control_plane, deployment(constraints=[constraint(match=[HASH])], replicas=3, namespace=namespace))
    assert placer("check", "-n", namespace, "--fail-on", "never").status == 2
    report = placer.report("-n", namespace, "--select", "SPR1,SPR3", "--fail-on", "never")
    assert {row["workload"]["kind"] for row in report["constraints"]} == {"Deployment"}


def test_all_namespaces_are_forbidden_in_one_line(reader: Spread) -> None:
    """``-A`` for such a user is one line that names verb and resource."""
    answer = reader("check", "-A")
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.error.startswith("Error from server (Forbidden): pods is forbidden: ")
    assert 'cannot list resource "pods" in API group "" at the cluster scope' in answer.error


def test_a_user_who_may_do_nothing(control_plane: ControlPlane, namespace: str, plugin: Plugin) -> None:
    """The apiserver's refusal is printed in one line."""
    nobody = plugin.on(control_plane, control_plane.kubeconfig_for("nobody"))
    answer = nobody("check", "-n", namespace)
    assert (answer.status, answer.stdout) == (2, "")
    assert f'cannot list resource "pods" in API group "" in the namespace "{namespace}"' in answer.error


def test_a_simulation_needs_the_lists_on_which_its_pods_depend(
    control_plane: ControlPlane, namespace: str, plugin: Plugin, spread: Spread
) -> None:
    """Budgets matter to a drain alone, and autoscalers where the number of pods changes."""
    user = f"simulator-of-{namespace}"
    workloads = {"apps": ["deployments", "replicasets", "statefulsets", "daemonsets"], "batch": ["jobs", "cronjobs"]}
    lists = {"": ["pods", "nodes", "services", "replicationcontrollers"], **workloads}
    rules = [{"apiGroups": [group], "resources": names, "verbs": ["list"]} for group, names in lists.items()]
    allow(control_plane, user, rules, "")
    simulator = plugin.on(control_plane, control_plane.kubeconfig_for(user))
    pods = roll_out(control_plane, deployment(replicas=2, namespace=namespace))
    control_plane.api.create(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "maxReplicas": 4,
            },
        }
    )
    node = control_plane.api.get(f"/api/v1/namespaces/{namespace}/pods/{pods[0]}")["spec"]["nodeName"]
    runs = ("-n", namespace, "--runs", "1", "--fail-on", "never")
    assert simulator("simulate", "--restart", "deploy/web", *runs).status == 0
    for event, resource in (("--drain", "poddisruptionbudgets"), ("--scale", "horizontalpodautoscalers")):
        value = node if event == "--drain" else "deploy/web=4"
        answer = simulator("simulate", event, value, *runs)
        assert (answer.status, f'cannot list resource "{resource}"' in answer.stderr) == (2, True)
    for replicas, of_autoscaler in ((3, "metrics of HorizontalPodAutoscaler web"), (9, "brings to 4")):
        answer = spread("simulate", "--scale", f"deploy/web={replicas}", *runs)
        assert (answer.status, of_autoscaler in " ".join(answer.stdout.split())) == (0, True)
    assert spread("simulate", "--drain", node, *runs).status == 0
