"""The YAML of admission policies, and its texts against those of the rules."""

from __future__ import annotations

import re
from typing import Final

import pytest
import yaml

from kubectl_spread import policy
from kubectl_spread.audit.merge.verdicts import BINDING_KEYS
from kubectl_spread.audit.snapshot.revisions import LABELS
from kubectl_spread.audit.snapshot.templates import COMPLETION_INDEX, labels_of_controller
from kubectl_spread.kube.apiserver import CURRENT_KEYS
from kubectl_spread.phrases import sentence
from kubectl_spread.policy import Action
from kubectl_spread.report.model import Severity
from kubectl_spread.rules import RULES
from kubectl_spread.rules.constraints.grouping import ONE_POD_EACH
from kubectl_spread.rules.model import Rule
from tests.builders import Json
from tests.generated import ROOT

POLICY: Final = "ValidatingAdmissionPolicy"
OWN_FIXES: Final = {"SPR101", "SPR102", "SPR107", "SPR110"}
"""The rules whose fix for stored pods, or for several keys, differs from what to do before an object is stored."""
CARRIED: Final = [rule for rule in RULES if rule.code in policy.codes()]


def printed(action: Action = Action.WARN, excluded: tuple[str, ...] = ("kube-system",), minor: int = 37) -> list[Json]:
    return list(yaml.safe_load_all(policy.text(action, excluded, minor)))


def variables(name: str) -> dict[str, str]:
    """Return the expressions of the variables of a policy."""
    (found,) = [each for each in printed() if (each["kind"], each["metadata"]["name"]) == (POLICY, name)]
    return {variable["name"]: variable["expression"] for variable in found["spec"]["variables"]}


def words(expression: str) -> str:
    """Return an expression without the places where one text is continued in the next line."""
    return re.sub(r'" \+\n\s*"', "", expression)


def test_each_policy_has_the_binding_that_puts_it_into_effect() -> None:
    objects = [(each["kind"], each["metadata"]["name"], each["spec"].get("policyName")) for each in printed()]
    assert objects == [
        (POLICY, "kubectl-spread-labels", None),
        (f"{POLICY}Binding", "kubectl-spread-labels", "kubectl-spread-labels"),
        (POLICY, "kubectl-spread-workloads", None),
        (f"{POLICY}Binding", "kubectl-spread-workloads", "kubectl-spread-workloads"),
    ]


def test_each_object_has_a_label_and_each_policy_a_description() -> None:
    for each in printed(minor=36):
        assert each["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "kubectl-spread"}
        description = each["metadata"].get("annotations", {}).get("kubernetes.io/description", "")
        assert description.endswith(" for Kubernetes 1.36.") is (each["kind"] == POLICY)


def test_each_policy_sees_the_requests_that_can_violate_its_rules() -> None:
    """A pod's labels can also be changed through its status."""
    requests = {
        each["metadata"]["name"]: {
            resource: rule["operations"]
            for rule in each["spec"]["matchConstraints"]["resourceRules"]
            for resource in rule["resources"]
        }
        for each in printed()
        if each["kind"] == POLICY
    }
    both = ["CREATE", "UPDATE"]
    templates = ("deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs")
    assert requests == {
        "kubectl-spread-labels": {"pods": ["UPDATE"], "pods/status": ["UPDATE"]},
        "kubectl-spread-workloads": {
            "pods": ["CREATE"],
            **dict.fromkeys((*templates, "replicationcontrollers", "podtemplates"), both),
        },
    }


def test_an_object_that_cannot_be_evaluated_is_accepted() -> None:
    assert [each["spec"]["failurePolicy"] for each in printed() if each["kind"] == POLICY] == ["Ignore", "Ignore"]


@pytest.mark.parametrize(("action", "expected"), [("deny", "Deny"), ("warn", "Warn"), ("audit", "Audit")])
def test_the_bindings_have_the_action(action: str, expected: str) -> None:
    actions = [each["spec"].get("validationActions") for each in printed(Action(action))]
    assert actions == [None, [expected], None, [expected]]


def test_the_bindings_exclude_namespaces_also_those_that_yaml_takes_for_other_types() -> None:
    names = ("kube-system", "1234", "true", "null", "1e3")
    selectors = [each["spec"].get("matchResources") for each in printed(excluded=names)]
    excluded = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [*names]}
    assert selectors == [None, {"namespaceSelector": {"matchExpressions": [excluded]}}] * 2


def test_the_guard_exempts_the_controllers_of_kubernetes_that_relabel_pods() -> None:
    conditions = {each["name"]: each["expression"] for each in printed()[0]["spec"]["matchConditions"]}
    for user in (
        "system:kube-controller-manager",
        "system:serviceaccount:kube-system:daemon-set-controller",
        "system:serviceaccount:kube-system:statefulset-controller",
    ):
        assert f'"{user}"' in conditions["not-exempt"]


def test_the_minor_is_a_number_of_the_file() -> None:
    (minor,) = [each for each in printed(minor=33)[2]["spec"]["variables"] if each["name"] == "minor"]
    assert minor["expression"] == "33"


def test_comments_are_kept() -> None:
    assert "  # SPR102: a merged label is removed.\n" in policy.text(Action.WARN, ("kube-system",), 37)


def test_each_rule_has_one_validation_and_warnings_and_errors_are_carried() -> None:
    messages = [text["message"] for each in printed() for text in each["spec"].get("validations", ())]
    assert messages == [f"{rule.code} {rule.name}: {rule.summary}" for rule in CARRIED]
    assert not [rule.code for rule in CARRIED if rule.severity == Severity.INFO]


@pytest.mark.parametrize("rule", CARRIED, ids=lambda rule: rule.code)
def test_a_validation_refuses_what_has_a_message_of_its_code(rule: Rule) -> None:
    (validation,) = [
        each
        for document in printed()
        for each in document["spec"].get("validations", ())
        if each["message"].startswith(rule.code)
    ]
    assert validation["expression"] == f"!variables.messages.exists(text, text.startsWith('{rule.code}'))"
    assert validation["messageExpression"] == f'variables.messages.filter(text, text.startsWith("{rule.code}")).join()'


@pytest.mark.parametrize("rule", CARRIED, ids=lambda rule: rule.code)
def test_a_rule_says_the_same_in_check_and_in_its_policy(rule: Rule) -> None:
    """The values of messages are compared by real API servers, in ``make e2e``."""
    expressions = variables("kubectl-spread-labels") | variables("kubectl-spread-workloads")
    first, *others = rule.name.split("-")
    expression = words(expressions["".join((first, *(word.capitalize() for word in others)))])
    texts = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', expression))
    for literal in re.split(r"\{\w+\}", f"{rule.code} {rule.name}: {rule.message}"):
        assert literal in texts
    assert rule.code in OWN_FIXES or sentence(re.sub(r"\{\w+\}", "", rule.fix)) in re.sub(r"\{\w+\}", "", texts)


def test_the_policy_knows_the_labels_that_check_knows() -> None:
    expressions = variables("kubectl-spread-workloads")

    def texts(name: str) -> set[str]:
        return set(re.findall(r'"([^"]*)"', expressions[name]))

    kinds = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController", "Pod")
    labels = {label for kind in kinds for label in labels_of_controller(kind)}
    assert labels | {COMPLETION_INDEX} <= texts("labelsOfController")
    for kind in kinds:
        assert (f'"{kind}":' in expressions["labelsOfController"]) is bool(labels_of_controller(kind))
    assert texts("bindingLabels") == BINDING_KEYS
    assert texts("revisionLabels") == {*LABELS}
    assert texts("deprecatedLabels") == {*CURRENT_KEYS, *(text for pair in CURRENT_KEYS.values() for text in pair)}
    assert texts("ownGroup") >= ONE_POD_EACH


def test_the_page_says_of_every_rule_whether_a_policy_has_it() -> None:
    page = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    section = page.partition("### What a policy cannot evaluate")[2].partition("\n## ")[0]
    table = "".join(line for line in section.splitlines() if line.startswith("| SPR"))
    listed = set(re.findall(r"SPR\d+", table))
    for first, last in re.findall(r"SPR(\d+) to SPR(\d+)", table):
        listed |= {f"SPR{number}" for number in range(int(first), int(last) + 1)}
    assert listed == {rule.code for rule in RULES} - policy.codes()
