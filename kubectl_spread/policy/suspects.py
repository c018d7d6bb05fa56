"""The terms that the rules look at: those that may violate one, and those whose pods kube-apiserver refuses."""

from __future__ import annotations

from typing import Final

from kubectl_spread.kube.apiserver.validation import CURRENT_KEYS
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.policy.roots import PODS, WORKLOADS, Root, known, merged, repeated, text
from kubectl_spread.rules.constraints.grouping import ONE_POD_EACH

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
