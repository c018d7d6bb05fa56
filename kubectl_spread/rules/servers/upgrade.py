"""SPR403 to SPR405: pods and templates that another Kubernetes accepts or refuses differently (--to)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from kubectl_spread.audit.evaluation.evaluators import Comparison
from kubectl_spread.audit.merge.admission import AdmissionCheck, Refusals
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.templates import Refused, Template
from kubectl_spread.kube.api.fieldpath import POD_SPEC
from kubectl_spread.phrases import versions
from kubectl_spread.report.model import Severity
from kubectl_spread.rules.model import VALIDATION, Evidence, Rule, Values, names
from kubectl_spread.rules.rule_input import InputPart, RuleInput

_LAST_WITHOUT_CARE: Final = 32
_FIRST_MERGING: Final = 34
_REPLACE: Final = "replace the pods after the change; until then they can be deleted and evicted, but not edited"
_WANTED: Final = "nothing to do if that is wanted, else correct the field that the error names before the change"


_OF_MINORS: Final = frozenset({"compared", "errors"})
"""The values that may differ between minors that do the same."""


def on_the_way(
    rule_input: RuleInput, check: Callable[[RuleInput, Comparison], Iterator[Evidence]]
) -> Iterator[Evidence]:
    """Yield what a check of one comparison yields for the minors on the way to the other Kubernetes.

    Minors that do the same share one piece of evidence, whose value ``compared`` names them. Its other values are of
    the first of them.
    """
    minors: dict[object, list[int]] = {}
    first: dict[object, Evidence] = {}
    for comparison in rule_input.audit.comparisons:
        for evidence in check(rule_input, comparison):
            values = frozenset((name, value) for name, value in evidence.values.items() if name not in _OF_MINORS)
            key = (evidence.pods, evidence.severity, values)
            first.setdefault(key, evidence)
            minors.setdefault(key, []).extend(comparison.minors)
    for alike, evidence in first.items():
        yield msgspec.structs.replace(evidence, values={**evidence.values, "compared": versions(minors[alike])})


def evaluated(rule_input: RuleInput) -> Values:
    """Return the values of a message about the minor whose rules decide."""
    judged = f"1.{rule_input.behaviour.minor}"
    return {"judged": judged, "but": f"and Kubernetes {judged} does not"}


def _scheduler_skip(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield pending pods with keys that only the scheduler adds, for an upgrade that skips 1.33."""
    upgrade = rule_input.audit.context.extra_checks.upgrade
    last = upgrade[-1].minor if upgrade else 0
    if rule_input.behaviour.minor > _LAST_WITHOUT_CARE or last < _FIRST_MERGING:
        return
    keys_by_pod: dict[str, list[str]] = {}
    for member in rule_input.taken:
        if member.pod.pod_class.stored and not member.pod.node and not member.pod.terminating:
            for key in member.keys:
                if key.verdict is Verdict.SCHEDULER_MERGED:
                    keys_by_pod.setdefault(member.pod.name, []).append(key.key)
    if keys_by_pod:
        keys = sorted({key for keys in keys_by_pod.values() for key in keys})
        yield Evidence(tuple(sorted(keys_by_pod)), {"keys": ", ".join(keys), "compared": f"1.{last}"})


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
    yield from on_the_way(rule_input, _stops_working_then)


def _stops_working_then(rule_input: RuleInput, comparison: Comparison) -> Iterator[Evidence]:
    only_then = _OnlyFirst(comparison.admission, rule_input.audit.admission)
    yield from _accepted_without_pods(rule_input, comparison)
    yield from _newly_refused(rule_input, comparison, only_then, Severity.ERROR, Severity.WARNING)


def _starts_working(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield templates and pods that the API refuses now and would accept then."""
    yield from on_the_way(rule_input, _starts_working_then)


def _starts_working_then(rule_input: RuleInput, comparison: Comparison) -> Iterator[Evidence]:
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
            values = _values(rule_input, Refused.PODS, refusal.messages)
            but = f"although it accepts the template, which Kubernetes {values['judged']} refuses"
            yield Evidence((), {**values, "but": but}, Severity.WARNING)


def _values(rule_input: RuleInput, refused: Refused, messages: Iterable[str]) -> Values:
    return {**evaluated(rule_input), "refused": str(refused), "errors": "; ".join(messages)}


def _newly_refused(
    rule_input: RuleInput, comparison: Comparison, only_first: _OnlyFirst, creation: Severity, edit: Severity
) -> Iterator[Evidence]:
    """Yield templates and pods that only the first API server refuses.

    Edits of pods are left out if their template is reported.
    """
    if rule_input.template is not None:
        for refusal in _refusals_at_path(rule_input, rule_input.template, only_first):
            yield Evidence((), _values(rule_input, refusal.refused, refusal.messages), creation)
        return
    pods, messages = rule_input.refused_pods(only_first.creations, stored=False)
    if pods:
        yield Evidence(names(pods), _values(rule_input, Refused.POD, messages), creation)
    templates = comparison.templates(rule_input.workload)
    if any(_refusals_at_path(rule_input, template, only_first) for template in templates):
        return
    pods, messages = rule_input.refused_pods(only_first.edits)
    if pods:
        fix = _REPLACE if edit is Severity.WARNING else None
        yield Evidence(names(pods), _values(rule_input, Refused.EDIT, messages), edit, fix)


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
    summary="Pending pods of 1.32 or older rely on the scheduler for their keys, and the upgrade skips 1.33 (--to)",
    message=(
        "The selectors of these pending pods lack {keys}. kube-scheduler adds the keys itself up to 1.37, but the "
        "release notes ask to schedule such pods before an upgrade to {compared}."
    ),
    why=(
        "With the merge in 1.34 the scheduler was to stop adding matchLabelKeys, so the release note says to go from "
        "1.32 to 1.34 by way of 1.33 and to have pods of 1.32 scheduled by then. 1.34 to 1.37 still add the keys, so "
        "that skipping 1.33 does not harm such pods today. KEP-3243 plans the removal for 1.38, and v1.38.0-alpha.2 "
        "does not have it."
    ),
    fix=(
        "nothing to do up to 1.37; to follow the release notes, upgrade to 1.33 first and wait until the pods are "
        "scheduled"
    ),
    source="https://github.com/kubernetes/kubernetes/pull/129874",
    no_remedy="No supported version harms these pods.",
    parts=InputPart.MEMBERS,
    check=_scheduler_skip,
)
STOPS_WORKING: Final = Rule(
    code="SPR404",
    name="stops-working",
    severity=Severity.ERROR,
    summary="The other Kubernetes refuses what this one accepts (--to)",
    message="Kubernetes {compared} refuses {refused}, {but}. Error: {errors}.",
    why=(
        "Up to 1.33 keys are compared with the selector as it is written, in templates and pods alike. From 1.34 on "
        "pods are validated after the merge. A key that appears twice in matchLabelKeys worked before and still "
        "passes in the template, but then every new pod is refused. After a downgrade, 1.33 refuses every edit of a "
        "merged pod. Pods that run are not affected until they are edited or replaced."
    ),
    fix="correct the field that the error names before the change",
    source=VALIDATION,
    cases=(
        (Severity.ERROR, "New objects or pods will be refused."),
        (Severity.WARNING, "Edits of pods will be refused, or the template was refused before too."),
    ),
    no_remedy=(
        "The right value of the field is for the owner of the workload to say, and pods are replaced after the change."
    ),
    compares=True,
    check=_stops_working,
)
STARTS_WORKING: Final = Rule(
    code="SPR405",
    name="starts-working",
    severity=Severity.INFO,
    summary="The other Kubernetes accepts what this one refuses (--to)",
    message="Kubernetes {judged} refuses {refused}, and Kubernetes {compared} does not. Error: {errors}.",
    why=(
        "An object that was refused takes effect after the change: a Deployment that could not be applied, pods that "
        "no controller could create, edits that were refused."
    ),
    fix=_WANTED,
    source=VALIDATION,
    no_remedy="The other Kubernetes accepts the objects as they are.",
    compares=True,
    check=_starts_working,
)
