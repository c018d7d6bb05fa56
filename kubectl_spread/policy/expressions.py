"""The rules that look at one object, as CEL expressions, and the values of their messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from string import Formatter
from typing import Final, TypeAlias

import msgspec

from kubectl_spread.audit.merge.verdicts import BINDING_KEYS
from kubectl_spread.audit.snapshot.records import DEFAULT_SCHEDULER
from kubectl_spread.audit.snapshot.revisions import LABELS
from kubectl_spread.audit.snapshot.templates import labels_of_controller
from kubectl_spread.kube.apiserver import CURRENT_KEYS
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.phrases import capitalized
from kubectl_spread.policy.roots import PODS, ROOTS, TEMPLATES, WORKLOADS, Root, is_text, known, merged, repeated, text
from kubectl_spread.rules.constraints.grouping import COUNTS_OLD_REVISIONS, ONE_POD_EACH, OWN_GROUP
from kubectl_spread.rules.constraints.no_effect import (
    COUNTED_LATER,
    EMPTY_SELECTOR,
    NULL_SELECTOR,
    REPEATED_KEY,
    SELF_MISMATCH,
    effect_of_null,
    effect_of_repeated,
)
from kubectl_spread.rules.constraints.refusals import PODS_REFUSED
from kubectl_spread.rules.constraints.workload import (
    DAEMON_SET_SPREAD,
    DEPRECATED_TOPOLOGY_KEY,
    KEEPS_OFF,
    NODE_NAME,
    NOTHING_TO_SPREAD,
    OF_POD,
    OF_TEMPLATE,
    UNKNOWN_SCHEDULER,
    UNKNOWN_SPREADING,
    effect_without_label,
)
from kubectl_spread.rules.exposure import NO_SPREAD, UNKNOWN_DEFAULTS
from kubectl_spread.rules.model import Rule
from kubectl_spread.rules.selectors.keys import ABSENT_KEY, AUTHORED_KEY, BINDING_KEY

_POSITIONS: Final = text(list(range(10)))
"""The positions of the texts that a message names; a longer list is cut."""


def distinct(texts: str) -> str:
    """Return the expression of a list with each text once."""
    first = f"position < {texts}.size() && {texts}.indexOf({texts}[position]) == position"
    return f"{_POSITIONS}.filter(position, {first}).map(position, string({texts}[position]))"


def single(texts: str) -> str:
    """Return the condition that all texts of a list are the same."""
    return f"{texts}.all(each, each == {texts}[0])"


def listed(texts: str) -> str:
    """Return the expression that joins texts as a sentence does: ``a``, ``a and b``, ``a, b and c``."""
    last = "names[names.size() - 1]"
    several = f'names.filter(name, name != {last}).join(", ") + " and " + {last}'
    return f"[{distinct(texts)}].map(names, names.size() == 1 ? names[0] : {several})[0]"


def value(label: str) -> str:
    """Return the expression of a label's value, or of ``""`` for the empty value."""
    empty = text('""')
    return f'({label} == "" ? {empty} : {label})'


def message(template: str, values: Mapping[str, str]) -> str:
    """Return the expression of a message.

    Args:
        template: The message, with the names of values in braces.
        values: The expressions of these values.
    """
    parts: list[str] = []
    for literal, name, _, _ in Formatter().parse(template):
        for part in (text(literal), values[name] if name else text("")):
            if is_text(part) and parts and is_text(parts[-1]):
                parts[-1] = f"{parts[-1][:-1]}{part[1:]}"
            else:
                parts.append(part if is_text(part) else f"({part})")
    return " +\n".join(part for part in parts if part != text(""))


_IN_STATEFUL_SET: Final = 'request.kind.kind == "StatefulSet"'
UNVALIDATED: Final = (
    ("(t.selects ? [] : t.match + t.mismatch)", "must not be listed where labelSelector is not set"),
    ("t.match.filter(key, key in t.mismatch)", "exists in both matchLabelKeys and mismatchLabelKeys"),
    ("(t.spread ? t.match.filter(key, key in t.selected) : [])", "exists in both matchLabelKeys and labelSelector"),
)
"""Reasons why an API server before 1.34 refuses the pods of a StatefulSet, which it accepts: keys of a term, and the
error on them. It refuses other workloads for these reasons."""
UNMET_LABEL: Final = (
    "!(key in variables.presumed) && !(key in variables.labels && variables.labels[key] == t.labels[key])"
)
UNMET_REQUIREMENT: Final = (
    "!(r.key in variables.presumed) && !("
    'r.operator == "In" ? r.key in variables.labels && variables.labels[r.key] in r.values : '
    'r.operator == "NotIn" ? !(r.key in variables.labels && variables.labels[r.key] in r.values) : '
    '(r.operator == "Exists") == (r.key in variables.labels))'
)
IS_UNMET: Final = f"(t.labels.exists(key, {UNMET_LABEL}) || t.requirements.exists(r, {UNMET_REQUIREMENT}))"


def variables(root: Root, behaviour: Behaviour) -> dict[str, str]:
    """Return the CEL expressions of variables, which choose from ``all`` terms.

    - ``suspects``: terms that may violate a rule. Most objects have none, and then most rules cost next to nothing.
    - ``refused``: the suspects that kube-apiserver refuses in the pods of a template. Policies see a pod after
      kube-apiserver has merged its selectors and accepted it.
    - ``terms``: the other suspects.
    - ``accepted``: all terms that are not refused, for the rules that also look at terms without a fault.

    Source: kubernetes v1.37.1 staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go, Store.create.
    """
    suspects = f"variables.all.filter(t, {_suspicious(root, behaviour)})"
    if root is PODS:
        return {"suspects": suspects, "terms": "variables.suspects", "accepted": "variables.all"}
    refused = _refused(root, behaviour)
    return {
        "suspects": suspects,
        "refused": f"variables.suspects.filter(t, {refused})",
        "terms": f"variables.suspects.filter(t, !({refused}))",
        "accepted": f"variables.all.filter(t, !({refused}))",
    }


def _suspicious(root: Root, behaviour: Behaviour) -> str:
    """Return the condition that a term violates a rule or is refused, or may do so: cheaper than the rules together."""
    keys = [f"!{known('key')}", f"key in {text(sorted(ONE_POD_EACH))}"]
    conditions = ["!t.selects", "t.selected.size() == 0", f"t.topologyKey in {text(sorted(CURRENT_KEYS))}"]
    if root is not PODS:
        keys.append("key in t.selected")
    if root is WORKLOADS and not behaviour.validates_stateful_sets:
        conditions.append("t.match.exists(key, key in t.mismatch)")
    conditions += [f"{field}.exists(key, {repeated(field)})" for field in ("t.match", "t.mismatch")]
    conditions += [f"(t.match + t.mismatch).exists(key, {' || '.join(keys)})", f"t.spread && {IS_UNMET}"]
    return " ||\n  ".join(conditions)


def _refused(root: Root, behaviour: Behaviour) -> str:
    """Return the condition that kube-apiserver refuses pods for a term: the merge names a key of theirs twice."""
    twice = f"(key in t.selected || {repeated('t.match')})"
    refused = f"{merged(behaviour)}t.selects && t.match.exists(key, {known('key')} && {twice})"
    if root is WORKLOADS and not behaviour.validates_stateful_sets:
        errors = " || ".join(f"{keys}.size() > 0" for keys, _ in UNVALIDATED)
        refused = f"{refused} || {_IN_STATEFUL_SET} && ({errors})"
    return refused


_Violations: TypeAlias = Callable[[Root, Behaviour], str]


class Expression(msgspec.Struct, frozen=True):
    """A rule in CEL.

    Attributes:
        rule: The rule.
        violations: The expression of a list with an entry for each violation: a list of texts for the message.
        values: The expressions of the values in message and fix, by name; ``violation`` is the first violation.
        roots: The places of pods and templates that the rule looks at.
        applies: Tells whether the rule can find anything with this behaviour.
        fix: A template of what to do before the object is stored; "" for the fix of the rule.
    """

    rule: Rule
    violations: _Violations
    values: Mapping[str, str]
    roots: tuple[Root, ...] = ROOTS
    applies: Callable[[Behaviour], bool] = lambda _behaviour: True
    fix: str = ""


def _of_terms(condition: str, *values: str, terms: str = "variables.terms") -> _Violations:
    """Return the violations of terms for which a condition holds, with values of each such term ``t``."""
    return lambda _root, _behaviour: f"{terms}\n.filter(t, {condition})\n.map(t, [{', '.join(values)}])"


def _of_keys(keys: str, condition: str, *, terms: str = "variables.terms") -> str:
    """Return the violations of terms with keys for which a condition holds: lists of these keys."""
    return f"{terms}\n.map(t, [({keys}).filter(key, {condition})])\n.filter(keys, keys[0].size() > 0)"


def _of_the_pod(condition: str, value: str) -> _Violations:
    """Return the violation of a pod with terms of which kube-apiserver accepts the first.

    Args:
        condition: The condition; ``{spec}`` stands for the spec of the pod.
        value: The value of the violation.
    """
    accepted = "variables.accepted.size() > 0 && variables.all[0] == variables.accepted[0]"

    def violations(root: Root, _behaviour: Behaviour) -> str:
        spec = f"{root.template}.spec"
        return f"{accepted} && {condition.format(spec=spec)} ? [[{value.format(spec=spec)}]] : []"

    return violations


_BINDING_KEYS: Final = text(sorted(BINDING_KEYS))
_LACKS: Final = f"!{known('key')}"
_KEYS: Final = "violation[0]"
_ABSENT: Final = "(violation[0] + violation[1])"
_OF_REVISIONS: Final = f"{_ABSENT}.all(key, key in {text(LABELS)})"
_WITH_LABELS: Final = [kind for root in ROOTS for kind in root.kinds if labels_of_controller(kind)]
_NEVER: Final = f"request.kind.kind in {text(_WITH_LABELS)} && {_OF_REVISIONS}"
_REVISION_KEY: Final = f"variables.presumed.filter(key, key in {text(LABELS)})"
_ADVICE: Final = (
    f"!{_OF_REVISIONS} ? {text(capitalized(ABSENT_KEY.fix))} : "
    f'{_REVISION_KEY}.size() > 0 ? "Use " + {_REVISION_KEY}[0] + " instead of " + {listed(_ABSENT)} : '
    f'"Remove " + {listed(_ABSENT)} + ", because these pods have no label for revisions"'
)
_REPEATED_IN_VAIN: Final = text(effect_of_repeated("mismatchLabelKeys", spread=False))
_EFFECT_OF_NULL: Final = (
    f"t.spread ? {text(effect_of_null(spread=True, blocks=False))} : t.required && !t.anti ? "
    f"{text(effect_of_null(spread=False, blocks=True))} : {text(effect_of_null(spread=False, blocks=False))}"
)
_EFFECT_WITHOUT_LABEL: Final = (
    f"t.anti ? {text(effect_without_label(anti=True, required=True))} : t.required ? "
    f"{text(effect_without_label(anti=False, required=True))} : "
    f"{text(effect_without_label(anti=False, required=False))}"
)


def _absent_key(root: Root, _behaviour: Behaviour) -> str:
    """Return the violations of SPR107; what a pod's own selector names is authored, also as a key to mismatch."""
    absent = f"{_LACKS} && !(key in {_BINDING_KEYS})"
    authored = "!(key in t.selected) && "
    matched = f"t.match.filter(key, {authored}{absent})"
    mismatched = f"t.mismatch.filter(key, {authored if root is PODS else ''}{absent})"
    terms = "variables.suspects.filter(t, t.selects)"
    return f"{terms}\n.map(t, [{matched}, {mismatched}])\n.filter(keys, keys[0].size() + keys[1].size() > 0)"


def _authored_key(_root: Root, _behaviour: Behaviour) -> str:
    return _of_keys("t.match", f"key in t.selected && {_LACKS}")


def _binding_key(_root: Root, _behaviour: Behaviour) -> str:
    keys = "t.match + t.mismatch"
    return _of_keys(keys, f"key in {_BINDING_KEYS} && !(key in t.selected) && {_LACKS}")


def _pods_refused(root: Root, behaviour: Behaviour) -> str:
    """Return the violations of SPR202: the errors of kube-apiserver on each term that it refuses in the pods."""
    reasons = [
        (
            f"t.match.filter(key, {known('key')} && key in t.selected)",
            "exists in both matchLabelKeys and labelSelector",
        ),
        (f"t.match.filter(key, {known('key')} && {repeated('t.match')})", "is listed twice in matchLabelKeys"),
    ]
    if root is WORKLOADS and not behaviour.validates_stateful_sets:
        reasons += UNVALIDATED
    errors = " + ".join(f"{keys}.map(key, key + {text(f' {detail}')})" for keys, detail in reasons)
    return f"variables.refused.map(t, {errors}).map(errors, [errors])"


def _repeated_key(_root: Root, _behaviour: Behaviour) -> str:
    matched, mismatched = (f"{keys}.filter(key, {repeated(keys)})" for keys in ("t.match", "t.mismatch"))
    of_constraint, of_term = (text(effect_of_repeated("matchLabelKeys", spread=spread)) for spread in (True, False))
    effect = f"t.spread ? {of_constraint} : {of_term}"
    repetition = "keys[0].size() + keys[1].size() > 0"
    return f"variables.terms\n.map(t, [{matched}, {mismatched}, [dyn({effect})]])\n.filter(keys, {repetition})"


def _own_group(_root: Root, _behaviour: Behaviour) -> str:
    keys = text(sorted(ONE_POD_EACH))
    return _of_keys(
        "t.match", f"key in {keys} && {known('key')}", terms=f"variables.terms.filter(t, t.spread && !{IS_UNMET})"
    )


def _empty_selector(_root: Root, _behaviour: Behaviour) -> str:
    """Return the violations of SPR205; the scheduler adds the values of matchLabelKeys to an empty selector."""
    condition = f"t.spread && t.selects && t.selected.size() == 0 && !t.match.exists(key, {known('key')})"
    return f"variables.terms\n.filter(t, {condition})\n.map(t, [t.topologyKey])"


def _self_mismatch(_root: Root, _behaviour: Behaviour) -> str:
    """Return the violations of SPR206: the unmet requirements of each constraint, and the labels of the pods."""
    have = '{key} in variables.labels ? {key} + "=" + variables.labels[{key}] : "no label " + {key}'
    label = f'[key + "=" + t.labels[key], {have.format(key="key")}]'
    values = '(has(r.values) ? " [" + r.values.join(", ") + "]" : "")'
    requirement = f'[r.key + " " + r.operator + {values}, {have.format(key="r.key")}]'
    unmet = f"t.labels.map(key, {UNMET_LABEL}, {label}) + t.requirements.map(r, {UNMET_REQUIREMENT}, {requirement})"
    columns = "unmet.map(pair, pair[0]), unmet.map(pair, pair[1])"
    constraints = "variables.terms.filter(t, t.spread)"
    return f"{constraints}\n.map(t, {unmet})\n.filter(unmet, unmet.size() > 0)\n.map(unmet, [{columns}])"


def _counts_old_revisions(_root: Root, behaviour: Behaviour) -> str:
    rolls = (
        'request.kind.kind == "Deployment" && dyn(object).spec.?strategy.?type.orValue("") != "Recreate" && '
        "!(dyn(object).spec.?replicas.orValue(1) in [0, 1])"
    )
    counts = "t.selected.size() > 0" if behaviour.empty_selector_counts_nothing else "true"
    condition = (
        f"t.spread && t.required && t.selects && {counts} && t.match.size() == 0 && "
        f'!("pod-template-hash" in t.selected) && !{IS_UNMET}'
    )
    return f"!({rolls}) ? [] :\nvariables.accepted\n.filter(t, {condition})\n.map(t, [t.topologyKey])"


def _no_spread(_root: Root, _behaviour: Behaviour) -> str:
    several = "dyn(object).spec.?replicas.orValue(0) > 1"
    return f"{several} && !variables.listed.exists(t, t.spread || t.anti) ? [[request.kind.kind]] : []"


EXPRESSIONS: Final = (
    Expression(
        PODS_REFUSED,
        _pods_refused,
        {
            "refuses": text("accepts the template and refuses"),
            "errors": f'{distinct("violation[0]")}.join("; ")',
            "seen": text(""),
        },
        TEMPLATES,
    ),
    Expression(
        ABSENT_KEY,
        _absent_key,
        {
            "field": (
                'violation[1].size() == 0 ? "matchLabelKeys lists" : violation[0].size() == 0 ? '
                '"mismatchLabelKeys lists" : "matchLabelKeys and mismatchLabelKeys list"'
            ),
            "keys": listed(_ABSENT),
            "who": f'{_NEVER} ? "pods of a " + request.kind.kind + " never have" : "the pods do not have"',
            "which": f'{single(_ABSENT)} ? "that label" : "those labels"',
            "effect": f'{single(_ABSENT)} ? "the key is ignored" : "the keys are ignored"',
            "advice": _ADVICE,
        },
        fix="{advice}",
    ),
    Expression(
        BINDING_KEY,
        _binding_key,
        {"keys": listed(_KEYS), "effect": f'{single(_KEYS)} ? "the key is ignored" : "the keys are ignored"'},
        fix="remove {keys}",
    ),
    Expression(
        REPEATED_KEY,
        _repeated_key,
        {
            "field": 'violation[0].size() == 0 ? "mismatchLabelKeys" : "matchLabelKeys"',
            "keys": listed("(violation[0].size() == 0 ? violation[1] : violation[0])"),
            "effect": f"violation[0].size() == 0 ? {_REPEATED_IN_VAIN} : violation[2][0]",
        },
    ),
    Expression(
        NULL_SELECTOR,
        _of_terms("!t.selects", _EFFECT_OF_NULL),
        {"effect": "violation[0]"},
    ),
    Expression(
        EMPTY_SELECTOR,
        _empty_selector,
        {"then": text(COUNTED_LATER)},
        applies=lambda behaviour: behaviour.empty_selector_counts_nothing,
    ),
    Expression(
        SELF_MISMATCH,
        _self_mismatch,
        {"asked": listed("violation[0]"), "have": listed("violation[1]"), "template": text("")},
    ),
    Expression(OWN_GROUP, _own_group, {"key": "violation[0][0]"}),
    Expression(
        DEPRECATED_TOPOLOGY_KEY,
        _of_terms(f"t.topologyKey in {text(CURRENT_KEYS)}", "string(t.topologyKey)", _EFFECT_WITHOUT_LABEL),
        {
            "key": "violation[0]",
            "since": f"{text(CURRENT_KEYS)}[violation[0]][0]",
            "effect": "violation[1]",
            "current": f"{text(CURRENT_KEYS)}[violation[0]][1]",
        },
    ),
    Expression(
        AUTHORED_KEY,
        _authored_key,
        {"keys": listed(_KEYS)},
        fix="remove {keys} from matchLabelKeys, which changes nothing for pods without the label",
    ),
    Expression(COUNTS_OLD_REVISIONS, _counts_old_revisions, {"revisions": text("all revisions")}, (WORKLOADS,)),
    Expression(
        DAEMON_SET_SPREAD,
        _of_terms(
            'request.kind.kind == "DaemonSet" && t.spread',
            f"t.pins ? {text(KEEPS_OFF)} : {text(NOTHING_TO_SPREAD)}",
            terms="variables.accepted",
        ),
        {"effect": "violation[0]"},
        (WORKLOADS,),
    ),
    Expression(
        NODE_NAME,
        _of_the_pod('{spec}.?nodeName.orValue("") != ""', "{spec}.nodeName"),
        {
            "node": "violation[0]",
            **{
                name: f'request.kind.kind == "Pod" ? {text(OF_POD[name])} : {text(OF_TEMPLATE[name])}'
                for name in OF_POD
            },
        },
    ),
    Expression(
        UNKNOWN_SCHEDULER,
        _of_the_pod(
            'variables.all[0].spread && !({spec}.?schedulerName.orValue("") in ' + text(["", DEFAULT_SCHEDULER]) + ")",
            "{spec}.schedulerName",
        ),
        {"scheduler": "violation[0]", "spreading": text(UNKNOWN_SPREADING)},
        fix="nothing to do if that scheduler respects spread constraints",
    ),
    Expression(NO_SPREAD, _no_spread, {"defaults": text(UNKNOWN_DEFAULTS), "revisions": text("")}, (WORKLOADS,)),
)
"""The rules on new pods and templates that look at one object alone."""
