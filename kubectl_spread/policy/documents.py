"""The objects of admission policies, each with its binding, and the guard of the labels of merged pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec

from kubectl_spread import __version__
from kubectl_spread.audit.merge.verdicts import BINDING_KEYS
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.phrases import listed, sentence
from kubectl_spread.policy import expressions, roots
from kubectl_spread.policy.expressions import EXPRESSIONS, Expression, message, value
from kubectl_spread.policy.roots import PODS, ROOTS, Root, merged, text
from kubectl_spread.rules.model import Rule
from kubectl_spread.rules.selectors.verdicts import CHANGED, LATE_LABEL, REMOVED, REMOVED_LABEL, STALE_LABEL

_NEW: Final = "variables.labels"
_OLD: Final = "variables.oldLabels"
OLD_LABELS: Final = "oldObject.metadata.?labels.orValue({})"
"""The labels before the update, the variable ``oldLabels``."""
_VALUE: Final = value("violation[1]")
_LABEL: Final = value(f"{_NEW}[violation[0]]")
_ADDED: Final = "was added with the value {label}, but the selector {requirement}"
_AT_CREATION: Final = "The selector is merged only when a pod is created"
_KEEP: Final = "Keep the old value here, and change the label in the pod template, so that new pods are created with it"
_LEAVE_OUT: Final = "Leave the label out, or give it the value {stored}"


def _merged(condition: str) -> str:
    """Return the violations of terms with a merged requirement ``r`` for which a condition holds.

    A violation has its key, its value and its operator.
    """
    listed = 'r.operator == "In" ? r.key in t.match : r.operator == "NotIn" && r.key in t.mismatch'
    merged_requirements = f"({listed}) && has(r.values) && r.values.size() == 1"
    return (
        "variables.all.filter(t, t.selects)\n"
        f".map(t, t.requirements.filter(r, {merged_requirements} && {condition}))\n"
        ".filter(stored, stored.size() > 0)\n"
        ".map(stored, [string(stored[0].key), string(stored[0].values[0]), string(stored[0].operator)])"
    )


def _by_operator(matched: str, mismatched: str) -> str:
    """Return the expression of a text about a merged value that the selector requires, or that it excludes."""
    return f'(violation[2] == "In" ? {text(matched)} : {text(mismatched)})'


_REQUIREMENT: Final = f'{_by_operator("requires ", "excludes ")} + violation[0] + "=" + {_VALUE}'


def _by_history(changed: str, added: str) -> str:
    """Return the expression of a text about a label that the pod had before the update, or that it did not have."""
    return f"(violation[0] in {_OLD} ? {changed} : {added})"


def _stale(_root: Root, _behaviour: Behaviour) -> str:
    differs = "r.key in {labels} && {labels}[r.key] != r.values[0]"
    return _merged(f"{differs.format(labels=_NEW)} && !({differs.format(labels=_OLD)})")


def _removed(_root: Root, _behaviour: Behaviour) -> str:
    return _merged(f"!(r.key in {_NEW}) && r.key in {_OLD}")


def _late(_root: Root, behaviour: Behaviour) -> str:
    """Return the violations of SPR105, for the terms that the API server merges: the first key that is added."""
    added = f"{merged(behaviour)}!(key in {_OLD}) && key in {_NEW} && !(key in t.selected)"
    keys = f"(t.match + t.mismatch).filter(key, {added} && !(key in {text(sorted(BINDING_KEYS))}))"
    return (
        "variables.all.filter(t, t.selects)\n"
        f".map(t, {keys})\n"
        f".filter(keys, keys.size() > 0).map(keys, [string(keys[0]), string({_NEW}[keys[0]])])"
    )


GUARD: Final = (
    Expression(
        STALE_LABEL,
        _stale,
        {
            "key": "violation[0]",
            "change": _by_history(
                message(CHANGED, {"stored": _VALUE, "label": _LABEL}),
                message(_ADDED, {"label": _LABEL, "requirement": _REQUIREMENT}),
            ),
            "changed": text(""),
            "effect": _by_history(
                _by_operator(
                    "Its selector keeps the old value, and pods that select the old value no longer count it.",
                    "Its selector still excludes the old value, and pods that exclude the old value now select it.",
                ),
                text(f"{_AT_CREATION}."),
            ),
            "advice": _by_history(text(_KEEP), message(_LEAVE_OUT, {"stored": _VALUE})),
        },
        (PODS,),
        fix="{advice}",
    ),
    Expression(
        REMOVED_LABEL,
        _removed,
        {
            "key": "violation[0]",
            "missing": text(REMOVED),
            "requirement": f'"still " + {_REQUIREMENT}',
            "cause": text(""),
            "effect": _by_operator(
                "Pods that select the label no longer count it.", "Pods that exclude the value now select it."
            ),
        },
        (PODS,),
        fix="keep the label here, and remove it from the pod template, so that new pods are created without it",
    ),
    Expression(
        LATE_LABEL,
        _late,
        {
            "key": "violation[0]",
            "label": _VALUE,
            "changed": text(""),
            "effect": text(_AT_CREATION),
        },
        (PODS,),
    ),
)
"""The rules on updates of pods."""


Document: TypeAlias = dict[str, Any]
OLDEST_MINOR: Final = 30
"""The first minor in which ValidatingAdmissionPolicy is stable."""
CARRIED: Final[tuple[Rule, ...]] = tuple(expression.rule for expression in (*GUARD, *EXPRESSIONS))
"""The rules that policies can carry."""
RELABELLING: Final = (
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:daemon-set-controller",
    "system:serviceaccount:kube-system:statefulset-controller",
)
"""The users of Kubernetes' own controllers that set labels of pods which run already.

Source: kubernetes v1.37.1 pkg/controller/daemon/update.go, dedupCurHistories, and
pkg/controller/statefulset/stateful_set_utils.go, updateIdentity.
"""
STABLE_MUTATION: Final = 36
"""The first minor in which MutatingAdmissionPolicy is stable."""
OLDEST_MUTATION: Final = 34
"""The first minor in which it is a beta API."""
MUTATION: Final = "match-label-keys"
_NO_CONTROLLER: Final = "!object.metadata.?ownerReferences.orValue([]).exists(owner, owner.?controller.orValue(false))"
_ADD_KEY: Final = """object.spec.template.spec.?topologySpreadConstraints.orValue([]).transformList(index, constraint,
  constraint.?matchLabelKeys.orValue([]).size() == 0 &&
  (constraint.?labelSelector.?matchLabels.orValue({}).size() > 0 ||
    constraint.?labelSelector.?matchExpressions.orValue([]).size() > 0) &&
  !("pod-template-hash" in constraint.?labelSelector.?matchLabels.orValue({})) &&
  !constraint.?labelSelector.?matchExpressions.orValue([]).exists(r, r.key == "pod-template-hash"),
  JSONPatch{
    op: "add",
    path: "/spec/template/spec/topologySpreadConstraints/" + string(index) + "/matchLabelKeys",
    value: ["pod-template-hash"]
  }
)"""
LABELS: Final = {"app.kubernetes.io/managed-by": "kubectl-spread"}
"""The labels of each object, by which kubectl finds all of them."""
_DESCRIPTION: Final = "kubernetes.io/description"
_PREFIX: Final = "kubectl-spread-"
_API: Final = "admissionregistration.k8s.io"
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"


class Action(StrEnum):
    """What the API server does with a request that violates a rule."""

    DENY = "deny"
    WARN = "warn"
    AUDIT = "audit"


class Policies(msgspec.Struct, frozen=True):
    """The policies to print.

    Attributes:
        rules: The rules that the policies carry.
        behaviour: The behaviour of the API server that gets them.
        action: What it does with a request that violates a rule.
        namespaces: The selector of the namespaces in which they act; None for all.
        excluded: The namespaces in which they do not act.
        exempt: The users whose updates of labels are not evaluated.
        mutates: Whether a policy adds pod-template-hash to the constraints of Deployments.
    """

    rules: tuple[Rule, ...]
    behaviour: Behaviour
    action: Action = Action.WARN
    namespaces: LabelSelector | None = None
    excluded: tuple[str, ...] = ()
    exempt: tuple[str, ...] = ()
    mutates: bool = False

    @property
    def effective_rules(self) -> tuple[Rule, ...]:
        """The rules that can find anything in this minor, by code."""
        expressions = (each for root in ROOTS for each in self._selected((*GUARD, *EXPRESSIONS), root))
        return tuple(sorted({each.rule.code: each.rule for each in expressions}.values(), key=attrgetter("code")))

    def documents(self) -> Iterator[Document]:
        """Yield each policy and its binding; none for a place that no rule looks at."""
        yield from self._guard()
        for root in ROOTS:
            yield from self._rules_on(root)
        if self.mutates:
            yield from self._mutation()

    def _guard(self) -> Iterator[Document]:
        exempt = text([*RELABELLING, *self.exempt])
        conditions = {
            "labels-change": f"{PODS.labels} != {OLD_LABELS}",
            "not-exempt": f"!(request.userInfo.username in {exempt})",
        }
        yield from self._policy(
            "labels",
            "Evaluates changes of the labels that matchLabelKeys and mismatchLabelKeys of a pod list.",
            PODS,
            self._selected(GUARD, PODS),
            resources={"": ("pods", "pods/status")},
            operations=("UPDATE",),
            conditions=conditions,
            variables={"oldLabels": OLD_LABELS},
        )

    def _rules_on(self, root: Root) -> Iterator[Document]:
        conditions = {"no-controller": _NO_CONTROLLER}
        if root is not PODS:
            conditions["changed"] = root.changed
        kinds = listed([f"{kind}s" for kind in root.kinds], len(root.kinds))
        subject = "new pods without a controller" if root is PODS else f"the pod templates of {kinds}"
        yield from self._policy(
            root.name,
            f"Evaluates the spread constraints and the affinity of {subject}.",
            root,
            self._selected(EXPRESSIONS, root),
            resources=root.resources,
            operations=("CREATE",) if root is PODS else ("CREATE", "UPDATE"),
            conditions=conditions,
            variables=expressions.variables(root, self.behaviour),
        )

    def _selected(self, expressions: Iterable[Expression], root: Root) -> list[Expression]:
        return [
            expression
            for expression in expressions
            if expression.rule in self.rules and root in expression.roots and expression.applies(self.behaviour)
        ]

    def _policy(
        self,
        name: str,
        description: str,
        root: Root,
        expressions: Sequence[Expression],
        *,
        resources: Mapping[str, Sequence[str]],
        operations: Sequence[str],
        conditions: Mapping[str, str],
        variables: Mapping[str, str],
    ) -> Iterator[Document]:
        """Yield a validating policy and its binding; nothing without expressions."""
        if not expressions:
            return
        violations = {_variable(each): each.violations(root, self.behaviour) for each in expressions}
        spec = {
            **_scope(resources, operations, conditions),
            "variables": _named({**roots.variables(root), **variables, **violations}),
            "validations": [_validation(expression) for expression in expressions],
        }
        yield self._described("v1", "ValidatingAdmissionPolicy", name, description, spec)
        actions = {"validationActions": [self.action.value.capitalize()]}
        yield self._binding("v1", "ValidatingAdmissionPolicyBinding", name, actions)

    def _mutation(self) -> Iterator[Document]:
        """Yield the mutating policy and its binding."""
        version = "v1" if self.behaviour.minor >= STABLE_MUTATION else "v1beta1"
        conditions = {
            "template-changes": 'request.operation == "CREATE" || object.spec.template != oldObject.spec.template'
        }
        spec = {
            **_scope({"apps": ("deployments",)}, ("CREATE", "UPDATE"), conditions),
            "reinvocationPolicy": "IfNeeded",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _ADD_KEY}}],
        }
        description = "Adds pod-template-hash to matchLabelKeys of the spread constraints of Deployments."
        yield self._described(version, "MutatingAdmissionPolicy", MUTATION, description, spec)
        yield self._binding(version, "MutatingAdmissionPolicyBinding", MUTATION, {})

    def _described(self, version: str, kind: str, name: str, description: str, spec: Document) -> Document:
        """Return a policy with a description, which ends with the program and the minor of Kubernetes."""
        document = _document(version, kind, name, spec)
        origin = f"Printed by kubectl-spread {__version__} for Kubernetes 1.{self.behaviour.minor}."
        document["metadata"]["annotations"] = {_DESCRIPTION: f"{description} {origin}"}
        return document

    def _binding(self, version: str, kind: str, name: str, fields: Mapping[str, object]) -> Document:
        spec: Document = {"policyName": f"{_PREFIX}{name}", **fields}
        if selector := self._namespace_selector():
            spec["matchResources"] = {"namespaceSelector": selector}
        return _document(version, kind, name, spec)

    def _namespace_selector(self) -> Document:
        selector: Document = {} if self.namespaces is None else msgspec.to_builtins(self.namespaces)
        if self.excluded:
            excluded = {"key": _NAMESPACE_NAME, "operator": "NotIn", "values": list(self.excluded)}
            selector["matchExpressions"] = [*selector.get("matchExpressions", ()), excluded]
        return {field: value for field, value in selector.items() if value}


def _scope(
    resources: Mapping[str, Sequence[str]], operations: Sequence[str], conditions: Mapping[str, str]
) -> Document:
    """Return the fields that choose requests; a policy that cannot be evaluated lets them pass.

    The scope is the default, stated because kubectl apply and GitOps tools would see a difference without it.
    """
    rules = [
        {
            "apiGroups": [group],
            "apiVersions": ["v1"],
            "operations": list(operations),
            "resources": list(names),
            "scope": "*",
        }
        for group, names in resources.items()
    ]
    return {
        "failurePolicy": "Ignore",
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": _named(conditions),
    }


def _named(expressions: Mapping[str, str]) -> list[Document]:
    return [{"name": name, "expression": expression} for name, expression in expressions.items()]


def _document(version: str, kind: str, name: str, spec: Document) -> Document:
    metadata = {"name": f"{_PREFIX}{name}", "labels": dict(LABELS)}
    return {"apiVersion": f"{_API}/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def _variable(expression: Expression) -> str:
    """Return the variable of a rule's violations, its name in camel case."""
    first, *others = expression.rule.name.split("-")
    return "".join((first, *(word.capitalize() for word in others)))


def _validation(expression: Expression) -> Document:
    rule, variable = expression.rule, f"variables.{_variable(expression)}"
    code, name = text(rule.code), text(rule.name)
    ignored = f"variables.ignored.exists(word, {code}.startsWith(word.upperAscii()) || word.lowerAscii() == {name})"
    return {
        "expression": f"{variable}.size() == 0 ||\n{ignored}",
        "message": f"{rule.code} {rule.name}: {rule.summary}",
        # kube-apiserver evaluates it for accepted requests too, and a failing index costs it more than this condition.
        "messageExpression": f'{variable}.size() == 0 ? "" :\n{_message(expression)}'.replace(
            "violation[", f"{variable}[0]["
        ),
    }


def _message(expression: Expression) -> str:
    """Return the expression of the message of a rule about its first violation, and of what to do."""
    rule = expression.rule
    fix = sentence(expression.fix or rule.fix)
    return message(f"{rule.code} {rule.name}: {rule.message} {fix}", expression.values)
