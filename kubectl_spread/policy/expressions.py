"""The rules that look at one object, as CEL expressions, and the values of their messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import msgspec

from kubectl_spread.audit.merge.verdicts import BINDING_KEYS
from kubectl_spread.audit.snapshot.records import DEFAULT_SCHEDULER
from kubectl_spread.kube.features import COUNTS_EMPTY_SELECTORS, Behaviour
from kubectl_spread.policy.roots import PODS, ROOTS, TEMPLATES, UNVALIDATED, WORKLOADS, Root, known, repeated, text
from kubectl_spread.rules.constraints.grouping import COUNTS_OLD_REVISIONS, ONE_POD_EACH, OWN_GROUP
from kubectl_spread.rules.constraints.mismatch import SELF_MISMATCH
from kubectl_spread.rules.constraints.no_effect import EMPTY_SELECTOR, NULL_SELECTOR, REPEATED_KEY
from kubectl_spread.rules.constraints.refusals import PODS_REFUSED
from kubectl_spread.rules.constraints.workload import (
    CURRENT_KEYS,
    DAEMON_SET_SPREAD,
    DEPRECATED_TOPOLOGY_KEY,
    NODE_NAME,
    UNKNOWN_SCHEDULER,
)
from kubectl_spread.rules.exposure.no_spread import NO_SPREAD
from kubectl_spread.rules.model import Rule
from kubectl_spread.rules.selectors.keys import ABSENT_KEY, AUTHORED_KEY, BINDING_KEY

_Violations: TypeAlias = Callable[[Root, Behaviour], str]


class Expression(msgspec.Struct, frozen=True):
    """A rule in CEL.

    Attributes:
        rule: The rule.
        violations: The expression of a list with an entry for each violation: a list of texts for the message.
        values: The expressions of the values in the rule's message, by name; ``violation`` is the first violation.
        roots: The places of pods and templates that the rule looks at.
        applies: Tells whether the rule can find anything with this behaviour.
    """

    rule: Rule
    violations: _Violations
    values: Mapping[str, str]
    roots: tuple[Root, ...] = ROOTS
    applies: Callable[[Behaviour], bool] = lambda _behaviour: True


def _of_terms(condition: str, *values: str, terms: str = "variables.terms") -> _Violations:
    """Return the violations of terms for which a condition holds, with values of each such term ``t``."""
    return lambda _root, _behaviour: f"{terms}\n.filter(t, {condition})\n.map(t, [{', '.join(values)}])"


def _of_keys(keys: str, condition: str, *, terms: str = "variables.terms") -> str:
    """Return the violations of terms with keys for which a condition holds: these keys in one text, and their field."""
    violating = f'({keys}).filter(key, {condition}).join(", ")'
    field = f't.match.exists(key, {condition}) ? "matchLabelKeys" : "mismatchLabelKeys"'
    return f"{terms}\n.filter(t, ({keys}).exists(key, {condition}))\n.map(t, [{violating}, {field}])"


def _of_the_pod(condition: str, value: str) -> _Violations:
    """Return the violation of a pod with terms of which kube-apiserver accepts the first.

    Args:
        condition: The condition; ``{spec}`` stands for the spec of the pod.
        value: The value of the violation.
    """
    accepted = "variables.all.size() > 0 && variables.terms.size() > 0 && variables.all[0] == variables.terms[0]"

    def violations(root: Root, _behaviour: Behaviour) -> str:
        spec = f"{root.template}.spec"
        return f"{accepted} && {condition.format(spec=spec)} ? [[{value.format(spec=spec)}]] : []"

    return violations


_BINDING_KEYS: Final = text(sorted(BINDING_KEYS))
_LACKS: Final = f"!{known('key')}"
_UNMET_LABEL: Final = (
    "!(key in variables.presumed) && !(key in variables.labels && variables.labels[key] == t.labels[key])"
)
_UNMET_REQUIREMENT: Final = (
    "!(r.key in variables.presumed) && !("
    'r.operator == "In" ? r.key in variables.labels && variables.labels[r.key] in r.values : '
    'r.operator == "NotIn" ? !(r.key in variables.labels && variables.labels[r.key] in r.values) : '
    '(r.operator == "Exists") == (r.key in variables.labels))'
)
_IS_UNMET: Final = f"(t.labels.exists(key, {_UNMET_LABEL}) || t.requirements.exists(r, {_UNMET_REQUIREMENT}))"
_NAMED_TWICE: Final = "exists in both matchLabelKeys and labelSelector, or twice in matchLabelKeys"


def _absent_key(root: Root, _behaviour: Behaviour) -> str:
    """Return the violations of SPR107; what a pod's own selector names is authored, also as a key to mismatch."""
    mismatch = "t.mismatch.filter(key, !(key in t.selected))" if root is PODS else "t.mismatch"
    keys = f"t.match.filter(key, !(key in t.selected)) + {mismatch}"
    terms = "variables.terms" if root is PODS else "variables.all"
    return _of_keys(keys, f"{_LACKS} && !(key in {_BINDING_KEYS})", terms=f"{terms}.filter(t, t.selects)")


def _authored_key(_root: Root, _behaviour: Behaviour) -> str:
    return _of_keys("t.match", f"key in t.selected && {_LACKS}")


def _binding_key(_root: Root, _behaviour: Behaviour) -> str:
    keys = "t.match + t.mismatch"
    return _of_keys(keys, f"key in {_BINDING_KEYS} && !(key in t.selected) && {_LACKS}")


def _pods_refused(root: Root, behaviour: Behaviour) -> str:
    """Return the violations of SPR202: the errors of kube-apiserver on each term that it refuses in the pods."""
    twice = f"(key in t.selected || {repeated('t.match')})"
    reasons = [(f"t.match.filter(key, {known('key')} && {twice})", _NAMED_TWICE)]
    if root is WORKLOADS and not behaviour.validates_stateful_sets:
        reasons += UNVALIDATED
    errors = " + ".join(f"{keys}.map(key, key + {text(f' {detail}')})" for keys, detail in reasons)
    return f'variables.refused.map(t, {errors}).map(errors, [errors.join("; ")])'


def _repeated_key(_root: Root, _behaviour: Behaviour) -> str:
    matched, mismatched = (f"{keys}.filter(key, {repeated(keys)})" for keys in ("t.match", "t.mismatch"))
    violations = f'[{matched}.join(", "), {mismatched}.join(", ")]'
    return f'variables.terms\n.map(t, {violations})\n.filter(keys, keys[0] + keys[1] != "")'


def _own_group(_root: Root, _behaviour: Behaviour) -> str:
    keys = text(sorted(ONE_POD_EACH))
    return _of_keys(
        "t.match", f"key in {keys} && {known('key')}", terms=f"variables.terms.filter(t, t.spread && !{_IS_UNMET})"
    )


def _empty_selector(_root: Root, _behaviour: Behaviour) -> str:
    """Return the violations of SPR205; the scheduler adds the values of matchLabelKeys to an empty selector."""
    condition = f"t.spread && t.selects && t.selected.size() == 0 && !t.match.exists(key, {known('key')})"
    return f"variables.terms\n.filter(t, {condition})\n.map(t, [t.topologyKey])"


def _self_mismatch(_root: Root, _behaviour: Behaviour) -> str:
    """Return the violations of SPR206: the first unmet requirement of each constraint, and the label of the pods."""
    have = '{key} in variables.labels ? {key} + "=" + variables.labels[{key}] : "no label " + {key}'
    label = f'[key + "=" + t.labels[key], {have.format(key="key")}]'
    values = '(has(r.values) ? " [" + r.values.join(", ") + "]" : "")'
    requirement = f'[r.key + " " + r.operator + {values}, {have.format(key="r.key")}]'
    unmet = f"t.labels.map(key, {_UNMET_LABEL}, {label}) + t.requirements.map(r, {_UNMET_REQUIREMENT}, {requirement})"
    constraints = "variables.terms.filter(t, t.spread)"
    return f"{constraints}\n.map(t, {unmet})\n.filter(unmet, unmet.size() > 0).map(unmet, unmet[0])"


def _counts_old_revisions(_root: Root, behaviour: Behaviour) -> str:
    rolls = (
        'request.kind.kind == "Deployment" && dyn(object).spec.?strategy.?type.orValue("") != "Recreate" && '
        "!(dyn(object).spec.?replicas.orValue(1) in [0, 1])"
    )
    counts = "t.selected.size() > 0" if behaviour.empty_selector_counts_nothing else "true"
    condition = (
        f"t.spread && t.required && t.selects && {counts} && t.match.size() == 0 && "
        f'!("pod-template-hash" in t.selected) && !{_IS_UNMET}'
    )
    return f"!({rolls}) ? [] :\nvariables.terms\n.filter(t, {condition})\n.map(t, [t.topologyKey])"


def _no_spread(_root: Root, _behaviour: Behaviour) -> str:
    several = "dyn(object).spec.?replicas.orValue(0) > 1"
    return f"{several} && !variables.all.exists(t, t.spread || t.anti) ? [[request.kind.kind]] : []"


EXPRESSIONS: Final = (
    Expression(
        PODS_REFUSED,
        _pods_refused,
        {
            "refuses": text("accepts the template and refuses"),
            "errors": "violation[0]",
            "seen": text(""),
        },
        TEMPLATES,
    ),
    Expression(
        ABSENT_KEY,
        _absent_key,
        {
            "field": 'violation[1] + " lists"',
            "keys": "violation[0]",
            "who": text("the pods do not have"),
            "which": 'violation[0].contains(", ") ? "those labels" : "that label"',
            "effect": 'violation[0].contains(", ") ? "the keys are ignored" : "the key is ignored"',
        },
    ),
    Expression(
        BINDING_KEY,
        _binding_key,
        {"keys": "violation[0]", "effect": 'violation[1] + " cannot use them"'},
    ),
    Expression(
        REPEATED_KEY,
        _repeated_key,
        {
            "field": 'violation[0] == "" ? "mismatchLabelKeys" : "matchLabelKeys"',
            "keys": 'violation[0] == "" ? violation[1] : violation[0]',
            "effect": (
                'violation[0] == "" ? "which has no effect" : '
                '"and kube-apiserver refuses every pod that is created with the label"'
            ),
        },
    ),
    Expression(
        NULL_SELECTOR,
        _of_terms(
            "!t.selects",
            't.spread ? "nothing is spread" : '
            't.required && !t.anti ? "no node can take the pods" : "the term has no effect"',
        ),
        {"effect": "violation[0]"},
    ),
    Expression(
        EMPTY_SELECTOR,
        _empty_selector,
        {"then": text(f"From 1.{COUNTS_EMPTY_SELECTORS} on it counts all pods of the namespace")},
        applies=lambda behaviour: behaviour.empty_selector_counts_nothing,
    ),
    Expression(
        SELF_MISMATCH,
        _self_mismatch,
        {"asked": "violation[0]", "have": "violation[1]", "template": text("")},
    ),
    Expression(OWN_GROUP, _own_group, {"key": "violation[0]"}),
    Expression(
        DEPRECATED_TOPOLOGY_KEY,
        _of_terms(f"t.topologyKey in {text(CURRENT_KEYS)}", "t.topologyKey"),
        {
            "key": "violation[0]",
            "since": f"{text(CURRENT_KEYS)}[violation[0]][0]",
            "effect": f'"nodes have " + {text(CURRENT_KEYS)}[violation[0]][1] + " instead"',
        },
    ),
    Expression(AUTHORED_KEY, _authored_key, {"keys": "violation[0]"}),
    Expression(COUNTS_OLD_REVISIONS, _counts_old_revisions, {"revisions": text("all revisions")}, (WORKLOADS,)),
    Expression(
        DAEMON_SET_SPREAD,
        _of_terms(
            'request.kind.kind == "DaemonSet" && t.spread',
            't.pins ? "the constraint can only keep a pod off its node" : "there is nothing to spread"',
        ),
        {"effect": "violation[0]"},
        (WORKLOADS,),
    ),
    Expression(
        NODE_NAME,
        _of_the_pod('{spec}.?nodeName.orValue("") != ""', "{spec}.nodeName"),
        {"node": "violation[0]", "effect": text("Pods go to that node")},
    ),
    Expression(
        UNKNOWN_SCHEDULER,
        _of_the_pod(
            'variables.all[0].spread && !({spec}.?schedulerName.orValue("") in ' + text(["", DEFAULT_SCHEDULER]) + ")",
            "{spec}.schedulerName",
        ),
        {"scheduler": "violation[0]"},
    ),
    Expression(
        NO_SPREAD,
        _no_spread,
        {"defaults": text(" Only default constraints of the scheduler may spread them.")},
        (WORKLOADS,),
    ),
)
"""The rules on new pods and templates that look at one object alone."""
