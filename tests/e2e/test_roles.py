"""Everything works with the ready-made roles, and a message names each permission that is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

import pytest

from tests.builders import ZONE, Json, constraint
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment, pod_spec, workload
from tests.e2e.spread import Answer, Plugin, Spread
from tests.e2e.users import bind
from tests.e2e.volumes import bound_claim
from tests.e2e.workloads import roll_out
from tests.rbac import DIRECTORY, Permission, manifest, permissions

pytestmark = pytest.mark.e2e

SERIAL = count(1)
CHECK = ("check", "--fail-on", "never")
"""A pod of the namespace waits, which is an error."""
DEFAULTS = (*CHECK, "--defaults")
TO = (*CHECK, "--to", "1.36")
SCALE = ("simulate", "--scale", "deploy/web=3")
WATCH = ("check", "--watch")
WATCH_DEFAULTS = ("check", "--watch", "--defaults")
MONITOR = ("monitor", "--listen=127.0.0.1:0", "--telemetry=127.0.0.1:0")
WATCHERS = {
    "services": WATCH_DEFAULTS,
    **dict.fromkeys(("persistentvolumes", "persistentvolumeclaims", "poddisruptionbudgets"), MONITOR),
}
"""Maps a resource to the command that watches it, unless it is ``check --watch``."""
EVERYWHERE = (CHECK, DEFAULTS, TO, WATCH, WATCH_DEFAULTS)
DATA = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
WAITING = ("explain", "deploy/waiting")
COMMANDS: Sequence[Sequence[str]] = (
    CHECK,
    DEFAULTS,
    TO,
    [*CHECK, "--recreate", "-o", "json"],
    ["check", "deploy/web"],
    ["check", "cj/nightly"],
    ["check", "deploy/idle"],
    ["explain", "deploy/web"],
    ["explain", "sts/db"],
    ["domains"],
    ["domains", "zone", "a"],
)


class Lost(NamedTuple):
    """A permission that a user lacks, a command that needs it, and the exit status of the command."""

    permission: Permission
    command: Sequence[str]
    status: int

    def __str__(self) -> str:
        """Return the name of the case."""
        return f"{self.permission} in {' '.join(self.command)}"

    def message(self, where: str) -> str:
        """Return the expected words on stderr."""
        verb, group, resource, _ = self.permission
        if resource == "/metrics" or (verb == "list" and resource in ("deployments", "cronjobs")):
            return f"this user may not {self.permission}"
        return f'cannot {verb} resource "{resource}" in API group "{group}" {where}'


def lost(permission: Permission) -> Lost:
    """Return the effect of a missing permission, as docs/permissions.md has it."""
    match permission:
        case ("get", _, "namespaces", "kube-system"):
            return Lost(permission, (*CHECK, "-o", "json"), 0)
        case ("get", _, "/metrics", _):
            return Lost(permission, TO, 0)
        case ("get", _, resource, _):
            return Lost(permission, ("check", f"{resource}/none"), 2)
        case ("watch", _, resource, _):
            return Lost(permission, WATCHERS.get(resource, WATCH), 2)
        case (_, _, "pods" | "nodes", _):
            return Lost(permission, CHECK, 2)
        case (_, _, "poddisruptionbudgets", _):
            return Lost(permission, ("domains", "zone", "a"), 0)
        case (_, _, "persistentvolumes" | "persistentvolumeclaims", _):
            return Lost(permission, ("explain", "sts/db"), 0)
        case (_, _, "events" | "namespaces", _):
            return Lost(permission, WAITING, 0)
    return Lost(
        permission, {"services": DEFAULTS, "horizontalpodautoscalers": SCALE}.get(permission.resource, CHECK), 2
    )


def losses(*names: str) -> list[Lost]:
    """Return a case for each permission of these roles.

    PriorityClasses matter to changed templates that name one, in a manifest. StorageClasses and the objects of node
    autoscalers have tests of their own: they are missed where a claim is not bound, or an autoscaler labels nodes.
    """
    others = {
        "priorityclasses",
        "storageclasses",
        "csidrivers",
        "nodepools",
        "nodeclaims",
        "ec2nodeclasses",
        "configmaps",
    }
    deployments = Permission("list", "apps", "deployments")
    replica_sets = Permission("list", "apps", "replicasets")
    stateful_sets = Permission("list", "apps", "statefulsets")
    controllers = Permission("list", "", "replicationcontrollers")
    return [
        *(lost(permission) for permission in permissions(*names) if permission.resource not in others),
        *(Lost(permission, DEFAULTS, 2) for permission in (replica_sets, stateful_sets, controllers)),
        Lost(replica_sets, ("check", "deploy/web"), 2),
        Lost(deployments, ("check", "deploy/idle"), 2),
        Lost(deployments, ("check", "deploy/web"), 2),
        Lost(stateful_sets, ("check", "deploy/web"), 2),
    ]


def allow(cluster: ControlPlane, name: str, user: str, namespace: str) -> None:
    """Give a user the role of a file."""
    cluster.kubectl("apply", "-n", namespace, "-f", str(DIRECTORY / f"{name}.yaml"))
    bind(cluster, manifest(name), user, namespace)


def allow_all_but(cluster: ControlPlane, permission: Permission, name: str, user: str, namespace: str) -> None:
    """Give a user the role of a file without one permission."""
    rules = [allowed.rule for allowed in permissions(name) if allowed != permission]
    role = {**manifest(name), "metadata": {"name": f"{name}-{user}", "namespace": namespace}, "rules": rules}
    cluster.api.create(role)
    bind(cluster, role, user, namespace)


def waiting(namespace: str) -> Json:
    """Return a Deployment whose pod finds no node, and that must be near pods of other namespaces."""
    anywhere = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]}
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}, "namespaceSelector": anywhere}
    return deployment(
        "waiting",
        [constraint()],
        replicas=1,
        labels={"app": "waiting"},
        namespace=namespace,
        nodeSelector={"example.com/none": ""},
        affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )


def workloads(namespace: str) -> list[Json]:
    """Return a workload of every kind, none with constraints of its own."""
    metadata = {"namespace": namespace}
    labels = {"app": "old"}
    template = {"metadata": {"labels": labels}, "spec": pod_spec()}
    job = {"template": {"spec": pod_spec(restartPolicy="Never")}}
    nightly = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": job}}
    old = {"replicas": 1, "selector": labels, "template": template}
    return [
        deployment("plain", replicas=1, labels={"app": "plain"}, namespace=namespace),
        deployment("idle", replicas=0, labels={"app": "idle"}, namespace=namespace),
        *bound_claim("data", namespace),
        workload("StatefulSet", "db", replicas=1, labels={"app": "db"}, namespace=namespace, volumes=[DATA]),
        workload("DaemonSet", "agent", labels={"app": "agent"}, namespace=namespace),
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {**metadata, "name": "once"}, "spec": job},
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {**metadata, "name": "nightly"}, "spec": nightly},
        {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {**metadata, "name": "old"}, "spec": old},
    ]


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane) -> Iterator[str]:
    """Return a namespace with pods of every kind of owner, and one that waits."""
    with control_plane.namespace("roles") as namespace:
        control_plane.apply([waiting(namespace), *workloads(namespace)])
        roll_out(control_plane, deployment("web", [constraint(match=["rev"])], namespace=namespace))
        yield namespace


def missing(answer: Answer) -> list[str]:
    """Return the lines on stderr about missing permissions."""
    assert "Traceback" not in answer.stderr
    return [line for line in answer.stderr.splitlines() if "cannot" in line or "may not" in line]


def assert_unidentified(answer: Answer) -> None:
    """Only the cluster's UID is missing in the report. There is no note, because no answer depends on the UID."""
    assert (answer.status, answer.stderr) == (0, "")
    assert "uid" not in answer.report["cluster"]


@pytest.fixture(scope="module")
def auditor(control_plane: ControlPlane, plugin: Plugin, shop: str) -> Spread:
    """Return the plugin of a user with the ClusterRole."""
    allow(control_plane, "cluster", "auditor", shop)
    return plugin.on(control_plane, control_plane.kubeconfig_for("auditor"))


@pytest.fixture(scope="module")
def developer(control_plane: ControlPlane, plugin: Plugin, shop: str) -> Spread:
    """Return the plugin of a user with the Role and the small ClusterRole."""
    for name in ("namespace", "nodes"):
        allow(control_plane, name, "developer", shop)
    return plugin.on(control_plane, control_plane.kubeconfig_for("developer"))


@pytest.mark.parametrize("user", ["auditor", "developer"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_roles_are_enough(request: pytest.FixtureRequest, shop: str, user: str, command: Sequence[str]) -> None:
    """Each command answers, and reports nothing as missing."""
    spread: Spread = request.getfixturevalue(user)
    answer = spread(*command, "-n", shop)
    assert (answer.status, missing(answer)) == (0, [])
    assert answer.stdout


@pytest.mark.parametrize("command", [CHECK, DEFAULTS, TO], ids=" ".join)
def test_the_cluster_role_is_enough_for_all_namespaces(auditor: Spread, command: Sequence[str]) -> None:
    """The commands have the flag -A."""
    answer = auditor(*command, "-A")
    assert (answer.status, missing(answer)) == (0, [])
    assert answer.stdout


def test_the_cluster_role_is_enough_for_pending_pods(auditor: Spread, shop: str) -> None:
    """The requests of pods in other namespaces are read too."""
    answer = auditor(*WAITING, "-n", shop)
    assert (answer.status, missing(answer)) == (0, [])


def test_the_role_of_one_namespace_explains_pending_pods_with_a_note(developer: Spread, shop: str) -> None:
    """The note names the missing permission to list pods of the whole cluster."""
    answer = developer(*WAITING, "-n", shop)
    assert answer.status == 0
    (line,) = missing(answer)
    assert 'cannot list resource "pods" in API group "" at the cluster scope' in line
    assert "not everything that decides where pods may go is known" in line


@pytest.mark.parametrize("case", losses("cluster"), ids=str)
def test_a_missing_permission_in_the_cluster_is_named(
    control_plane: ControlPlane, plugin: Plugin, shop: str, case: Lost
) -> None:
    """One line names it, and the exit status is the documented one."""
    user = f"less-{next(SERIAL)}"
    allow_all_but(control_plane, case.permission, "cluster", user, shop)
    spread = plugin.on(control_plane, control_plane.kubeconfig_for(user))
    everywhere = case.command in EVERYWHERE
    scope = ["-A"] if everywhere else ["-n", shop]
    answer = spread(*case.command, *scope)
    if case.permission.name:
        assert_unidentified(answer)
        return
    in_cluster = everywhere or case.command == SCALE or case.permission.resource in ("namespaces", "persistentvolumes")
    (line,) = missing(answer)
    assert case.message("at the cluster scope" if in_cluster else f'in the namespace "{shop}"') in line
    assert answer.status == case.status


@pytest.mark.parametrize("case", losses("namespace", "nodes"), ids=str)
def test_a_missing_permission_in_a_namespace_is_named(
    control_plane: ControlPlane, plugin: Plugin, shop: str, case: Lost
) -> None:
    """The permission is one of the Role or of the small ClusterRole."""
    user = f"less-{next(SERIAL)}"
    for name in ("namespace", "nodes"):
        allow_all_but(control_plane, case.permission, name, user, shop)
    spread = plugin.on(control_plane, control_plane.kubeconfig_for(user))
    answer = spread(*case.command, "-n", shop)
    if case.permission.name:
        assert_unidentified(answer)
        return
    in_cluster = case.permission in permissions("nodes")
    elsewhere = 'resource "pods" in API group "" at the cluster scope'
    (line,) = (line for line in missing(answer) if elsewhere not in line)
    assert case.message("at the cluster scope" if in_cluster else f'in the namespace "{shop}"') in line
    assert answer.status == case.status
