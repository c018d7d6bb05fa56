"""SPR403 to SPR405: pods and templates that another Kubernetes accepts or refuses differently (--to)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kubectl_spread.audit.evaluation.evaluators import Comparison
from kubectl_spread.audit.merge.admission_check import AdmissionCheck, Refusals
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.templates import Refused, Template
from kubectl_spread.kube.api.fieldpath import POD_SPEC
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import VALIDATION, Evidence, Rule, Values, names
from kubectl_spread.rules.rule_input import InputPart, RuleInput

_LAST_WITHOUT_CARE: Final = 32
_FIRST_MERGING: Final = 34
_REPLACE: Final = "delete, eviction, status and binding still work; after the change {restart}"


def minors(rule_input: RuleInput, comparison: Comparison) -> Values:
    """Return the values of a message about both minors."""
    judged = f"1.{rule_input.behaviour.minor}"
    return {"judged": judged, "compared": f"1.{comparison.behaviour.minor}", "but": f"{judged} does not"}


def _scheduler_skip(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield pending pods with keys that only the scheduler adds, for an upgrade that skips 1.33."""
    upgrade = rule_input.audit.context.extra_checks.upgrade
    if upgrade is None or rule_input.behaviour.minor > _LAST_WITHOUT_CARE or upgrade.minor < _FIRST_MERGING:
        return
    keys_by_pod: dict[str, list[str]] = {}
    for member in rule_input.taken:
        if member.pod.pod_class.stored and not member.pod.node and not member.pod.terminating:
            for key in member.keys:
                if key.verdict is Verdict.SCHEDULER_MERGED:
                    keys_by_pod.setdefault(member.pod.name, []).append(key.key)
    if keys_by_pod:
        keys = sorted({key for keys in keys_by_pod.values() for key in keys})
        yield Evidence(tuple(sorted(keys_by_pod)), {"keys": ", ".join(keys), "compared": f"1.{upgrade.minor}"})


class _OnlyFirst(NamedTuple):
    """The refusals of one API server for objects that another one accepts."""

    refusing: AdmissionCheck
    accepting: AdmissionCheck

    def template(self, template: Template) -> Refusals:
        """Return the refusals of a template."""
        return () if self.accepting.template(template) else self.refusing.template(template)

    def creations(self, pod_class: PodClass) -> Refusals:
        """Return the refusals to create pods of a class."""
        return () if self.accepting.creations(pod_class) else self.refusing.creations(pod_class)

    def edits(self, pod_class: PodClass) -> Refusals:
        """Return the refusals to update pods of a class."""
        return () if self.accepting.edits(pod_class) else self.refusing.edits(pod_class)


def _stops_working(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield templates and pods that the API accepts now and would refuse then; edits have a lower severity."""
    if comparison := rule_input.audit.comparison:
        only_then = _OnlyFirst(comparison.admission, rule_input.audit.admission)
        yield from _accepted_without_pods(rule_input, comparison)
        yield from _newly_refused(rule_input, comparison, only_then, Severity.ERROR, Severity.WARNING)


def _starts_working(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield templates and pods that the API refuses now and would accept then."""
    if comparison := rule_input.audit.comparison:
        only_now = _OnlyFirst(rule_input.audit.admission, comparison.admission)
        yield from _newly_refused(rule_input, comparison, only_now, Severity.INFO, Severity.INFO)


def _accepted_without_pods(rule_input: RuleInput, comparison: Comparison) -> Iterator[Evidence]:
    """Yield a template that is refused now, and would then be accepted while all its pods are refused."""
    template = rule_input.template
    if template is None:
        return
    now = rule_input.audit.admission.template(template)
    if not any(refusal.refused is Refused.TEMPLATE for refusal in now):
        return
    for refusal in comparison.admission.template(template):
        if refusal.refused is Refused.PODS and refusal.path == rule_input.path:
            values = _values(rule_input, comparison, Refused.PODS, refusal.messages)
            but = f"but takes the template, which {values['judged']} refuses"
            yield Evidence((), {**values, "but": but}, Severity.WARNING)


def _values(rule_input: RuleInput, comparison: Comparison, refused: Refused, messages: Iterable[str]) -> Values:
    return {**minors(rule_input, comparison), "refused": str(refused), "errors": "; ".join(messages)}


def _newly_refused(
    rule_input: RuleInput, comparison: Comparison, only_first: _OnlyFirst, creation: Severity, edit: Severity
) -> Iterator[Evidence]:
    """Yield templates and pods that only the first API server refuses.

    Edits of pods are left out if their template is reported.
    """
    if rule_input.template is not None:
        for refusal in _refusals_at_path(rule_input, rule_input.template, only_first):
            yield Evidence((), _values(rule_input, comparison, refusal.refused, refusal.messages), creation)
        return
    pods, messages = rule_input.refused_pods(only_first.creations, stored=False)
    if pods:
        yield Evidence(names(pods), _values(rule_input, comparison, Refused.POD, messages), creation)
    templates = comparison.templates(rule_input.workload)
    if any(_refusals_at_path(rule_input, template, only_first) for template in templates):
        return
    pods, messages = rule_input.refused_pods(only_first.edits)
    if pods:
        fix = _REPLACE if edit is Severity.WARNING else None
        yield Evidence(names(pods), _values(rule_input, comparison, Refused.EDIT, messages), edit, fix)


def _refusals_at_path(rule_input: RuleInput, template: Template, only_first: _OnlyFirst) -> Refusals:
    """Return the refusals of a template, by the first API server only, for the term at the path."""
    path = rule_input.pod_path
    return tuple(
        refusal for refusal in only_first.template(template) if refusal.path.moved(template.path, POD_SPEC) == path
    )


SCHEDULER_SKIP: Final = Rule(
    code="SPR403",
    name="scheduler-skip",
    severity=Severity.INFO,
    summary="Unscheduled pods of 1.32 or older rely on the scheduler for their keys, and 1.33 is left out (--to)",
    message=(
        "{keys} is in no selector of these pending pods; the release note of the merge asks that they be scheduled "
        "before the scheduler becomes {compared}, while its code up to 1.37 still adds the keys itself"
    ),
    why=(
        "With the merge in 1.34 the scheduler was to stop adding matchLabelKeys, which is why its release note says to "
        "go from 1.32 to 1.34 by way of 1.33 and to have pods of 1.32 scheduled by then. That part never came: 1.34 "
        "to 1.37 add the keys as ever, so a skip does not harm such pods today. KEP-3243 plans the removal for 1.38; "
        "v1.38.0-alpha.2 does not have it."
    ),
    fix="nothing has to be done up to 1.37; to keep to the release note, go by way of 1.33 and see the pods scheduled",
    source="https://github.com/kubernetes/kubernetes/pull/129874",
    parts=InputPart.MEMBERS,
    check=_scheduler_skip,
)
STOPS_WORKING: Final = Rule(
    code="SPR404",
    name="stops-working",
    severity=Severity.ERROR,
    summary="What this Kubernetes accepts, the other one refuses (--to)",
    message="{compared} refuses {refused}, {but}: {errors}",
    why=(
        "Up to 1.33 keys are held against the selector as it is written, for templates and pods alike. From 1.34 on "
        "pods are evaluated after the merge: a key that appears twice in matchLabelKeys worked before, passes in the "
        "template still, and then every new pod is refused. The way back is no better: 1.33 refuses every edit of a "
        "merged pod. Pods that run are not touched, so this shows when the next one is created, or edited."
    ),
    fix="correct the field that the error names before the change",
    source=VALIDATION,
    check=_stops_working,
)
STARTS_WORKING: Final = Rule(
    code="SPR405",
    name="starts-working",
    severity=Severity.INFO,
    summary="What this Kubernetes refuses, the other one accepts (--to)",
    message="{judged} refuses {refused}, {compared} does not: {errors}",
    why=(
        "What was written down and never came to life does so after the change: a Deployment that was applied in "
        "vain, pods that no controller could create, edits that were refused."
    ),
    fix="nothing to do if that is wanted; else correct the field that the error names before the change",
    source=VALIDATION,
    check=_starts_working,
)
