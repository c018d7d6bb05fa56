"""The guard of labels: updates of a pod that make its merged selectors wrong, as CEL expressions."""

from __future__ import annotations

from typing import Final

from kubectl_spread.audit.merge.verdicts import BINDING_KEYS
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.policy.expressions import Expression
from kubectl_spread.policy.roots import PODS, Root, merged, text
from kubectl_spread.rules.selectors.relabelled import REMOVED_LABEL, STALE_LABEL
from kubectl_spread.rules.selectors.verdicts import LATE_LABEL

_TERMS: Final = "variables.all.filter(t, t.selects)"
_LISTS: Final = (("t.match", "In"), ("t.mismatch", "NotIn"))
_NEW: Final = "variables.labels"
_OLD: Final = "variables.oldLabels"
OLD_LABELS: Final = "oldObject.metadata.?labels.orValue({})"
"""The labels before the update, the variable ``oldLabels``."""


def _merged(condition: str) -> str:
    """Return the keys of a term for which a condition on the merged requirement ``r`` holds."""
    return " +\n  ".join(
        f'{keys}.filter(key, t.requirements.exists(r, r.key == key && r.operator == "{operator}" && '
        f"has(r.values) && r.values.size() == 1 && {condition}))"
        for keys, operator in _LISTS
    )


def _violations(keys: str) -> str:
    """Return the violations of terms: the first key of each, and its label before and after the update."""
    values = f'[string(keys[0]), {_OLD}[?keys[0]].orValue("(none)"), {_NEW}[?keys[0]].orValue("(none)")]'
    return f"{_TERMS}\n.map(t, {keys})\n.filter(keys, keys.size() > 0).map(keys, {values})"


def _stale(_root: Root, _behaviour: Behaviour) -> str:
    differs = "key in {labels} && {labels}[key] != r.values[0]"
    return _violations(_merged(f"{differs.format(labels=_NEW)} && !({differs.format(labels=_OLD)})"))


def _removed(_root: Root, _behaviour: Behaviour) -> str:
    return _violations(_merged(f"!(key in {_NEW}) && key in {_OLD}"))


def _late(_root: Root, behaviour: Behaviour) -> str:
    """Return the violations of SPR105, for the terms that the API server merges."""
    added = f"{merged(behaviour)}!(key in {_OLD}) && key in {_NEW} && !(key in t.selected)"
    return _violations(f"(t.match + t.mismatch).filter(key, {added} && !(key in {text(sorted(BINDING_KEYS))}))")


GUARD: Final = (
    Expression(
        STALE_LABEL,
        _stale,
        {
            "key": "violation[0]",
            "stored": "violation[1]",
            "label": "violation[2]",
            "changed": text(""),
            "effect": text("Its selector keeps the old value, and pods that select the old value no longer count it."),
        },
        (PODS,),
    ),
    Expression(
        REMOVED_LABEL,
        _removed,
        {
            "key": "violation[0]",
            "requirement": '"names " + violation[0] + "=" + violation[1]',
            "effect": text("Pods that select the label no longer count it."),
        },
        (PODS,),
    ),
    Expression(
        LATE_LABEL,
        _late,
        {
            "key": "violation[0]",
            "label": "violation[2]",
            "changed": text(""),
            "effect": text("The selector is merged only when a pod is created"),
        },
        (PODS,),
    ),
)
"""The rules on updates of pods."""
