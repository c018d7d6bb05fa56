"""Mistakes on the command line: an error names what was probably meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kubectl_spread.cli import cli
from tests.builders import Json, constraint, node_json, pod_json
from tests.cli import test_identity
from tests.cli.test_identity import LISTS, Routed, configure
from tests.sources.server import Reply, Request, serve, status

HASH = "86bd8d497c"
WORKLOADS = ("deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs", "replicationcontrollers")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def live(directory: Path, *arguments: str, server_class: type[Routed] = Routed) -> Result:
    """Run a command against a server with one pod and the namespaces ``default`` and ``shop``."""
    with serve(Reply()) as server:
        server.__class__ = server_class
        configure(directory / "config", server)
        return run(*arguments, "--kubeconfig", str(directory / "config"))


@pytest.fixture
def manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current directory, with a manifest ``m/good.yaml`` and the empty directory ``rollout/web``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", "/no/where")
    (tmp_path / "m").mkdir()
    (tmp_path / "m/good.yaml").write_text(json.dumps(pod_json("web-1")))
    (tmp_path / "good.yaml").write_text(json.dumps(pod_json("web-1")))
    (tmp_path / "rollout/web").mkdir(parents=True)
    return tmp_path


@pytest.mark.usefixtures("manifests")
@pytest.mark.parametrize("command", ["check", "explain"])
@pytest.mark.parametrize(
    ("argument", "question"),
    [
        ("m/good.yaml", "did you mean -f m/good.yaml?"),
        ("m/missing.json", "did you mean -f m/missing.json?"),
        ("m/", "did you mean -f m/?"),
        ("./m", "did you mean -f ./m?"),
        ("a/b/c.yaml", "did you mean -f a/b/c.yaml?"),
        ("good.yaml", "did you mean -f good.yaml? (a pod of that name: pod/good.yaml)"),
    ],
)
def test_a_path_is_no_name_and_contacts_no_cluster(command: str, argument: str, question: str) -> None:
    outcome = run(command, argument)
    expected = f'error: "{argument}" is not the name of an object; {question}\n'
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (2, "", expected)


@pytest.mark.usefixtures("manifests")
@pytest.mark.parametrize(
    ("argument", "line"),
    [
        ("deploy/a/b", 'arguments in TYPE/NAME form must have a single type and name, not "deploy/a/b"'),
        ("deploy/", 'arguments in TYPE/NAME form must have a single type and name, not "deploy/"'),
        ("m", 'pod or workload "m" not found in namespace default; did you mean -f m?'),
        ("pod/good.yaml", "Error from server (NotFound): no"),
        ("missing.yaml", 'pod or workload "missing.yaml" not found in namespace default'),
    ],
)
def test_what_can_be_a_name_is_looked_up(argument: str, line: str, manifests: Path) -> None:
    """A directory may have the name of a workload."""
    outcome = live(manifests, "check", argument, server_class=WithoutSuchObjects)
    assert (outcome.exit_code, outcome.stderr.removeprefix("error: ")) == (2, f"{line}\n")


@pytest.mark.usefixtures("manifests")
def test_a_path_may_look_like_the_type_and_name_of_a_custom_object(manifests: Path) -> None:
    outcome = live(manifests, "check", "rollout/web")
    assert outcome.exit_code == 2
    assert outcome.stderr.endswith("; did you mean -f rollout/web?\n")


class WithoutSuchObjects(Routed):
    """Has none of the objects that are requested by name."""

    def next(self, request: Request) -> Reply:
        resource, name = request.path.split("/")[-2:]
        if resource in LISTS and name not in LISTS and resource != "namespaces":
            self.requests.append(request)
            return status(404, "NotFound", "no")
        return super().next(request)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--context", "foo", "check"), "--context comes after the command: cli check --context …"),
        (("-n", "shop", "explain", "deploy/web"), "-n comes after the command: cli explain -n …"),
        (("--token", "secret"), "--token comes after the command: cli check --token …"),
        (("--replicas", "+3", "explain", "deploy/web"), "--replicas comes after the command: cli explain --replicas …"),
        (("--replicas", "+3", "check"), "No such option '--replicas'"),
        (("--nonsense", "check"), "No such option '--nonsense'"),
    ],
)
def test_an_option_before_its_command_is_a_clear_error(arguments: tuple[str, ...], line: str) -> None:
    outcome = run(*arguments)
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (2, "", f"error: {line} (see cli --help)\n")


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server have nodes and no objects in namespaces."""
    lists = {plural: (kind, objects if plural == "nodes" else []) for plural, (kind, objects) in LISTS.items()}
    monkeypatch.setattr(test_identity, "LISTS", lists)


class WithoutNamespaces(Routed):
    """Forbids listing namespaces."""

    def next(self, request: Request) -> Reply:
        return status(403, "Forbidden", "no") if request.path.endswith("/namespaces") else super().next(request)


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("command", [("check",), ("check", "deploy/web"), ("explain", "deploy/web"), ("domains",)])
def test_a_misspelt_namespace_is_an_error_with_the_nearest_name(command: tuple[str, ...], tmp_path: Path) -> None:
    outcome = live(tmp_path, *command, "-n", "shpo")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == 'error: namespace "shpo" not found; did you mean "shop"?\n'


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize(("namespace", "server_class"), [("shop", Routed), ("shpo", WithoutNamespaces)])
def test_an_empty_namespace_is_empty(namespace: str, server_class: type[Routed], tmp_path: Path) -> None:
    """Without permission to list namespaces nobody can tell whether there is such a namespace."""
    outcome = live(tmp_path, "check", "-n", namespace, server_class=server_class)
    assert (outcome.exit_code, outcome.stderr) == (0, f"No resources found in {namespace} namespace.\n")


def of_deployment(name: str, node: str, replica_set: str = f"web-{HASH}") -> Json:
    pod = pod_json(name, node=node, labels={"app": "web", "pod-template-hash": HASH}, constraints=[constraint()])
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set, "uid": "u", "controller": True}
    pod["metadata"] |= {"ownerReferences": [owner], "uid": f"uid-{name}"}
    return pod


class WithoutWorkloads(WithoutSuchObjects):
    """Forbids listing and getting workloads."""

    def next(self, request: Request) -> Reply:
        reply = status(403, "Forbidden", "no")
        return reply if set(request.path.split("/")) & set(WORKLOADS) else super().next(request)


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [of_deployment("web-1", "a1"), of_deployment("web-2", "a1"), of_deployment("db-1", "b1", "db-1")]
    nodes = [node_json("a1"), node_json("b1")]
    monkeypatch.setattr(test_identity, "LISTS", {**LISTS, "pods": ("Pod", pods), "nodes": ("Node", nodes)})


@pytest.mark.usefixtures("deployed")
@pytest.mark.parametrize("name", ["deploy/web", "web", "deployments.apps/web"])
def test_a_deployment_is_explained_by_the_names_of_its_replica_sets(name: str, tmp_path: Path) -> None:
    """The user may not list workloads."""
    outcome = live(tmp_path, "explain", name, server_class=WithoutWorkloads)
    assert outcome.exit_code == 2
    assert outcome.stdout.startswith(
        "deploy/web in default: 1 warning and 1 note.\n\nwarning SPR501 all-on-one-node, 2 pods\n"
    )
    assert "no: Deployments are known from the names of their ReplicaSets" in outcome.stderr


@pytest.mark.usefixtures("deployed")
def test_only_names_with_the_hash_of_the_pods_show_deployments(tmp_path: Path) -> None:
    outcome = live(tmp_path, "check", "--select", "SPR3", "-o", "json", server_class=WithoutWorkloads)
    rows: list[Any] = json.loads(outcome.stdout)["constraints"]
    workloads = [(row["workload"]["kind"], row["workload"]["name"]) for row in rows]
    assert (outcome.exit_code, workloads) == (0, [("Deployment", "web"), ("ReplicaSet", "db-1")])


@pytest.mark.usefixtures("deployed")
def test_a_misspelt_deployment_is_suggested_without_rights_on_workloads(tmp_path: Path) -> None:
    outcome = live(tmp_path, "explain", "webs", server_class=WithoutWorkloads)
    assert outcome.exit_code == 2
    assert outcome.stderr.endswith('pod or workload "webs" not found in namespace default; did you mean deploy/web?\n')


@pytest.mark.parametrize(
    "command", [("check",), ("explain", "deploy/web"), ("domains",), ("plan",), ("simulate", "--lose", "a1")]
)
@pytest.mark.parametrize("name", ["shop,web", "Shop", "shop."])
def test_no_namespace_has_such_a_name(command: tuple[str, ...], name: str) -> None:
    """In files there would be nothing in it, so that a pipeline would see no finding."""
    outcome = run(*command, "-n", name, "-f", "examples/cluster.json")
    message = f'error: -n: "{name}" is not the name of a namespace (write one name, or -A for all)\n'
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (2, "", message)
