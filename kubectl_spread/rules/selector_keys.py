"""SPR107, SPR109 and SPR110: keys to match or mismatch that have no effect, or a harmful one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from operator import itemgetter
from typing import Final, NamedTuple

from kubectl_spread.audit.evaluation.evaluate import EvaluatedPod
from kubectl_spread.audit.merge.verdicts import BINDING_KEYS, REVISION_KEYS, KeyVerdict, Verdict
from kubectl_spread.audit.snapshot.revisions import LABELS, revision_key, revision_key_of
from kubectl_spread.audit.snapshot.templates import labels_of_controller
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels, Operator
from kubectl_spread.phrases import capitalized, listed
from kubectl_spread.report.model import Operation, Severity
from kubectl_spread.rules import patches
from kubectl_spread.rules.inputs import PodsInput, TemplateInput, TermInput, TermVariant
from kubectl_spread.rules.model import Evidence, Remedy, Rule
from kubectl_spread.rules.remedy import changed, literal

_CLOSE: Final = 0.85
"""The least similarity of a misspelt key to the intended one."""
_NAME_ONCE: Final = "remove the key from matchLabelKeys, which changes nothing for pods without the label"
_REMOVE: Final = "remove the key"
_UNKNOWN: Final = "list a label that the pods have, or set this one in the pod template"


class _Advice(NamedTuple):
    """What to do about a key: ``replacement`` is the key to use instead, "" to remove it, None if it is unknown."""

    text: str
    replacement: str | None


def _absent_key(rule_input: PodsInput) -> Iterator[Evidence]:
    """Yield the pods that lack a key, whatever the verdicts on their other keys."""
    members_by_key: dict[str, list[EvaluatedPod]] = {}
    operators: set[Operator] = set()
    for member in rule_input.taken:
        for key in member.keys:
            if key.verdict is Verdict.ABSENT_KEY and key.key not in BINDING_KEYS:
                members_by_key.setdefault(key.key, []).append(member)
                operators.add(key.operator)
    if members_by_key:
        members = [member for lacking in members_by_key.values() for member in lacking]
        pod_class = members[0].pod.pod_class
        kind = pod_class.kind
        values = _values(members_by_key, _fields(Operator.IN in operators, Operator.NOT_IN in operators), kind)
        pod_names = {member.pod.name for member in members}
        advices = {key: _advice(key, kind, pod_class.labels) for key in sorted(members_by_key)}
        terms = {member.pod.pod_class: member.term for member in members}
        fix = _fix(advices, list(terms.values()), rule_input)
        yield Evidence(tuple(sorted(pod_names)), values, fix=fix)


def _absent_from_template(rule_input: TemplateInput) -> Iterator[Evidence]:
    template = rule_input.template
    for term in rule_input.terms:
        if term.selector is None:
            continue
        authored = labelselectors.keys(term.selector)
        matched, mismatched = {*term.match_label_keys} - authored, {*term.mismatch_label_keys}
        absent = {
            key for key in (matched | mismatched) - template.labels.keys() - BINDING_KEYS if not template.may_get(key)
        }
        if absent:
            values = _values(absent, _fields(absent & matched, absent & mismatched), template.kind)
            advices = {key: _advice(key, template.kind, template.labels) for key in sorted(absent)}
            yield Evidence((), values, fix=_fix(advices, [term], rule_input))


def _fields(matched: object, mismatched: object) -> list[str]:
    """Return the names of the fields that are not empty."""
    return [field for field, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)) if keys]


def _values(keys: Iterable[str], fields: Sequence[str], kind: str) -> dict[str, str]:
    """Return the values of the message about keys in some fields that the pods lack."""
    absent = sorted(keys)
    single = len(absent) == 1
    controller_labels = labels_of_controller(kind)
    never = bool(controller_labels) and all(key in LABELS and key not in controller_labels for key in absent)
    return {
        "field": f"{' and '.join(fields)} {'lists' if len(fields) == 1 else 'list'}",
        "keys": listed(absent, len(absent)),
        "labels": f"label {absent[0]}" if single else f"labels {', '.join(absent)}",
        "who": f"pods of a {kind} never have" if never else "the pods do not have",
        "which": "that label" if single else "those labels",
        "effect": "the key is ignored" if single else "the keys are ignored",
    }


def _fix(advices: Mapping[str, _Advice], terms: Sequence[TopologyTerm], rule_input: TermInput) -> Remedy:
    """Return the replacement of each key, as a patch if all are known and all terms list the same keys."""
    text = ". ".join(dict.fromkeys(capitalized(advice.text) for advice in advices.values()))
    replacements = {key: advice.replacement for key, advice in advices.items() if advice.replacement is not None}
    complete = len(replacements) == len(advices)
    operations = [_operations(term, replacements, rule_input) if complete else () for term in terms]
    alike = all(of_term == operations[0] for of_term in operations)
    return changed(literal(text), operations[0] if alike else (), rule_input)


def _operations(term: TopologyTerm, replacements: Mapping[str, str], rule_input: TermInput) -> tuple[Operation, ...]:
    """Return the operations that replace keys, or remove those whose replacement is ""."""
    taken = {*term.match_label_keys, *term.mismatch_label_keys, *term.mentions}
    useful = {key: new for key, new in replacements.items() if new and new not in taken}
    replacing = [
        operation
        for field, entries in patches.KEY_LISTS.items()
        for index, key in enumerate(entries(term))
        if key in useful
        for operation in patches.replaced(rule_input.term_path / field / index, key, useful[key])
    ]
    return (*replacing, *patches.without_keys({*replacements} - {*useful}, term, rule_input.term_path))


def _advice(key: str, kind: str, labels: Labels) -> _Advice:
    """Return the advice to replace a key, to correct it or to remove it."""
    intended = _intended(key, labels)
    if intended in LABELS and intended not in labels:
        correct = revision_key(labels) or revision_key_of(kind)
        if correct == key:
            return _Advice(_UNKNOWN, None)
        if correct:
            return _Advice(f"use {correct} instead of {key}", correct)
        return _Advice(f"remove {key}, because these pods have no label for revisions", "")
    if intended != key:
        single = intended in REVISION_KEYS and intended not in LABELS
        return _Advice(f"did you mean {intended}? Use it instead of {key}", None if single else intended)
    return _Advice(_UNKNOWN, None)


def _intended(key: str, labels: Labels) -> str:
    """Return the well-known key or label of the pods that is nearest to a misspelt key; the key if none is near."""
    candidates = sorted({*LABELS, *REVISION_KEYS, *labels})
    return key if key in candidates else next(iter(get_close_matches(key, candidates, n=1, cutoff=_CLOSE)), key)


def _is_authored(key: KeyVerdict) -> bool:
    """Tell whether a key is in matchLabelKeys, and the author's selector names it as well."""
    return key.verdict is Verdict.AUTHORED and key.operator is Operator.IN


def _authored(variant: TermVariant) -> list[str]:
    """Return the keys that the selector names and the labels lack; with the label, the API would refuse the pods."""
    keys = _keys_of_selector(variant)
    return [key for key in variant.term.match_label_keys if key in keys and _lacks(key, variant)]


def _is_of_binding(key: KeyVerdict) -> bool:
    """Tell whether pods get the label of a key when they are bound, and had no value before."""
    return key.verdict in (Verdict.BIND_LABEL, Verdict.ABSENT_KEY) and key.key in BINDING_KEYS


def _of_binding(variant: TermVariant) -> list[str]:
    term = variant.term
    keys = dict.fromkeys((*term.match_label_keys, *term.mismatch_label_keys))
    return [key for key in keys if key in BINDING_KEYS - _keys_of_selector(variant) and _lacks(key, variant)]


def _lacks(key: str, variant: TermVariant) -> bool:
    """Tell whether pods of a variant do not have a label, and no controller may add it."""
    return key not in variant.labels and not variant.may_get(key)


def _keys_of_selector(variant: TermVariant) -> frozenset[str]:
    return frozenset() if variant.term.selector is None else labelselectors.keys(variant.term.selector)


def _keys_of_pods(rule_input: PodsInput, is_useless: Callable[[KeyVerdict], bool], fix: str) -> Iterator[Evidence]:
    """Yield the keys of pods to remove from the key lists, as ``is_useless`` tells."""
    members = [(member, key.key) for member in rule_input.taken for key in member.keys if is_useless(key)]
    pairs = sorted(((member.term, key) for member, key in members), key=itemgetter(1))
    yield from _to_remove(pairs, sorted({member.pod.name for member, _ in members}), fix, rule_input)


def _keys_of_template(
    rule_input: TemplateInput, keys_of: Callable[[TermVariant], list[str]], fix: str
) -> Iterator[Evidence]:
    """Yield the keys of a template to remove from the key lists, which ``keys_of`` returns."""
    pairs = [(variant.term, key) for variant in rule_input.variants for key in keys_of(variant)]
    yield from _to_remove(pairs, (), fix, rule_input)


def _to_remove(
    pairs: Sequence[tuple[TopologyTerm, str]], pods: Sequence[str], fix: str, rule_input: TermInput
) -> Iterator[Evidence]:
    """Yield one piece of evidence about keys of terms, with the patch that removes them; none for no key."""
    if not pairs:
        return
    keys = list(dict.fromkeys(key for _, key in pairs))
    operations = [patches.without_keys(set(keys), term, rule_input.term_path) for term, _ in pairs]
    alike = all(of_term == operations[0] for of_term in operations)
    effect = "the key is ignored" if len(keys) == 1 else "the keys are ignored"
    values = {"keys": listed(keys, len(keys)), "effect": effect}
    yield Evidence(tuple(pods), values, fix=changed(fix, operations[0] if alike else (), rule_input))


ABSENT_KEY: Final = Rule(
    code="SPR107",
    name="absent-key",
    severity=Severity.WARNING,
    summary="A key in matchLabelKeys or mismatchLabelKeys is ignored because the pods do not have the label",
    message="{field} {keys}, but {who} {which}, so {effect}.",
    fix=_UNKNOWN,
    of_members=_absent_key,
    of_template=_absent_from_template,
)
AUTHORED_KEY: Final = Rule(
    code="SPR109",
    name="authored-key",
    severity=Severity.INFO,
    summary="A key is in matchLabelKeys and in labelSelector, and the pods do not have the label",
    message="matchLabelKeys and labelSelector both name {keys}. As soon as new pods have that label, they are refused.",
    fix=_NAME_ONCE,
    of_members=partial(_keys_of_pods, is_useless=_is_authored, fix=_NAME_ONCE),
    of_template=partial(_keys_of_template, keys_of=_authored, fix=_NAME_ONCE),
)
BINDING_KEY: Final = Rule(
    code="SPR110",
    name="binding-key",
    severity=Severity.WARNING,
    summary="A key in matchLabelKeys or mismatchLabelKeys is ignored because pods get the label when they are bound",
    message="Pods get {keys} only when they are bound to a node, after the merge and the scheduling, so {effect}.",
    fix=_REMOVE,
    of_members=partial(_keys_of_pods, is_useless=_is_of_binding, fix=_REMOVE),
    of_template=partial(_keys_of_template, keys_of=_of_binding, fix=_REMOVE),
)
