"""The guard of labels: updates of a pod that make its merged selectors wrong, as CEL expressions."""

from __future__ import annotations

from typing import Final

from kubectl_spread.audit.merge.verdicts import BINDING_KEYS
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.policy.expressions import Expression
from kubectl_spread.policy.messages import message, value
from kubectl_spread.policy.roots import PODS, Root, merged, text
from kubectl_spread.rules.selectors.relabelled import CHANGED, REMOVED, REMOVED_LABEL, STALE_LABEL
from kubectl_spread.rules.selectors.verdicts import LATE_LABEL

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
