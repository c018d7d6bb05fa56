"""SPR403 to SPR406: pods and templates that another Kubernetes accepts or refuses differently (--to)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from kubectl_spread import phrases
from kubectl_spread.audit.evaluation.evaluate import EvaluatedConstraint
from kubectl_spread.audit.evaluation.evaluators import Comparison
from kubectl_spread.audit.merge.admission import AdmissionCheck, Refusals
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.templates import Refused, Template
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube import apiserver
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import POD_SPEC
from kubectl_spread.kube.api.types import PodSpec, TopologySpreadConstraint
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Usability
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import versions
from kubectl_spread.report.model import Severity
from kubectl_spread.rules.inputs import PodsInput, TemplateInput, TermInput
from kubectl_spread.rules.model import AnyInput, Evidence, Rule, Values, names

_LAST_WITHOUT_CARE: Final = 32
_FIRST_MERGING: Final = 34
_REPLACE: Final = "replace the pods after the change; until then they can be deleted and evicted, but not edited"
_AGAIN: Final = "this pod if it is created again"
_ALL_AGAIN: Final = "these pods if they are created again"
_WANTED: Final = "nothing to do if that is wanted, else correct the field that the error names before the change"


_OF_MINORS: Final = frozenset({"compared", "errors"})
"""The values that may differ between minors that do the same."""


def on_the_way(rule_input: AnyInput, check: Callable[[AnyInput, Comparison], Iterator[Evidence]]) -> Iterator[Evidence]:
    """Yield the evidence of a check for each minor on the way to the other Kubernetes.

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


def evaluated(rule_input: TermInput) -> Values:
    """Return the values of a message about the minor whose rules decide."""
    judged = f"1.{rule_input.behaviour.minor}"
    return {"judged": judged, "but": f"and Kubernetes {judged} does not"}


def _scheduler_skip(rule_input: PodsInput) -> Iterator[Evidence]:
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


def _template_stops_working(rule_input: TemplateInput, comparison: Comparison) -> Iterator[Evidence]:
    """Yield a template that the API accepts now and would refuse then."""
    yield from _accepted_without_pods(rule_input, comparison)
    only_then = _OnlyFirst(comparison.admission, rule_input.audit.admission)
    yield from _template_newly_refused(rule_input, only_then, Severity.ERROR)


def _pods_stop_working(rule_input: PodsInput, comparison: Comparison) -> Iterator[Evidence]:
    """Yield pods that the API accepts now and would refuse then; edits have a lower severity."""
    only_then = _OnlyFirst(comparison.admission, rule_input.audit.admission)
    yield from _pods_newly_refused(rule_input, comparison, only_then, Severity.ERROR, Severity.WARNING)
    if not comparison.templates(rule_input.workload):
        # No template tells whether such pods can be created again.
        pods, messages = rule_input.refused_pods(only_then.creations)
        if pods:
            subject = _AGAIN if len(pods) == 1 else _ALL_AGAIN
            values = {**_values(rule_input, Refused.POD, messages), "refused": subject}
            yield Evidence(names(pods), values, Severity.WARNING)


def _template_starts_working(rule_input: TemplateInput, comparison: Comparison) -> Iterator[Evidence]:
    """Yield a template that the API refuses now and would accept then."""
    only_now = _OnlyFirst(rule_input.audit.admission, comparison.admission)
    yield from _template_newly_refused(rule_input, only_now, Severity.INFO)


def _pods_start_working(rule_input: PodsInput, comparison: Comparison) -> Iterator[Evidence]:
    """Yield pods that the API refuses now and would accept then."""
    only_now = _OnlyFirst(rule_input.audit.admission, comparison.admission)
    yield from _pods_newly_refused(rule_input, comparison, only_now, Severity.INFO, Severity.INFO)


def _accepted_without_pods(rule_input: TemplateInput, comparison: Comparison) -> Iterator[Evidence]:
    """Yield a template that is refused now, and would then be accepted while all its pods are refused."""
    now = rule_input.audit.admission.template(rule_input.template)
    if not any(refusal.refused is Refused.TEMPLATE for refusal in now):
        return
    for refusal in comparison.admission.template(rule_input.template):
        if refusal.refused is Refused.PODS and refusal.path == rule_input.path:
            values = _values(rule_input, Refused.PODS, refusal.messages)
            but = f"although it accepts the template, which Kubernetes {values['judged']} refuses"
            yield Evidence((), {**values, "but": but}, Severity.WARNING)


def _values(rule_input: TermInput, refused: Refused, messages: Iterable[str]) -> Values:
    return {**evaluated(rule_input), "refused": str(refused), "errors": "; ".join(messages)}


def _template_newly_refused(
    rule_input: TemplateInput, only_first: _OnlyFirst, creation: Severity
) -> Iterator[Evidence]:
    """Yield a template that only the first API server refuses."""
    for refusal in _refusals_at_path(rule_input, rule_input.template, only_first):
        yield Evidence((), _values(rule_input, refusal.refused, refusal.messages), creation)


def _pods_newly_refused(
    rule_input: PodsInput, comparison: Comparison, only_first: _OnlyFirst, creation: Severity, edit: Severity
) -> Iterator[Evidence]:
    """Yield pods that only the first API server refuses; edits are left out if their template is reported."""
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


def _refusals_at_path(rule_input: TermInput, template: Template, only_first: _OnlyFirst) -> Refusals:
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
    fix=(
        "nothing to do up to 1.37; to follow the release notes, upgrade to 1.33 first and wait until the pods are "
        "scheduled"
    ),
    of_members=_scheduler_skip,
)
STOPS_WORKING: Final = Rule(
    code="SPR404",
    name="stops-working",
    severity=Severity.ERROR,
    summary="The other Kubernetes refuses what this one accepts (--to)",
    message="Kubernetes {compared} refuses {refused}, {but}. Error: {errors}.",
    fix="correct the field that the error names before the change",
    compares=True,
    of_pods=partial(on_the_way, check=_pods_stop_working),
    of_template=partial(on_the_way, check=_template_stops_working),
)
STARTS_WORKING: Final = Rule(
    code="SPR405",
    name="starts-working",
    severity=Severity.INFO,
    summary="The other Kubernetes accepts what this one refuses (--to)",
    message="Kubernetes {judged} refuses {refused}, and Kubernetes {compared} does not. Error: {errors}.",
    fix=_WANTED,
    compares=True,
    of_pods=partial(on_the_way, check=_pods_start_working),
    of_template=partial(on_the_way, check=_template_starts_working),
)


_LISTED_DOMAINS: Final = 6
_GATED_FIELDS: Final = ("matchLabelKeys", "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy")
"""The fields of a spread constraint that an API server may drop."""


def _counted_differently(rule_input: PodsInput, comparison: Comparison) -> Iterator[Evidence]:
    """Yield the rows that another scheduler counts differently; without any, the fields that differ in new pods."""
    values = evaluated(rule_input)
    differences = [difference for row in rule_input.rows for difference in _differences(rule_input, row, comparison)]
    if differences:
        worst = max(differences, key=_gravity)
        values["topology_key"] = worst.now.constraint.topology_key
        values["now"] = _count_text(worst.now)
        values["then"] = _count_text(worst.then)
        values["loss"] = _loss(worst)
        pod_names = {pod.name for difference in differences for pod in difference.row.pods}
        severity = Severity.ERROR if worst.blocks else _severity(hard=worst.now.constraint.hard)
        yield Evidence(tuple(sorted(pod_names)), values, severity, _fix(worst))
        return
    classes = [evaluation.pod_class for row in rule_input.rows for evaluation, _ in row.evaluations]
    written = [
        (each.written, each.terms)
        for each in classes
        if not (each.stored or rule_input.audit.admission.manifests(each))
    ]
    pods = {pod.name for row in rule_input.rows for pod in row.pods if not pod.pod_class.stored}
    yield from _stored_differently(written, sorted(pods), rule_input, comparison)


def _template_stored_differently(rule_input: TemplateInput, comparison: Comparison) -> Iterator[Evidence]:
    """Yield a constraint of a template whose fields would differ in new pods."""
    written = [(rule_input.template.spec, rule_input.template.terms)]
    yield from _stored_differently(written, (), rule_input, comparison)


class _Difference(NamedTuple):
    """The counts of both schedulers for the pods of a row.

    ``lost`` are the domains with a usable node where only the first scheduler would place new pods. ``blocks`` tells
    whether the second would place them nowhere.
    """

    row: EvaluatedConstraint
    now: Spread
    then: Spread
    lost: tuple[str, ...]
    blocks: bool


def _differences(rule_input: PodsInput, row: EvaluatedConstraint, comparison: Comparison) -> Iterator[_Difference]:
    """Yield both counts of each class of the row's pods that the two schedulers count differently."""
    for evaluation, _ in row.evaluations:
        now = evaluation.spreads[row.index]
        then = comparison.evaluator.of(evaluation.pod_class).spreads[row.index]
        if now is not None and then is not None and _answers(now) != _answers(then):
            usable = {} if evaluation.lower_bound else rule_input.audit.nodes.usable(evaluation.pod_class.placement)
            domains = _open_domains(then, usable)
            lost = tuple(sorted(_open_domains(now, usable) - domains))
            yield _Difference(row, now, then, lost, blocks=bool(lost) and not domains)


def _open_domains(spread: Spread, usable: Mapping[str, Usability]) -> set[str]:
    """Return the domains that allow one more such pod and have a usable node; none if nodes are only inferred."""
    return {
        value
        for node, value in spread.domains.value_of.items()
        if node in usable and usable[node].schedulable and spread.allows(value)
    }


def _gravity(difference: _Difference) -> tuple[bool, bool, int]:
    now, then = difference.now, difference.then
    return difference.blocks, now.constraint.hard, abs(now.skew - then.skew)


def _loss(difference: _Difference) -> str:
    """Return the domains that new pods lose by the second count, as a sentence; "" if they lose none."""
    if difference.blocks:
        return " No node takes new pods then."
    if not difference.lost:
        return ""
    lost = phrases.domains(difference.now.constraint.topology_key, difference.lost, most=_LISTED_DOMAINS)
    return f" New pods can no longer go to {lost}."


def _fix(difference: _Difference) -> str | None:
    selector = difference.now.constraint.selector
    empty = selector is not None and labelselectors.is_empty(selector)
    return "set labelSelector to the labels of the pods to spread before the change" if empty else None


def _answers(spread: Spread) -> tuple[object, ...]:
    allowed = frozenset(domain for domain in spread.match_num if spread.allows(domain))
    return dict(spread.match_num), spread.min_match_num, spread.skew, allowed


def _count_text(spread: Spread) -> str:
    """Return a count in words; of many domains only their number."""
    number = len(spread.match_num)
    listed = (f"{phrases.value(domain)}={pods}" for domain, pods in sorted(spread.match_num.items()))
    domains = f"{number} domains" if number > _LISTED_DOMAINS else " ".join(listed) or "no domain"
    return f"counts {domains} (minimum {spread.min_match_num}, skew {spread.skew})"


def _stored_differently(
    written: Iterable[tuple[PodSpec, tuple[TopologyTerm, ...]]],
    pods: Sequence[str],
    rule_input: TermInput,
    comparison: Comparison,
) -> Iterator[Evidence]:
    """Yield the first constraint at the path whose fields would differ in new pods.

    Args:
        written: The specs of a template, or of manifests of pods that the API accepts, each with its terms.
        pods: The names of these pods.
        rule_input: The template or the pods.
        comparison: The comparison with another Kubernetes.
    """
    for spec, terms in written:
        term = next((term for term in terms if term.path == rule_input.path), None)
        index = rule_input.path[-1]
        if term is not None and term.spread and not term.default and isinstance(index, int):
            now, then = (
                apiserver.drop_disabled_fields(spec, behaviour).topology_spread_constraints[index]
                for behaviour in (rule_input.behaviour, comparison.behaviour)
            )
            if now != then:
                values = {**evaluated(rule_input), "topology_key": term.topology_key, "loss": ""}
                values |= {"now": _fields(now, then), "then": _fields(then, now)}
                yield Evidence(tuple(pods), values, _severity(hard=term.required))
                return


def _fields(constraint: TopologySpreadConstraint, compared: TopologySpreadConstraint) -> str:
    """Return the fields in which a constraint differs from another, by their API names."""
    fields: dict[str, object] = msgspec.to_builtins(constraint)
    compared_fields: dict[str, object] = msgspec.to_builtins(compared)
    differing = [name for name in _GATED_FIELDS if fields.get(name) != compared_fields.get(name)]
    texts = (f"{name} {_text(fields[name])}" if fields.get(name) else f"no {name}" for name in differing)
    return f"gives new pods {', '.join(texts)}"


def _text(field: object) -> str:
    return f"[{', '.join(map(str, field))}]" if isinstance(field, tuple | list) else str(field)


def _severity(*, hard: bool) -> Severity:
    return Severity.WARNING if hard else Severity.INFO


COUNTED_DIFFERENTLY: Final = Rule(
    code="SPR406",
    name="counted-differently",
    severity=Severity.WARNING,
    summary="The other Kubernetes counts the same pods differently (--to)",
    message="For {topology_key}, Kubernetes {judged} {now}, and Kubernetes {compared} {then}.{loss}",
    fix="decide which count is meant, and write minDomains and the policies into the pod template accordingly",
    compares=True,
    reads_nodes=True,
    of_pods=partial(on_the_way, check=_counted_differently),
    of_template=partial(on_the_way, check=_template_stored_differently),
)
