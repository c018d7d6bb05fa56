"""SPR109 and SPR110: keys to match that have no effect, or a harmful one, whatever the pods' labels are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.audit.evaluation.evaluate import EvaluatedPod
from kubectl_spread.audit.merge.verdicts import BINDING_KEYS, Verdict
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Operator
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import Evidence, Rule
from kubectl_spread.rules.rule_input import InputPart, RuleInput
from kubectl_spread.rules.variants import TermVariant


def _authored_key(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield matchLabelKeys that the author's selector names as well."""
    if rule_input.template is not None:
        yield from _of_template(key for variant in rule_input.variants for key in _authored(variant))
        return
    yield from _of_members(
        (member, key.key)
        for member in rule_input.taken
        for key in member.keys
        if key.verdict is Verdict.AUTHORED and key.operator is Operator.IN
    )


def _authored(variant: TermVariant) -> list[str]:
    """Return the keys that the selector names and the labels lack; with the label, the API would refuse the pods."""
    keys = _keys_of_selector(variant)
    return [key for key in variant.term.match_label_keys if key in keys and key not in variant.labels]


def _binding_key(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield keys that pods get when they are bound, unless the pods had a value before."""
    if rule_input.template is not None:
        yield from _of_template(key for variant in rule_input.variants for key in _of_binding(variant))
        return
    yield from _of_members(
        (member, key.key)
        for member in rule_input.taken
        for key in member.keys
        if key.verdict in (Verdict.BIND_LABEL, Verdict.ABSENT_KEY) and key.key in BINDING_KEYS
    )


def _of_binding(variant: TermVariant) -> list[str]:
    term = variant.term
    keys = dict.fromkeys((*term.match_label_keys, *term.mismatch_label_keys))
    return [key for key in keys if key in BINDING_KEYS - _keys_of_selector(variant) - variant.labels.keys()]


def _keys_of_selector(variant: TermVariant) -> frozenset[str]:
    return frozenset() if variant.term.selector is None else labelselectors.keys(variant.term.selector)


def _of_template(keys: Iterator[str]) -> Iterator[Evidence]:
    if listed := ", ".join(dict.fromkeys(keys)):
        yield Evidence((), {"keys": listed})


def _of_members(members_with_keys: Iterator[tuple[EvaluatedPod, str]]) -> Iterator[Evidence]:
    pairs = list(members_with_keys)
    if pairs:
        pod_names = {member.pod.name for member, _ in pairs}
        yield Evidence(tuple(sorted(pod_names)), {"keys": ", ".join(sorted({key for _, key in pairs}))})


AUTHORED_KEY: Final = Rule(
    code="SPR109",
    name="authored-key",
    severity=Severity.INFO,
    summary="A matchLabelKeys key that the author's own selector names as well",
    message="matchLabelKeys and labelSelector both name {keys}: pods that are created with the label are refused",
    why=(
        "The merge adds nothing for a label that the pod lacks, so the author's own requirement stands alone. As soon "
        "as new pods have the label, kube-apiserver refuses every one of them; without the merge, before 1.34, it "
        "refuses a spread constraint with such a key in any case."
    ),
    fix="name the key once: in matchLabelKeys or in labelSelector",
    source="https://github.com/kubernetes/kubernetes/issues/130063",
    of=InputPart.MEMBERS | InputPart.TEMPLATE,
    check=_authored_key,
)
BINDING_KEY: Final = Rule(
    code="SPR110",
    name="binding-key",
    severity=Severity.INFO,
    summary="A key to match or mismatch that pods get only when they are bound to a node",
    message="pods have no {keys} until they are bound, after merge and scheduling: the key does nothing",
    why=(
        "From 1.35 on, binding copies the zone and region of the node to the pod (before, nothing does). The merge and "
        "the scheduler ran earlier and skipped the key. The label that bound pods have then is not sign of a fault."
    ),
    fix="remove the key",
    source="https://kep.k8s.io/4742",
    of=InputPart.MEMBERS | InputPart.TEMPLATE,
    check=_binding_key,
)
