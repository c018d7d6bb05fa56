"""SPR403 to SPR406: differences on another Kubernetes (--to)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from kubectl_spread import phrases
from kubectl_spread.audit.evaluation.comparison import Comparison
from kubectl_spread.audit.evaluation.evaluate import EvaluatedConstraint
from kubectl_spread.audit.merge.admission_check import AdmissionCheck, Refusals
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.templates import Refused, Template
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.fieldpath import POD_SPEC
from kubectl_spread.kube.api.types import PodSpec, TopologySpreadConstraint
from kubectl_spread.kube.apiserver import strategy
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Usability
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import some
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import Evidence, Rule
from kubectl_spread.rules.rule_input import InputPart, RuleInput
from kubectl_spread.rules.stored import refused_pods

_MERGE_PULL_REQUEST: Final = "https://github.com/kubernetes/kubernetes/pull/129874"
_VALIDATION: Final = "https://github.com/kubernetes/kubernetes/blob/v1.37.1/pkg/apis/core/validation/validation.go"
_LAST_WITHOUT_CARE: Final = 32
_FIRST_MERGING: Final = 34
_LISTED_DOMAINS: Final = 6
_REPLACE: Final = "delete, eviction, status and binding still work; after the change {restart}"
_GATED_FIELDS: Final = ("matchLabelKeys", "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy")
"""The fields of a spread constraint that an API server may drop."""
Answers = tuple[AdmissionCheck, AdmissionCheck]
"""The checks of the API server that refuses, and of the API server that does not."""


def _scheduler_skip(subject: RuleInput) -> Iterator[Evidence]:
    """Yield pending pods with keys that only the scheduler adds, for an upgrade that skips 1.33."""
    context = subject.audit.context
    other = context.extra_checks.upgrade
    if other is None or context.behaviour.minor > _LAST_WITHOUT_CARE or other.minor < _FIRST_MERGING:
        return
    waiting = {
        member.pod.name: [
            keys_of_pod.key for keys_of_pod in member.keys if keys_of_pod.verdict is Verdict.SCHEDULER_MERGED
        ]
        for member in subject.taken
        if member.pod.pod_class.stored and not member.pod.node and not member.pod.terminating
    }
    keys = {key for keys_of_pod in waiting.values() for key in keys_of_pod}
    if keys:
        pods = tuple(sorted(name for name, keys_of_pod in waiting.items() if keys_of_pod))
        yield Evidence(pods, {"keys": ", ".join(sorted(keys)), "compared": f"1.{other.minor}"})


def _stops_working(subject: RuleInput) -> Iterator[Evidence]:
    """Yield templates and pods that the API accepts now and would refuse then; edits have a lower severity."""
    for comparison in _comparisons(subject):
        answers = (comparison.admission, subject.audit.admission)
        yield from _accepted_without_pods(subject, comparison)
        yield from _newly_refused(subject, comparison, answers, Severity.ERROR, Severity.WARNING)


def _accepted_without_pods(subject: RuleInput, comparison: Comparison) -> Iterator[Evidence]:
    """Yield a template that is refused now, and would then be accepted while all its pods are refused."""
    template = subject.template
    if template is None:
        return
    now = [refusal for refusal in subject.audit.admission.template(template) if refusal.refused is Refused.TEMPLATE]
    then = [refusal for refusal in comparison.admission.template(template) if refusal.refused is Refused.PODS]
    for refusal in then if now else []:
        if refusal.path == subject.path:
            minors = _minors(subject, comparison)
            but = f"but takes the template, which {minors['judged']} refuses"
            values = {"refused": str(Refused.PODS), "errors": "; ".join(refusal.messages), "but": but}
            yield Evidence((), minors | values, Severity.WARNING)


def _minors(subject: RuleInput, comparison: Comparison) -> dict[str, str]:
    judged = f"1.{subject.audit.context.behaviour.minor}"
    return {"judged": judged, "compared": f"1.{comparison.behaviour.minor}", "but": f"{judged} does not"}


def _starts_working(subject: RuleInput) -> Iterator[Evidence]:
    """Yield templates and pods that the API refuses now and would accept then."""
    for comparison in _comparisons(subject):
        answers = (subject.audit.admission, comparison.admission)
        yield from _newly_refused(subject, comparison, answers, Severity.INFO, Severity.INFO)


def _comparisons(subject: RuleInput) -> Iterator[Comparison]:
    if subject.audit.comparison is not None:
        yield subject.audit.comparison


def _newly_refused(
    subject: RuleInput, comparison: Comparison, answers: Answers, creation: Severity, edit: Severity
) -> Iterator[Evidence]:
    """Yield templates and pods that the first of ``answers`` refuses and the second does not.

    Edits of pods are left out if their template is reported.
    """
    minors = _minors(subject, comparison)
    if subject.template is not None:
        for refusal in _newly_refused_here(subject, subject.template, answers):
            values = {"refused": str(refusal.refused), "errors": "; ".join(refusal.messages)}
            yield Evidence((), values | minors, creation)
        return
    pods, errors = refused_pods(subject, _only_first(answers, AdmissionCheck.creations), stored=False)
    if pods:
        values = {"refused": str(Refused.POD), "errors": "; ".join(errors)}
        yield Evidence(tuple(pod.name for pod in pods), values | minors, creation)
    if not any(_newly_refused_here(subject, template, answers) for template in _templates(subject, comparison)):
        pods, errors = refused_pods(subject, _only_first(answers, AdmissionCheck.edits))
        if pods:
            values = {"refused": str(Refused.EDIT), "errors": "; ".join(errors)}
            fix = _REPLACE if edit is Severity.WARNING else None
            yield Evidence(tuple(pod.name for pod in pods), values | minors, edit, fix)


def _templates(subject: RuleInput, comparison: Comparison) -> list[Template]:
    return comparison.templates(subject.workload)


def _newly_refused_here(subject: RuleInput, template: Template, answers: Answers) -> Refusals:
    """Return the refusals of a template at the subject's path by the first API server alone."""
    refusing, accepting = answers
    if accepting.template(template):
        return ()
    path = subject.pod_path
    return tuple(
        refusal for refusal in refusing.template(template) if refusal.path.moved(template.path, POD_SPEC) == path
    )


def _only_first(
    answers: Answers, ask: Callable[[AdmissionCheck, PodClass], Refusals]
) -> Callable[[PodClass], Refusals]:
    """Return a function that returns the first API server's refusals of a class that the second accepts."""
    refusing, accepting = answers
    return lambda pod_class: () if ask(accepting, pod_class) else ask(refusing, pod_class)


def _counted_differently(subject: RuleInput) -> Iterator[Evidence]:
    """Yield the rows that the other scheduler counts differently, or the fields that differ in new pods."""
    for comparison in _comparisons(subject):
        minors = _minors(subject, comparison)
        differences = [difference for row in subject.rows for difference in _differences(subject, row, comparison)]
        if differences:
            worst = max(differences, key=_gravity)
            pods = {pod.name for difference in differences for pod in difference.row.pods}
            values = {"topology_key": worst.now.constraint.topology_key, "now": _count_text(worst.now)}
            then = f"{_count_text(worst.then)}{_effect(worst)}"
            weight = Severity.ERROR if worst.blocks else _weight(hard=worst.now.constraint.hard)
            yield Evidence(tuple(sorted(pods)), values | {"then": then} | minors, weight, _fix_of_empty(worst))
        for term, now_stored, then_stored in () if differences else _stored_differently(subject, comparison):
            pods = {pod.name for row in subject.rows for pod in row.pods if not pod.pod_class.stored}
            values = {"topology_key": term.topology_key, "now": now_stored, "then": then_stored}
            yield Evidence(tuple(sorted(pods)), values | minors, _weight(hard=term.required))
            return


class _Difference(NamedTuple):
    """The counts of both schedulers; ``lost`` are the domains that only the first allows for new pods.

    ``left`` tells whether the second allows any domain. Only domains with a node that the scheduler may use for the
    pods are considered.
    """

    row: EvaluatedConstraint
    now: Spread
    then: Spread
    lost: tuple[str, ...]
    left: bool

    @property
    def blocks(self) -> bool:
        """Whether some node accepts new pods now, and none would then."""
        return bool(self.lost) and not self.left


def _differences(subject: RuleInput, row: EvaluatedConstraint, comparison: Comparison) -> Iterator[_Difference]:
    """Yield both counts of each class of the row's pods that the two schedulers count differently."""
    for evaluation, _ in row.evaluations:
        now = evaluation.spreads[row.index]
        then = comparison.evaluator.of(evaluation.pod_class).spreads[row.index]
        if now is not None and then is not None and _answer(now) != _answer(then):
            usable = {} if evaluation.lower_bound else subject.audit.nodes.usable(evaluation.pod_class.placement)
            left = _places(then, usable)
            yield _Difference(row, now, then, tuple(sorted(_places(now, usable) - left)), bool(left))


def _places(spread: Spread, usable: Mapping[str, Usability]) -> set[str]:
    """Return the domains that are allowed for one more such pod and have a usable node; none without nodes."""
    return {
        value
        for node, value in spread.domains.value_of.items()
        if node in usable and usable[node].schedulable and spread.allows(value)
    }


def _gravity(difference: _Difference) -> tuple[bool, bool, int]:
    skews = (difference.now.skew, difference.then.skew)
    return difference.blocks, difference.now.constraint.hard, abs(skews[0] - skews[1])


def _effect(difference: _Difference) -> str:
    """Return the loss for new pods by the second count; "" without a loss."""
    if difference.blocks:
        return ", and no node takes new pods"
    lost = some([phrases.value(domain) for domain in difference.lost], _LISTED_DOMAINS)
    return f", and new pods can no longer go to {lost}" if lost else ""


def _fix_of_empty(difference: _Difference) -> str | None:
    selector = difference.now.constraint.selector
    empty = selector is not None and labelselectors.is_empty(selector)
    return "set labelSelector to the labels of the pods to spread before the change" if empty else None


def _answer(spread: Spread) -> tuple[object, ...]:
    allowed = frozenset(value for value in spread.match_num if spread.allows(value))
    return dict(spread.match_num), spread.min_match_num, spread.skew, allowed


def _count_text(spread: Spread) -> str:
    """Return a count in words; of many domains only their number."""
    number = len(spread.match_num)
    listed = (f"{phrases.value(domain)}={pods}" for domain, pods in sorted(spread.match_num.items()))
    domains = f"{number} domains" if number > _LISTED_DOMAINS else " ".join(listed) or "no domain"
    return f"counts {domains}, minimum {spread.min_match_num}, skew {spread.skew}"


def _stored_differently(subject: RuleInput, comparison: Comparison) -> Iterator[tuple[TopologyTerm, str, str]]:
    """Yield spread constraints of a template or manifest whose fields would differ in new pods, with both in words."""
    behaviours = (subject.audit.context.behaviour, comparison.behaviour)
    for spec, terms in _written(subject):
        index = next((index for index, term in enumerate(terms) if term.path == subject.path), None)
        if index is not None and terms[index].spread and not terms[index].default:
            now, then = (
                strategy.drop_disabled_fields(spec, behaviour).topology_spread_constraints[index]
                for behaviour in behaviours
            )
            if now != then:
                yield terms[index], _fields(now, then), _fields(then, now)


def _written(subject: RuleInput) -> Iterator[tuple[PodSpec, tuple[TopologyTerm, ...]]]:
    if subject.template is not None:
        yield subject.template.spec, subject.template.terms
    for pod_class in (evaluation.pod_class for row in subject.rows for evaluation, _ in row.evaluations):
        if not (pod_class.stored or subject.audit.admission.manifests(pod_class)):
            yield pod_class.written, pod_class.terms


def _fields(constraint: TopologySpreadConstraint, other: TopologySpreadConstraint) -> str:
    """Return the fields in which a constraint differs from another, by their API names."""
    fields: dict[str, object] = msgspec.to_builtins(constraint)
    others: dict[str, object] = msgspec.to_builtins(other)
    differing = [name for name in _GATED_FIELDS if fields.get(name) != others.get(name)]
    texts = (f"{name} {_value(fields[name])}" if fields.get(name) else f"no {name}" for name in differing)
    return f"gives new pods {', '.join(texts)}"


def _value(content: object) -> str:
    return f"[{', '.join(map(str, content))}]" if isinstance(content, tuple | list) else str(content)


def _weight(*, hard: bool) -> Severity:
    return Severity.WARNING if hard else Severity.INFO


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
    source=_MERGE_PULL_REQUEST,
    needs_nodes=False,
    of=frozenset({InputPart.MEMBERS}),
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
    source=_VALIDATION,
    needs_nodes=False,
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
    source=_VALIDATION,
    needs_nodes=False,
    check=_starts_working,
)
COUNTED_DIFFERENTLY: Final = Rule(
    code="SPR406",
    name="counted-differently",
    severity=Severity.WARNING,
    summary="The other Kubernetes counts the same pods differently (--to)",
    message="{topology_key}: {judged} {now}; {compared} {then}",
    why=(
        "From 1.38 on an empty labelSelector counts all pods of the namespace, up to 1.37 none: a constraint that did "
        "nothing begins to act. minDomains, nodeAffinityPolicy and nodeTaintsPolicy are read or ignored by feature "
        "gates that later minors lock on: NodeInclusionPolicyInPodTopologySpread in 1.33, "
        "MinDomainsInPodTopologySpread in 1.30. A cluster that has switched one off gets other domains or another "
        "minimum with the upgrade. New pods then go elsewhere or nowhere; where no node takes them any more, this is "
        "an error."
    ),
    fix="decide which count is meant, and write minDomains and the policies into the pod template accordingly",
    source="https://kep.k8s.io/3094",
    needs_nodes=True,
    check=_counted_differently,
)
