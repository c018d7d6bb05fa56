"""Names on the command line: pods and workloads by their plain names, and suggestions for misspelt ones."""

from __future__ import annotations

import json

import pytest

from kubectl_spread.phrases import nearest
from tests.audits import deployment
from tests.builders import Json, constraint, node_json, pod_json
from tests.cli.test_check import run
from tests.simulate.clusters import nodes

CART = [
    deployment("cart"),
    deployment("cart-7", kind="ReplicaSet", owner="Deployment/cart"),
    pod_json("cart-7-x", node="a1", owner="ReplicaSet/cart-7", constraints=[constraint()]),
    node_json("a1"),
]
STATEFUL = pod_json("cart-0", node="a1", owner="StatefulSet/cart", constraints=[constraint()])


def explain(*objects: Json, name: str) -> tuple[int, str, str]:
    """Return the exit status of ``explain NAME -o json`` on objects, the explained object, and stderr."""
    stdin = "\n".join(json.dumps(manifest) for manifest in objects)
    outcome = run("explain", name, "-f", "-", "--server-version", "1.37", "-o", "json", stdin=stdin)
    explained = json.loads(outcome.stdout)["object"] if outcome.stdout else {}
    return outcome.exit_code, "/".join(explained.values()), outcome.stderr


@pytest.mark.parametrize(
    ("objects", "name", "explained"),
    [
        pytest.param(CART, "cart", "Deployment/cart", id="a workload"),
        pytest.param([deployment("cart")], "cart", "Deployment/cart", id="a workload without pods"),
        pytest.param(CART, "cart-7", "ReplicaSet/cart-7", id="a workload below another one"),
        pytest.param(CART, "cart-7-x", "Pod/cart-7-x", id="a pod"),
        pytest.param([STATEFUL], "cart", "StatefulSet/cart", id="an owner that was not read"),
        pytest.param(
            [
                deployment("cart", owner="Kafka/cart"),
                pod_json("cart-1", node="a1", owner="Deployment/cart", constraints=[constraint()]),
            ],
            "cart",
            "Kafka/cart",
            id="a workload with the name of its owner",
        ),
    ],
)
def test_a_plain_name_finds_the_object(objects: list[Json], name: str, explained: str) -> None:
    assert explain(*objects, name=name) == (0, explained, "")


def test_a_plain_name_that_several_workloads_have_is_an_error() -> None:
    status, explained, stderr = explain(*CART, STATEFUL, name="cart")
    assert (status, explained) == (2, "")
    assert stderr == 'error: several workloads are named "cart": choose one of deploy/cart and sts/cart\n'


def test_a_plain_name_means_the_pod_that_has_the_name_of_its_owner() -> None:
    """Argo names the only pod of a Workflow like the Workflow."""
    owned = pod_json("hello", node="a1", constraints=[constraint()], owner="Workflow/hello")
    status, explained, stderr = explain(owned, name="hello")
    assert (status, explained) == (0, "Pod/hello")
    assert stderr == '"hello" is taken as the name of a pod; for the workload write workflow/hello\n'


def test_a_plain_name_means_the_pod_that_shares_it_with_a_workload() -> None:
    bare = pod_json("cart", node="a1", constraints=[constraint()])
    status, explained, stderr = explain(*CART, bare, name="cart")
    assert (status, explained) == (0, "Pod/cart")
    assert stderr == '"cart" is taken as the name of a pod; for the workload write deploy/cart\n'
    assert explain(*CART, bare, name="pod/cart") == (0, "Pod/cart", "")
    assert explain(*CART, bare, name="deploy/cart") == (0, "Deployment/cart", "")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("crat", 'pod or workload "crat" not found in the files; did you mean deploy/cart?'),
        ("cart-7-y", 'pod or workload "cart-7-y" not found in the files; did you mean po/cart-7-x?'),
        ("deploy/crat", 'deployments "crat" not found in the files; did you mean deploy/cart?'),
        ("pod/crat", 'pods "crat" not found in the files; did you mean deploy/cart?'),
        ("sts/cart", 'statefulsets "cart" not found in the files'),
        ("unlike", 'pod or workload "unlike" not found in the files'),
    ],
)
def test_a_misspelt_name_suggests_the_nearest(name: str, message: str) -> None:
    assert explain(*CART, name=name) == (2, "", f"error: {message}\n")


@pytest.mark.parametrize("command", [("check",), ("explain", "cart"), ("domains", "zone")])
def test_a_misspelt_namespace_of_files_is_an_error_with_the_nearest_name(command: tuple[str, ...]) -> None:
    outcome = run(*command, "-n", "defalt", "-f", "-", stdin="\n".join(map(json.dumps, CART)))
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.endswith('error: namespace "defalt" not found in the files; did you mean "default"?\n')


@pytest.mark.parametrize("command", [("explain", "deploy/cart"), ("plan", "deploy/cart")])
def test_a_name_of_another_namespace_is_suggested_with_it(command: tuple[str, ...]) -> None:
    elsewhere = pod_json("mail", node="a1", namespace="shop", constraints=[constraint()])
    stdin = "\n".join(map(json.dumps, [*CART, elsewhere]))
    outcome = run(*command, "-n", "shop", "-f", "-", stdin=stdin)
    assert outcome.exit_code == 2
    message = 'error: deployments "cart" not found in namespace shop; did you mean deploy/cart -n default?'
    assert outcome.stderr.splitlines()[-1] == message


@pytest.mark.parametrize("command", [("check",), ("explain", "deploy/cart"), ("recommend", "--runs", "1")])
def test_a_manifest_without_a_namespace_is_in_that_of_the_option(command: tuple[str, ...]) -> None:
    manifest = deployment("cart", constraints=[constraint()], containers=[{"name": "app", "image": "app"}])
    manifest["spec"]["selector"] = {"matchLabels": {"app": "web"}}
    del manifest["metadata"]["namespace"]
    stdin = "\n".join(map(json.dumps, [manifest, *nodes("a1", "b1")]))
    outcome = run(*command, "-n", "shop", "-f", "-", "-o", "json", stdin=stdin)
    assert outcome.exit_code < 2, outcome.stderr
    assert '"namespace": "shop"' in outcome.stdout


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("stale-lable", 'no rule has the code or name "stale-lable"; did you mean "stale-label"?'),
        ("hardskew", 'no rule has the code or name "hardskew"; did you mean "hard-skew"?'),
        ("SPR3O1", 'no rule has the code or name "SPR3O1" (kubectl spread rules lists them)'),
    ],
)
def test_a_misspelt_rule_contacts_no_cluster(word: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    outcome = run("explain", word)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == f"error: {message} (a pod of that name: pod/{word})\n"


def test_a_misspelt_rule_in_an_option_suggests_the_nearest() -> None:
    outcome = run("check", "-f", "-", "--select", "stale-lable", stdin="")
    assert outcome.stderr == ('error: no rule has the code or name "stale-lable"; did you mean "stale-label"?\n')


def test_a_word_that_is_no_name_is_not_compared() -> None:
    """Transposing all neighbours of a megabyte would take minutes."""
    assert nearest("a" * 1_000_000, ["a"]) == ""
