"""Under a PodDisruptionBudget ``check`` prints evictions that the budget allows, or what would allow one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import Json, constraint
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.shell import paste
from tests.e2e.spread import Plugin, Spread
from tests.e2e.users import allow
from tests.e2e.workloads import pods, roll_out, scale_down_unevenly, wait_for_rollout

pytestmark = pytest.mark.e2e

BUDGETS = "/apis/policy/v1/namespaces/{}/poddisruptionbudgets"


def budget(namespace: str, minimum: int) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "cart", "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": minimum},
    }


def finding(spread: Spread, namespace: str) -> Json | None:
    answer = spread("check", "-n", namespace, "-o", "json")
    assert answer.status == 0, answer.stderr
    found: list[Json] = [each for each in answer.report["findings"] if each["code"] == "SPR301"]
    assert len(found) < 2
    return found[0] if found else None


def wait_for_disruptions(cluster: ControlPlane, namespace: str, number: int) -> None:
    """Wait until the disruption controller has counted the pods."""

    def counted() -> bool:
        (each,) = cluster.api.get(BUDGETS.format(namespace))["items"]
        status, generation = each.get("status", {}), each["metadata"]["generation"]
        expected = len(pods(cluster, namespace))
        current = (status.get("observedGeneration"), status.get("currentHealthy"), status.get("disruptionsAllowed"))
        return current == (generation, expected, number)

    cluster.wait_for(counted, what=f"the budget allows {number} disruptions")


@pytest.fixture
def uneven(control_plane: ControlPlane, namespace: str) -> str:
    """Return a namespace with two, one and no pods of a Deployment in the zones."""
    web = deployment(constraints=[constraint()], replicas=6, labels={"app": "web"}, namespace=namespace)
    roll_out(control_plane, web)
    scale_down_unevenly(control_plane, namespace, "web")
    wait_for_rollout(control_plane, "deployment/web", namespace)
    return namespace


def test_the_printed_eviction_ends_the_skew_within_the_budget(
    control_plane: ControlPlane, spread: Spread, uneven: str, tmp_path: Path
) -> None:
    control_plane.api.create(budget(uneven, 2))
    wait_for_disruptions(control_plane, uneven, 1)
    reported = finding(spread, uneven)
    assert reported is not None
    assert reported["fix"].endswith("Disruption budget cart allows 1 disruption now.")
    (command,) = reported["commands"]
    assert f"/api/v1/namespaces/{uneven}/pods/" in command
    assert "kubectl delete" not in command
    pasted = paste(command, tmp_path, spread.environment)
    assert (pasted.returncode, '"status":"Success"' in pasted.stdout) == (0, True), pasted.stderr
    wait_for_rollout(control_plane, "deployment/web", uneven)
    wait_for_disruptions(control_plane, uneven, 1)
    assert finding(spread, uneven) is None


def test_nothing_is_removed_while_the_budget_allows_no_disruption(
    control_plane: ControlPlane, spread: Spread, uneven: str, tmp_path: Path
) -> None:
    """A smaller minAvailable allows one, as the answer says; its eviction is then printed, and works."""
    control_plane.api.create(budget(uneven, 3))
    wait_for_disruptions(control_plane, uneven, 0)
    reported = finding(spread, uneven)
    assert reported is not None
    assert "commands" not in reported
    assert reported["fix"] == (
        "No pod can be evicted now. Disruption budget cart allows no disruption now: it needs 3 healthy pods "
        "and has 3 pods. Only one more replica or a smaller minAvailable lets it allow one."
    )
    control_plane.api.patch(f"{BUDGETS.format(uneven)}/cart", {"spec": {"minAvailable": 2}})
    wait_for_disruptions(control_plane, uneven, 1)
    reported = finding(spread, uneven)
    assert reported is not None
    pasted = paste("\n".join(reported["commands"]), tmp_path, spread.environment)
    assert pasted.returncode == 0, pasted.stderr
    wait_for_rollout(control_plane, "deployment/web", uneven)
    assert finding(spread, uneven) is None


def test_one_more_replica_lets_the_budget_allow_a_disruption(
    control_plane: ControlPlane, spread: Spread, uneven: str
) -> None:
    """The new pod goes to the empty zone, so that there is nothing to evict any more."""
    control_plane.api.create(budget(uneven, 3))
    wait_for_disruptions(control_plane, uneven, 0)
    control_plane.kubectl("scale", "deploy/web", "-n", uneven, "--replicas=4")
    wait_for_rollout(control_plane, "deployment/web", uneven)
    wait_for_disruptions(control_plane, uneven, 1)
    assert finding(spread, uneven) is None


def test_without_the_permission_to_list_budgets_the_fix_says_that_they_were_not_read(
    control_plane: ControlPlane, plugin: Plugin, uneven: str
) -> None:
    control_plane.api.create(budget(uneven, 3))
    user = f"no-budgets-{uneven}"
    groups = {"": ["pods", "nodes", "replicationcontrollers"], "apps": ["*"], "batch": ["*"]}
    rules = [{"apiGroups": [group], "resources": names, "verbs": ["list"]} for group, names in groups.items()]
    allow(control_plane, user, rules)
    spread = plugin.on(control_plane, control_plane.kubeconfig_for(user))
    reported = finding(spread, uneven)
    assert reported is not None
    assert reported["fix"].endswith("Disruption budgets were not read, and kubectl delete ignores them.")
    answer = spread("check", "-n", uneven)
    assert answer.status == 0
    assert 'cannot list resource "poddisruptionbudgets" in API group "policy"' in answer.error


def test_budgets_are_requested_only_where_a_fix_may_remove_pods(
    control_plane: ControlPlane, plugin: Plugin, namespace: str
) -> None:
    web = deployment(constraints=[constraint()], replicas=3, labels={"app": "web"}, namespace=namespace)
    roll_out(control_plane, web)
    user = f"even-{namespace}"
    rules = [{"apiGroups": ["", "apps", "batch"], "resources": ["*"], "verbs": ["list"]}]
    allow(control_plane, user, rules)
    answer = plugin.on(control_plane, control_plane.kubeconfig_for(user))("check", "-n", namespace)
    assert (answer.status, answer.stderr) == (0, "")
