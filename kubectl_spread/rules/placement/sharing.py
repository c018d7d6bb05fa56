"""SPR314: workloads that a constraint counts together, because their pods match one selector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.snapshot.records import digest
from kubectl_spread.audit.snapshot.templates import PRESUMED, Template
from kubectl_spread.diagnosis.skew import in_the_fullest
from kubectl_spread.kube.api.labels import Labelled
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import counts_nothing
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import capitalized, domains, listed, named, plural
from kubectl_spread.report.model import Severity
from kubectl_spread.rules.model import Evidence, InputPart, Rule, RuleInput, Values, names, together
from kubectl_spread.rules.variants import TermVariant

_NAMED: Final = 3
"""The most workloads in a message."""


def _other_workloads(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield the other workloads that a constraint counts: by their pods, or by their templates in manifests."""
    if rule_input.template is not None:
        yield from _of_template(rule_input, rule_input.template)
        return
    for row, spread in rule_input.counted:
        if not spread.self_match_num or _all_are_own(row, spread):
            continue
        number, first = rule_input.audit.counted.of(rule_input.namespace, spread).pods.others(
            rule_input.workload, _NAMED
        )
        if number:
            only_others = _only_others_fill_a_domain(row, spread, rule_input.audit)
            severity = Severity.WARNING if only_others and spread.constraint.hard else Severity.INFO
            values = _values(spread, rule_input, _list(first, number), only_others=only_others)
            yield Evidence(names(row.pods), values, severity)
            return


def _all_are_own(row: EvaluatedConstraint, spread: Spread) -> bool:
    counted = sum(not pod.terminating and pod.node in spread.domains.value_of for pod in row.pods)
    return counted == spread.match_num.total


def _only_others_fill_a_domain(row: EvaluatedConstraint, spread: Spread, audit: Audit) -> bool:
    """Tell whether only pods without the constraint cause the skew, so that no other finding reports it."""
    if not spread.exceeds_max_skew or in_the_fullest(row, spread, audit):
        return False
    value_of, counts = spread.domains.value_of, spread.match_num
    return not any(
        counts[value_of[pod.node]] == counts.most for pod in audit.counted.of(row.namespace, spread).carriers
    )


def _values(spread: Spread, rule_input: RuleInput, workloads: str, *, only_others: bool) -> Values:
    foreign = rule_input.audit.counted.of(rule_input.namespace, spread).pods.of_others(rule_input.workload)
    alone = spread.without(foreign).skew
    them = "it" if foreign.total() == 1 else "them"
    effect = f" The skew is {spread.skew} with {them} and {alone} without {them}."
    if only_others:
        fullest = min(domain for domain, number in spread.match_num.items() if number == spread.match_num.most)
        closed = "takes no new pods" if spread.constraint.hard else "has the lowest score for new pods"
        where = capitalized(domains(spread.constraint.topology_key, [fullest]))
        effect += f" {where} {closed} because of {them} (maxSkew {spread.constraint.max_skew})."
    return {
        "others": plural(foreign.total(), "pod"),
        "workloads": workloads,
        "skew": spread.skew,
        "alone": alone,
        "effect": effect,
    }


def _list(first: Sequence[ObjectRef], number: int) -> str:
    workloads = [named(workload.kind, workload.name) for workload in first]
    return listed([*workloads, f"{number - len(first)} more"] if number > len(first) else workloads, len(workloads) + 1)


def _of_template(rule_input: RuleInput, template: Template) -> Iterator[Evidence]:
    """Yield other templates whose pods a constraint will count; stored pods have findings of their own."""
    if rule_input.beside_pods:
        return
    own_workload = template.workload.first_copy
    for variant in rule_input.variants:
        workloads = _workloads_of_templates(variant, template, rule_input)
        first = list(islice((other for other in workloads if other != own_workload), _NAMED))
        if first:
            number = len(workloads) - (own_workload in workloads)
            values: Values = {"others": "the pods", "workloads": _list(first, number), "effect": ""}
            yield from together([(variant, values)])
            return


def _workloads_of_templates(
    variant: TermVariant, template: Template, rule_input: RuleInput
) -> Mapping[ObjectRef, None]:
    """Return the workloads whose templates have pods that a constraint counts, in order.

    A controller sets another value of its labels, such as pod-template-hash, for each workload. Manifests with the same
    name, such as those of overlays, are one workload.
    """
    selector = variant.effective
    if selector is None or not variant.term.spread or variant.unmet or counts_nothing(selector, rule_input.behaviour):
        return {}
    if any(variant.labels.get(key) == PRESUMED or template.may_get(key) for key in variant.term.match_label_keys):
        return {}
    if not template.complete:
        return {}
    answers = rule_input.answers
    templates = answers.remember(_templates_by_namespace, lambda: _templates_by_namespace(rule_input.audit.templates))
    of_namespace = templates[template.namespace]
    question = (_workloads, template.namespace, digest(selector))
    return answers.remember(question, lambda: _workloads(each for _, each in of_namespace.selected(selector)))


def _workloads(templates: Iterable[Template]) -> Mapping[ObjectRef, None]:
    return dict.fromkeys(sorted({template.workload.first_copy for template in templates if template.replicas != 0}))


def _templates_by_namespace(templates: Iterable[Template]) -> Mapping[str, Labelled[Template]]:
    """Return the templates of each namespace by their labels, without labels whose value a controller sets.

    Constraints without a template have none.
    """
    by_namespace: dict[str, Labelled[Template]] = {}
    for template in templates:
        if template.complete:
            labels = {key: text for key, text in template.labels.items() if text != PRESUMED}
            by_namespace.setdefault(template.namespace, Labelled()).add(labels, template)
    return by_namespace


OTHER_WORKLOADS: Final = Rule(
    code="SPR314",
    name="other-workloads",
    severity=Severity.INFO,
    summary="The selector also counts the pods of other workloads",
    message="The selector also counts {others} of {workloads}.{effect}",
    why=(
        "A constraint counts every pod of the namespace that its selector matches. With a label that several workloads "
        "share, one workload's pods may be in one domain while the others fill the rest. The skew is that of all of "
        "them, and SPR301 and SPR302 report it for the workloads whose pods are in the fullest domain."
    ),
    fix="narrow the labelSelector in the pod template to labels that only this workload has, unless this is meant",
    source="https://kep.k8s.io/895",
    cases=(
        (
            Severity.WARNING,
            (
                "Only pods without the constraint fill a domain, which a DoNotSchedule constraint closes to new pods. "
                "No other rule reports that skew."
            ),
        ),
        (Severity.INFO, "In all other cases, because the workloads may be meant to be counted together."),
    ),
    no_remedy=(
        "Which label tells the workloads apart, and whether they are to be counted together, is for their owner to say."
    ),
    needs_nodes=True,
    parts=InputPart.COUNTS | InputPart.TEMPLATE,
    check=_other_workloads,
)
