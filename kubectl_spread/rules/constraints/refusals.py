"""SPR201, SPR202, SPR207 and SPR215: pods, templates and fields that the API refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kubectl_spread.audit.snapshot.records import EventRecord, PodClass, PodRecord
from kubectl_spread.audit.snapshot.templates import PRESUMED, Refusal, Refused
from kubectl_spread.audit.snapshot.terms import split
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.labels import Labels, Operator
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.report.model import CommandLine, Severity
from kubectl_spread.rules import patches
from kubectl_spread.rules.inputs import PodsInput, TemplateInput, TermInput
from kubectl_spread.rules.model import Evidence, Remedy, Rule, Values, names
from kubectl_spread.rules.remedy import changed, saved_unmerged

_CORRECT: Final = "correct the field that the error names"
_CORRECT_SAVED: Final = f"{_CORRECT} in the saved manifest before it is created"
_RENAME: Final = "rename it to {name}"
_MOVE: Final = "move it to {meant}"
_UNWRAP: Final = (
    "move the fields inside it to {meant}, and remove it with its weight, which only a preferred term has. If a "
    "preference is meant, move the entry to preferredDuringSchedulingIgnoredDuringExecution"
)
_UNWRAP_ANY: Final = "move the fields inside it to {meant}"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_NO_WEIGHT: Final = "remove it: only a preferred term has a weight"
_ONCE: Final = "name each key once, in matchLabelKeys or in labelSelector"
_UNMERGE: Final = "run the exported pod through kubectl spread unmerge"
_SAVE_UNMERGED: Final = "save the manifest without the merged part of its selectors"
_ONCE_IN_KEYS: Final = "remove the key from matchLabelKeys: labelSelector already requires the value that the pods have"
_COPIES: Final = " Their owner makes new pods from its template, so only copies are refused, such as a restored backup."


def _refused_pods(rule_input: PodsInput) -> Iterator[Evidence]:
    for refusal, pods in rule_input.refusals:
        fix = _unmerge(rule_input) if _name_a_key_twice(refusal.messages) else _CORRECT
        yield Evidence(pods, _values(refusal), fix=fix)


def _refused_template(rule_input: TemplateInput) -> Iterator[Evidence]:
    for refusal, _ in rule_input.refusals:
        if refusal.refused is Refused.TEMPLATE:
            fix = _named_once(rule_input) if _name_a_key_twice(refusal.messages) else _CORRECT
            yield Evidence((), _values(refusal), fix=fix)


def _values(refusal: Refusal) -> Values:
    return {"refused": str(refusal.refused), "errors": "; ".join(refusal.messages)}


def _unmerge(rule_input: PodsInput) -> Remedy | str:
    """Return the command that removes the merged part of a manifest, if that is what names keys twice."""
    file = "" if rule_input.manifest is None else rule_input.manifest.position.source
    if file in ("", "-") or not all(
        _is_merged(evaluation.pod_class, rule_input.path)
        for row in rule_input.rows
        for evaluation, _ in row.evaluations
    ):
        return _ONCE
    return Remedy(_UNMERGE, (CommandLine(("kubectl", "spread", "unmerge", "-f", file)),))


def _is_merged(pod_class: PodClass, path: FieldPath) -> bool:
    """Tell whether all duplicate keys of a pod's term look as the merge appends them, so that unmerge removes them."""
    for term, parts in zip(pod_class.terms, split(pod_class.terms), strict=True):
        if term.path == path:
            authored = frozenset() if parts.authored is None else labelselectors.keys(parts.authored)
            keys = (*term.match_label_keys, *term.mismatch_label_keys)
            return bool(parts.tail) and authored.isdisjoint(keys) and len(set(keys)) == len(keys)
    return False


def _named_once(rule_input: TemplateInput) -> Remedy:
    """Return how a template names each key once, as a patch where that does not change what the selector requires."""
    terms = rule_input.terms
    selector = terms[0].selector if len(terms) == 1 else None
    if selector is None:
        return changed(_ONCE, (), rule_input)
    (term,) = terms
    selected = {key for key in term.match_label_keys if term.mentions[key]}
    if not selected:
        path, keys = rule_input.term_path / "matchLabelKeys", list(term.match_label_keys)
        return changed(_ONCE, patches.replaced(path, keys, list(dict.fromkeys(keys))), rule_input)
    if all(_requires_own_value(selector, key, rule_input.template.labels) for key in selected):
        return changed(_ONCE_IN_KEYS, patches.without_keys(selected, term, rule_input.term_path), rule_input)
    return changed(_ONCE, (), rule_input)


def _requires_own_value(selector: LabelSelector, key: str, labels: Labels) -> bool:
    requirements = [requirement for requirement in labelselectors.requirements(selector) if requirement.key == key]
    return labels.get(key) != PRESUMED and any(
        requirement.operator == Operator.IN and tuple(requirement.values) == (labels.get(key),)
        for requirement in requirements
    )


def _pods_refused(rule_input: TemplateInput) -> Iterator[Evidence]:
    for refusal, _ in rule_input.refusals:
        if refusal.refused is Refused.PODS:
            events = rule_input.audit.snapshot.ownership.events(rule_input.workload, "FailedCreate")
            values = {
                "refuses": "refuses" if rule_input.template.custom else "accepts the template and refuses",
                "errors": "; ".join(refusal.messages),
                "seen": _seen(refusal, events),
            }
            fix = _named_once(rule_input) if _name_a_key_twice(refusal.messages) else changed(_CORRECT, (), rule_input)
            yield Evidence((), values, fix=fix)


def _seen(refusal: Refusal, events: list[EventRecord]) -> str:
    """Return whether events report the refusal of pods, as a sentence; "" without events.

    An event with the errors comes before a newer one, which may be about a quota.
    """
    if not events:
        return ""
    if any(message in event.message for event in events for message in refusal.messages):
        return " FailedCreate events report this error."
    return " FailedCreate events report another error as well."


def _refused_again(rule_input: PodsInput) -> Iterator[Evidence]:
    """Yield stored pods that the API would not create; an error for bare pods only, as owners use the template."""
    if not rule_input.audit.context.extra_checks.recreate:
        return
    pods, errors = rule_input.refused_pods(rule_input.audit.admission.creations)
    if pods:
        owned = pods[0].pod_class.owner is not None
        values = {"errors": "; ".join(errors), "owner": _COPIES if owned else ""}
        severity = Severity.INFO if owned else Severity.ERROR
        yield Evidence(names(pods), values, severity, _fix_of_recreation(pods, errors, rule_input))


def _fix_of_recreation(pods: list[PodRecord], errors: list[str], rule_input: PodsInput) -> Remedy | str | None:
    if not _name_a_key_twice(errors):
        return _CORRECT_SAVED
    bare = pods[0].pod_class.owner is None
    if not bare or not all(_is_merged(pod.pod_class, rule_input.path) for pod in pods):
        return None
    return Remedy(_SAVE_UNMERGED, tuple(saved_unmerged(pod.ref) for pod in pods))


def _name_a_key_twice(messages: Iterable[str]) -> bool:
    """Tell whether the API reports a duplicate key, as it does for pods that were merged before."""
    return any("exists in both matchLabelKeys and labelSelector" in message for message in messages)


def _unknown_field(rule_input: TermInput) -> Iterator[Evidence]:
    template = rule_input.template if isinstance(rule_input, TemplateInput) else None
    kind = "Pod" if template is None else "pod template" if template.custom else template.kind
    for field, pods in rule_input.unknown_fields:
        name = str(field.intended[-1]) if field.intended else ""
        values = {"field": str(field.path), "kind": kind, "meant": str(field.intended), "name": name}
        yield Evidence(pods, values, fix=_fix(field.path, field.intended))


def _fix(path: FieldPath, intended: FieldPath) -> str | None:
    """Return the fix for a field; None if the intended field is unknown."""
    if not intended:
        return _NO_WEIGHT if path[-1] == "weight" and _REQUIRED in path else None
    if intended == path[:-1]:
        return _UNWRAP if path[-1] == "podAffinityTerm" and _REQUIRED in path else _UNWRAP_ANY
    return _RENAME if path[:-1] == intended[:-1] else _MOVE


REFUSED: Final = Rule(
    code="SPR201",
    name="refused",
    severity=Severity.ERROR,
    summary="kube-apiserver refuses the manifest",
    message="kube-apiserver refuses {refused}: {errors}.",
    fix=_ONCE,
    of_pods=_refused_pods,
    of_template=_refused_template,
)
PODS_REFUSED: Final = Rule(
    code="SPR202",
    name="pods-refused",
    severity=Severity.ERROR,
    summary="kube-apiserver accepts the workload and refuses each of its pods",
    message="kube-apiserver {refuses} every pod of it: {errors}.{seen}",
    fix=_ONCE,
    of_template=_pods_refused,
)
REFUSED_AGAIN: Final = Rule(
    code="SPR207",
    name="refused-again",
    severity=Severity.ERROR,
    summary="kube-apiserver would refuse the stored pod if it were created again unchanged (--recreate)",
    message="Created again as they are stored, these pods are refused: {errors}.{owner}",
    fix="run saved manifests through kubectl spread unmerge before they are created, and correct what that leaves",
    of_pods=_refused_again,
)
UNKNOWN_FIELD: Final = Rule(
    code="SPR215",
    name="unknown-field",
    severity=Severity.ERROR,
    summary="A manifest has a spread or affinity field that is misspelt or in the wrong place",
    message=(
        "A {kind} has no field {field}. kube-apiserver refuses the manifest, or drops the field where validation is "
        "not strict, and the pods are placed without it."
    ),
    fix="remove it: nothing reads it",
    of_pods=_unknown_field,
    of_template=_unknown_field,
)
