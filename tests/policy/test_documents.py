"""The objects of admission policies."""

from __future__ import annotations

import re

import pytest

from kubectl_spread.kube import features
from kubectl_spread.kube.api.types import LabelSelector, LabelSelectorRequirement
from kubectl_spread.policy.documents import CARRIED, Action, Document, Policies
from kubectl_spread.rules import RULES
from tests.generated import ROOT


def behaviour(minor: int) -> features.Behaviour:
    return features.behaviour(minor, features.gates(minor, {}))


def printed(policies: Policies) -> dict[tuple[str, str], Document]:
    """Return the objects by kind and name."""
    return {(each["kind"], each["metadata"]["name"]): each for each in policies.documents()}


def codes(policy: Document) -> list[str]:
    return [validation["message"].partition(" ")[0] for validation in policy["spec"]["validations"]]


def test_each_policy_has_the_binding_that_puts_it_into_effect() -> None:
    objects = printed(Policies(CARRIED, behaviour(37), mutates=True))
    policies = {name: kind for kind, name in objects if not kind.endswith("Binding")}
    assert sorted(policies) == [
        "kubectl-spread-cronjobs",
        "kubectl-spread-labels",
        "kubectl-spread-match-label-keys",
        "kubectl-spread-pods",
        "kubectl-spread-podtemplates",
        "kubectl-spread-workloads",
    ]
    assert {(kind, name) for kind, name in objects if kind.endswith("Binding")} == {
        (f"{kind}Binding", name) for name, kind in policies.items()
    }
    assert all(objects[f"{kind}Binding", name]["spec"]["policyName"] == name for name, kind in policies.items())


def test_each_object_has_a_label_and_each_policy_a_description() -> None:
    for (kind, name), each in printed(Policies(CARRIED, behaviour(37), mutates=True)).items():
        assert each["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "kubectl-spread"}
        description = each["metadata"].get("annotations", {}).get("kubernetes.io/description", "")
        assert bool(description) is not kind.endswith("Binding"), name
        assert description == "" or description.endswith(" for Kubernetes 1.37.")


def test_a_policy_has_one_validation_for_each_rule_that_looks_at_its_objects() -> None:
    objects = printed(Policies(CARRIED, behaviour(37)))
    kind = "ValidatingAdmissionPolicy"
    assert codes(objects[kind, "kubectl-spread-labels"]) == ["SPR101", "SPR102", "SPR105"]
    on_pods = codes(objects[kind, "kubectl-spread-pods"])
    on_workloads = codes(objects[kind, "kubectl-spread-workloads"])
    assert set(on_workloads) - set(on_pods) == {"SPR202", "SPR208", "SPR210", "SPR504"}
    assert set(on_pods) < set(on_workloads)
    assert len(on_workloads) == len(set(on_workloads))


def test_each_policy_sees_the_requests_that_can_violate_its_rules() -> None:
    """A pod's labels can also be changed through its status."""
    requests = {
        name.removeprefix("kubectl-spread-"): [
            (rule["operations"], rule["resources"]) for rule in each["spec"]["matchConstraints"]["resourceRules"]
        ]
        for (kind, name), each in printed(Policies(CARRIED, behaviour(37))).items()
        if kind == "ValidatingAdmissionPolicy"
    }
    both = ["CREATE", "UPDATE"]
    assert requests == {
        "labels": [(["UPDATE"], ["pods", "pods/status"])],
        "pods": [(["CREATE"], ["pods"])],
        "workloads": [
            (both, ["deployments", "replicasets", "statefulsets", "daemonsets"]),
            (both, ["jobs"]),
            (both, ["replicationcontrollers"]),
        ],
        "cronjobs": [(both, ["cronjobs"])],
        "podtemplates": [(both, ["podtemplates"])],
    }


def test_a_place_without_rules_has_no_policy() -> None:
    rules = tuple(rule for rule in CARRIED if rule.code == "SPR208")
    assert {name for _, name in printed(Policies(rules, behaviour(37)))} == {"kubectl-spread-workloads"}


@pytest.mark.parametrize(("action", "expected"), [("deny", "Deny"), ("warn", "Warn"), ("audit", "Audit")])
def test_the_binding_has_the_action(action: str, expected: str) -> None:
    objects = printed(Policies(CARRIED, behaviour(37), action=Action(action)))
    for (kind, _), each in objects.items():
        if kind.endswith("Binding"):
            assert each["spec"]["validationActions"] == [expected]


def test_the_binding_selects_namespaces() -> None:
    requirement = LabelSelectorRequirement(key="team", operator="Exists")
    policies = Policies(
        CARRIED,
        behaviour(37),
        namespaces=LabelSelector(match_expressions=(requirement,)),
        excluded=("kube-system", "mesh"),
    )
    binding = printed(policies)["ValidatingAdmissionPolicyBinding", "kubectl-spread-pods"]
    assert binding["spec"]["matchResources"] == {
        "namespaceSelector": {
            "matchExpressions": [
                {"key": "team", "operator": "Exists"},
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "NotIn",
                    "values": ["kube-system", "mesh"],
                },
            ]
        }
    }


def test_the_guard_exempts_the_controllers_of_kubernetes_and_other_users_by_name() -> None:
    policies = Policies(CARRIED, behaviour(37), exempt=("system:serviceaccount:mesh:agent",))
    guard = printed(policies)["ValidatingAdmissionPolicy", "kubectl-spread-labels"]
    conditions = {each["name"]: each["expression"] for each in guard["spec"]["matchConditions"]}
    for user in (
        "system:kube-controller-manager",
        "system:serviceaccount:kube-system:daemon-set-controller",
        "system:serviceaccount:kube-system:statefulset-controller",
        "system:serviceaccount:mesh:agent",
    ):
        assert f'"{user}"' in conditions["not-exempt"]


@pytest.mark.parametrize(("minor", "version"), [(34, "v1beta1"), (35, "v1beta1"), (36, "v1"), (37, "v1")])
def test_the_mutating_policy_has_the_version_that_the_minor_serves(minor: int, version: str) -> None:
    objects = printed(Policies(CARRIED, behaviour(minor), mutates=True))
    mutating = [each for (kind, _), each in objects.items() if kind.startswith("Mutating")]
    assert [each["apiVersion"] for each in mutating] == [f"admissionregistration.k8s.io/{version}"] * 2


def test_a_rule_that_finds_nothing_in_a_minor_is_left_out() -> None:
    policy = printed(Policies(CARRIED, behaviour(38)))["ValidatingAdmissionPolicy", "kubectl-spread-pods"]
    assert "SPR205" not in codes(policy)


def test_the_page_says_of_every_rule_whether_a_policy_has_it() -> None:
    page = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    section = page.partition("### What a policy cannot evaluate")[2].partition("\n## ")[0]
    table = "".join(line for line in section.splitlines() if line.startswith("| SPR"))
    listed = set(re.findall(r"SPR\d+", table))
    for first, last in re.findall(r"SPR(\d+) to SPR(\d+)", table):
        listed |= {f"SPR{number}" for number in range(int(first), int(last) + 1)}
    assert listed == {rule.code for rule in RULES} - {rule.code for rule in CARRIED}
