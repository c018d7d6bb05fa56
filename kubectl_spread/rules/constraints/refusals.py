"""SPR201, SPR202, SPR207 and SPR215: pods, templates and fields that the API refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kubectl_spread.audit.snapshot.records import EventRecord
from kubectl_spread.audit.snapshot.templates import Refusal, Refused
from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.phrases import plural
from kubectl_spread.report.projections import timestamp
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import VALIDATION, Evidence, Rule, names
from kubectl_spread.rules.rule_input import InputPart, RuleInput

_CORRECT: Final = "correct the field that the error names"
_CORRECT_SAVED: Final = f"{_CORRECT} in the saved manifest before it is created"
_RENAME: Final = "rename it to {name}"
_MOVE: Final = "move it to {meant}"
_PATH: Final = "A path that ends in [i][j] is about entry j of matchLabelKeys in constraint i, both counted from 0."
_COPIES: Final = (
    "; this is about copies (a restored backup, a syncer such as vcluster), for their owner makes new pods from its "
    "template"
)


def _refused(rule_input: RuleInput) -> Iterator[Evidence]:
    for refusal, pods in rule_input.refusals:
        if refusal.refused in (Refused.TEMPLATE, Refused.POD):
            fix = None if _name_a_key_twice(refusal.messages) else _CORRECT
            values = {"refused": str(refusal.refused), "errors": "; ".join(refusal.messages)}
            yield Evidence(pods, values, fix=fix)


def _pods_refused(rule_input: RuleInput) -> Iterator[Evidence]:
    for refusal, pods in rule_input.refusals:
        if refusal.refused is Refused.PODS:
            events = rule_input.audit.snapshot.ownership.events(rule_input.workload, "FailedCreate")
            values = {"errors": "; ".join(refusal.messages), "seen": _failures(refusal, events)}
            yield Evidence(pods, values)


def _failures(refusal: Refusal, events: list[EventRecord]) -> str:
    """Return one event about failures to create pods, as the end of the message; "" without events.

    An event with the errors comes before a newer one, which may be about a quota.
    """
    if not events:
        return ""
    quoting = [event for event in events if all(message in event.message for message in refusal.messages)]
    event = (quoting or events)[0]
    last = f", last at {timestamp(event.last)}" if event.last else ""
    message = "" if quoting else f": {event.message}"
    return f" (FailedCreate {plural(event.count, 'time')}{last}{message})"


def _refused_again(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield stored pods that the API would not create; an error for bare pods only, as owners use the template."""
    if not rule_input.audit.context.extra_checks.recreate:
        return
    pods, errors = rule_input.refused_pods(rule_input.audit.admission.creations)
    if pods:
        owned = pods[0].pod_class.owner is not None
        values = {"errors": "; ".join(errors), "owner": _COPIES if owned else ""}
        severity = Severity.INFO if owned else Severity.ERROR
        fix = None if _name_a_key_twice(errors) else _CORRECT_SAVED
        yield Evidence(names(pods), values, severity, fix)


def _name_a_key_twice(messages: Iterable[str]) -> bool:
    """Tell whether the API reports a duplicate key, as it does for pods that were merged before."""
    return any("exists in both matchLabelKeys and labelSelector" in message for message in messages)


def _unknown_field(rule_input: RuleInput) -> Iterator[Evidence]:
    kind = "Pod" if rule_input.template is None else rule_input.template.kind
    for field, pods in rule_input.unknown_fields:
        name = str(field.intended[-1]) if field.intended else ""
        values = {"field": str(field.path), "kind": kind, "meant": str(field.intended), "name": name}
        yield Evidence(pods, values, fix=_fix(field.path, field.intended))


def _fix(path: FieldPath, intended: FieldPath) -> str | None:
    """Return the fix for a field; None if the intended field is unknown."""
    if not intended:
        return None
    return _RENAME if path[:-1] == intended[:-1] else _MOVE


REFUSED: Final = Rule(
    code="SPR201",
    name="refused",
    severity=Severity.ERROR,
    summary="kube-apiserver would refuse the manifest as it is written",
    message="kube-apiserver refuses {refused}: {errors}",
    why=(
        "A pod is evaluated after the merge, a workload as it is written. A pod that was exported from a cluster holds "
        f"the merged part already: merged again, it names its keys twice. {_PATH}"
    ),
    fix="name each key once, in matchLabelKeys or in labelSelector; run an exported pod through kubectl spread unmerge",
    source=VALIDATION,
    check=_refused,
)
PODS_REFUSED: Final = Rule(
    code="SPR202",
    name="pods-refused",
    severity=Severity.ERROR,
    summary="kube-apiserver takes the workload and refuses every pod of it",
    message="kube-apiserver takes the template and refuses every pod of it: {errors}{seen}",
    why=(
        "Templates are never merged and so are evaluated before the merge, pods after it: a key that stands in "
        "matchLabelKeys and in the selector, or twice in matchLabelKeys, passes in the template. Its pods are refused, "
        "and pods of older templates hide that until they are gone. "
        f"{_PATH}"
    ),
    fix="in the template, name each key once: in matchLabelKeys or in labelSelector",
    source="https://github.com/kubernetes/kubernetes/issues/130063",
    check=_pods_refused,
)
REFUSED_AGAIN: Final = Rule(
    code="SPR207",
    name="refused-again",
    severity=Severity.ERROR,
    summary="The API would refuse the stored pod if it were created again as it stands (--recreate)",
    message="created again, they are refused: {errors}{owner}",
    why=(
        "A merged pod holds its matchLabelKeys and, in the selector, what was made of them. kube-apiserver takes the "
        "two together for a contradiction, so a backup that is restored, a clone, a copy into another cluster or "
        "kubectl replace --force loses the pod. Pods that a controller owns come back from its template."
    ),
    fix="run the saved manifest through kubectl spread unmerge before it is created; correct by hand what that leaves",
    source="https://github.com/loft-sh/vcluster/issues/3684",
    parts=InputPart.PODS,
    check=_refused_again,
)
UNKNOWN_FIELD: Final = Rule(
    code="SPR215",
    name="unknown-field",
    severity=Severity.ERROR,
    summary="A manifest has a spread or affinity field that is misspelt or at the wrong place",
    message=(
        "a {kind} has no field {field}: kube-apiserver refuses the manifest, or drops the field where validation is "
        "not strict, and the pods are placed without it"
    ),
    why=(
        "kubectl asks kube-apiserver for strict validation, which refuses unknown fields. Other clients do not, and "
        "then the field is dropped without an error. Fields inside spread constraints, pod affinity terms and their "
        "selectors are checked, and fields with the names of these, or nearly so, at another place. Objects that were "
        "read from a cluster never have unknown fields."
    ),
    fix="remove it: nothing reads it",
    source="https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation",
    check=_unknown_field,
)
