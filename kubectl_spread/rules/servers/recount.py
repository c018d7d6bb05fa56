"""SPR406: constraints that the scheduler of another Kubernetes counts differently (--to)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from kubectl_spread import phrases
from kubectl_spread.audit.evaluation.evaluate import EvaluatedConstraint
from kubectl_spread.audit.evaluation.evaluators import Comparison
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.types import PodSpec, TopologySpreadConstraint
from kubectl_spread.kube.apiserver import strategy
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Usability
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.report.model import Severity
from kubectl_spread.rules.model import Evidence, Rule
from kubectl_spread.rules.rule_input import RuleInput
from kubectl_spread.rules.servers.upgrade import evaluated, on_the_way

_LISTED_DOMAINS: Final = 6
_GATED_FIELDS: Final = ("matchLabelKeys", "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy")
"""The fields of a spread constraint that an API server may drop."""


def _counted_differently(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield the rows that another scheduler counts differently; without any, the fields that differ in new pods."""
    yield from on_the_way(rule_input, _counted_differently_then)


def _counted_differently_then(rule_input: RuleInput, comparison: Comparison) -> Iterator[Evidence]:
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
    for term, now, then in _stored_differently(rule_input, comparison):
        values |= {"topology_key": term.topology_key, "now": now, "then": then, "loss": ""}
        pod_names = {pod.name for row in rule_input.rows for pod in row.pods if not pod.pod_class.stored}
        yield Evidence(tuple(sorted(pod_names)), values, _severity(hard=term.required))
        return


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


def _differences(rule_input: RuleInput, row: EvaluatedConstraint, comparison: Comparison) -> Iterator[_Difference]:
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


def _stored_differently(rule_input: RuleInput, comparison: Comparison) -> Iterator[tuple[TopologyTerm, str, str]]:
    """Yield spread constraints of a template or manifest whose fields would differ in new pods, with both in words."""
    for spec, terms in _written(rule_input):
        term = next((term for term in terms if term.path == rule_input.path), None)
        index = rule_input.path[-1]
        if term is not None and term.spread and not term.default and isinstance(index, int):
            now, then = (
                strategy.drop_disabled_fields(spec, behaviour).topology_spread_constraints[index]
                for behaviour in (rule_input.behaviour, comparison.behaviour)
            )
            if now != then:
                yield term, _fields(now, then), _fields(then, now)


def _written(rule_input: RuleInput) -> Iterator[tuple[PodSpec, tuple[TopologyTerm, ...]]]:
    """Yield the template, or the manifests of pods that the API accepts, each with its terms."""
    if rule_input.template is not None:
        yield rule_input.template.spec, rule_input.template.terms
    for pod_class in (evaluation.pod_class for row in rule_input.rows for evaluation, _ in row.evaluations):
        if not (pod_class.stored or rule_input.audit.admission.manifests(pod_class)):
            yield pod_class.written, pod_class.terms


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
    why=(
        "An empty labelSelector counts no pod up to 1.37, and all pods of the namespace from 1.38 on, so a constraint "
        "without effect takes effect. minDomains, nodeAffinityPolicy and nodeTaintsPolicy depend on feature gates "
        "that later minors lock on: NodeInclusionPolicyInPodTopologySpread in 1.33, MinDomainsInPodTopologySpread in "
        "1.30. A cluster with such a gate off gets other domains or another minimum with the upgrade."
    ),
    fix="decide which count is meant, and write minDomains and the policies into the pod template accordingly",
    source="https://kep.k8s.io/3094",
    cases=(
        (Severity.ERROR, "No node takes new pods after the change."),
        (Severity.WARNING, "A DoNotSchedule constraint counts differently."),
        (Severity.INFO, "A ScheduleAnyway constraint counts differently."),
    ),
    no_remedy="Which of the two counts is meant is for the owner of the workload to say.",
    compares=True,
    needs_nodes=True,
    check=_counted_differently,
)
