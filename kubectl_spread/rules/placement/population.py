"""SPR309, SPR310, SPR312 and SPR314: pods that cause a skew or do not count, and pods of other workloads that do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.merge.verdicts import BINDING_KEYS
from kubectl_spread.audit.snapshot.records import ENCODER
from kubectl_spread.audit.snapshot.revisions import revision_key, revision_of
from kubectl_spread.audit.snapshot.templates import PRESUMED, Template
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.diagnosis.skew import in_the_fullest
from kubectl_spread.kube.api.labels import HOSTNAME, Labelled, Labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import counts_nothing
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.memoization import memoized
from kubectl_spread.phrases import capitalized, domains, listed, named, plural, value
from kubectl_spread.report.model import Operation, Severity
from kubectl_spread.rules import patches
from kubectl_spread.rules.inputs import PodsInput, TemplateInput, TermVariant
from kubectl_spread.rules.model import Evidence, Remedy, Rule, Values, names, together
from kubectl_spread.rules.remedy import changed

_EXCLUDED: Final = "on nodes that node affinity excludes"
_TAINTED: Final = "on nodes with untolerated taints"
_UNKNOWN: Final = "on nodes that are not in the node list"
_WITHOUT: Final = "on nodes without "
_FIXES: Final = {
    _EXCLUDED: "set nodeAffinityPolicy: Ignore in the pod template if these nodes are to count",
    _TAINTED: "set nodeTaintsPolicy: Ignore in the pod template if these nodes are to count",
    _UNKNOWN: "read all nodes; if these were deleted, Kubernetes deletes their pods too, some minutes later",
}
_LABEL: Final = "label the nodes with the topology keys of the pods' constraints"
_COVERED: Final = ("SPR208",)
"""The rule that warns of the skew which older revisions may make."""


def _older_revision(rule_input: PodsInput) -> Iterator[Evidence]:
    """Yield rows in which pods of older revisions decide whether the skew is within maxSkew."""
    revisions = rule_input.audit.revisions.of(rule_input.workload)
    if len(revisions) <= 1:
        return
    for row, spread in rule_input.counted:
        newest = [pod for pod in row.pods if revision_of(pod.pod_class.labels) == revisions[-1]]
        if not newest:
            continue
        older = rule_input.audit.revisions.older_pods(rule_input.workload, spread)
        without = spread.without(older)
        if older.total() and spread.exceeds_max_skew is not without.exceeds_max_skew:
            values: Values = {
                "older": plural(older.total(), "pod"),
                "skew": spread.skew,
                "without": without.skew,
                "key": revision_key(newest[0].pod_class.labels),
                "them": "it" if older.total() == 1 else "them",
                "effect": _after_the_rollout(without),
            }
            fix = _with_revision_key(
                newest[0].pod_class.terms[row.index], rule_input, revision_key(newest[0].pod_class.labels)
            )
            yield Evidence(names(row.pods), values, fix=fix, covers=_COVERED)
            return


def _after_the_rollout(without: Spread) -> str:
    if without.exceeds_max_skew:
        return f"It will exceed maxSkew {without.constraint.max_skew} when they are gone"
    return f"It will be within maxSkew {without.constraint.max_skew} when they are gone"


def _with_revision_key(term: TopologyTerm, rule_input: PodsInput, key: str) -> Remedy | None:
    """Return the patch that adds the key of the revision; None where the server ignores keys or a key is not known."""
    if not key or term.default or not rule_input.behaviour.scheduler_adds_match_label_keys:
        return None
    path = rule_input.term_path / "matchLabelKeys"
    keys = list(term.match_label_keys)
    operations = (
        patches.same_topology(term, rule_input.term_path),
        patches.test(path, keys or None),
        Operation(op="add", path=path.pointer, value=[*keys, key]),
    )
    return changed(
        "add {key} to matchLabelKeys in the pod template, so that each revision counts by itself",
        operations,
        rule_input,
    )


def _terminating(rule_input: PodsInput) -> Iterator[Evidence]:
    """Yield rows in which a domain has too few pods because some are terminating, which do not count."""
    for row, spread in rule_input.counted:
        terminating = rule_input.audit.evaluator.census.terminating(rule_input.namespace, spread)
        if not terminating:
            continue
        with_them = spread.changed(terminating)
        ends_skew = spread.exceeds_max_skew and not with_them.exceeds_max_skew
        if ends_skew or (spread.constraint.hard and with_them.frees(spread)):
            values: Values = {
                "terminating": plural(sum(terminating.values()), "terminating pod"),
                "domains": ", ".join(value(domain) for domain in sorted(terminating)),
                "where": domains(spread.constraint.topology_key, sorted(terminating)),
                "count": "counts" if sum(terminating.values()) == 1 else "count",
                "skew": spread.skew,
                "with_them": with_them.skew,
            }
            yield Evidence(names(row.pods), values)
            return


def _uncounted(rule_input: PodsInput) -> Iterator[Evidence]:
    for row, spread in rule_input.counted:
        inside = spread.domains.value_of
        if not spread.match_num or {pod.node for pod in row.pods} <= inside.keys():
            continue
        matching = rule_input.audit.evaluator.census.matching(rule_input.namespace, spread.constraint.selector)
        outside = {node: number for node, number in matching.items() if node not in inside}
        if any(pod.node in outside for pod in row.pods):
            reasons = _reasons(outside, row, spread, rule_input.audit)
            values: Values = {
                "uncounted": plural(sum(outside.values()), "matching pod"),
                "where": _where(reasons),
                "they": "it" if sum(outside.values()) == 1 else "they",
            }
            severity = Severity.WARNING if _changes_skew(_on_unlisted_nodes(rule_input, spread), spread) else None
            yield Evidence(names(row.pods), values, severity, _fix(reasons))
            return


def _on_unlisted_nodes(rule_input: PodsInput, spread: Spread) -> Counter[str | None]:
    """Count the pods on nodes outside the node list by domain; None stands for an unknown domain."""
    constraint, names_of_nodes = spread.constraint, {node.metadata.name for node in rule_input.audit.nodes.nodes}
    pods: Counter[str | None] = Counter()
    if constraint.selector is not None:
        for labels, per_node in rule_input.audit.snapshot.population(rule_input.namespace).selected(
            constraint.selector
        ):
            for node in per_node.keys() - names_of_nodes:
                pods[_domain(node, labels, constraint.topology_key)] += per_node[node]
    return pods


def _domain(node: str, labels: Labels, topology_key: str) -> str | None:
    """Return the domain of a node outside the node list, from the labels that binding wrote to its pod."""
    if topology_key == HOSTNAME:
        return node
    return labels.get(topology_key) if topology_key in BINDING_KEYS else None


def _changes_skew(pods: Mapping[str | None, int], spread: Spread) -> bool:
    """Tell whether the skew would or might differ if the pods on nodes outside the node list counted."""
    counts = {domain: number for domain, number in pods.items() if domain is not None}
    return None in pods or spread.with_domains(counts).skew != spread.skew


def _where(reasons: Counter[str]) -> str:
    """Return the nodes of the pods, with the number of pods for each reason if there are several."""
    if len(reasons) == 1:
        return next(iter(reasons))
    return f"({', '.join(f'{reasons[reason]} {reason}' for reason in sorted(reasons))})"


def _fix(reasons: Counter[str]) -> str:
    """Return the fix for the reason why most pods do not count."""
    return _FIXES.get(max(sorted(reasons), key=lambda reason: reasons[reason]), _LABEL)


def _reasons(outside: Mapping[str, int], row: EvaluatedConstraint, spread: Spread, audit: Audit) -> Counter[str]:
    """Return the reasons why pods do not count, with the number of pods for each."""
    usable = audit.nodes.usable(row.evaluations[0][0].pod_class.placement)
    labels = {node.metadata.name: node.metadata.labels for node in audit.nodes.nodes}
    reasons: Counter[str] = Counter()
    for node, number in outside.items():
        if node not in labels:
            reasons[_UNKNOWN] += number
        elif spread.constraint.topology_key not in labels[node]:
            reasons[f"{_WITHOUT}{spread.constraint.topology_key}"] += number
        elif not usable[node].fits:
            reasons[_EXCLUDED] += number
        elif not usable[node].tolerated:
            reasons[_TAINTED] += number
        else:
            reasons[f"{_WITHOUT}another topology key of the pod"] += number
    return reasons


OLDER_REVISION: Final = Rule(
    code="SPR309",
    name="older-revision",
    severity=Severity.INFO,
    summary="Pods of older revisions decide whether the skew is within maxSkew",
    message=(
        "The constraint also counts {older} of older revisions. The skew is {skew} with {them} and {without} without "
        "{them}. {effect}."
    ),
    fix="add {key} to matchLabelKeys in the pod template, so that each revision counts by itself",
    of_counts=_older_revision,
)
TERMINATING: Final = Rule(
    code="SPR310",
    name="terminating-pods",
    severity=Severity.INFO,
    summary="Terminating pods no longer count, so their domain has too few pods",
    message="{terminating} in {where} no longer {count}. The skew is {skew}, and it was {with_them} before.",
    fix="wait until the deletion ends; on a dead node it ends when the node returns or is deleted",
    of_counts=_terminating,
)
UNCOUNTED: Final = Rule(
    code="SPR312",
    name="uncounted-pods",
    severity=Severity.INFO,
    summary="Matching pods run on nodes that do not count",
    message="The constraint does not count {uncounted} {where}, so new pods are placed as if {they} did not exist.",
    fix="set nodeAffinityPolicy or nodeTaintsPolicy: Ignore in the pod template if these nodes are to count",
    of_counts=_uncounted,
)


_NAMED: Final = 3
"""The most workloads in a message."""
_GROUP_LABELS: Final = frozenset({"app.kubernetes.io/managed-by", "app.kubernetes.io/part-of"})
"""Labels whose meaning is that several workloads share them.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/.
"""
_NARROW: Final = "narrow the labelSelector in the pod template to labels that only this workload has"
_SAME_CONSTRAINT: Final = f"give {{workloads}} the same constraint, or {_NARROW}"


def _other_workloads(rule_input: PodsInput) -> Iterator[Evidence]:
    """Yield the other workloads whose pods a constraint counts."""
    for row, spread in rule_input.counted:
        if not spread.self_match_num or _all_are_own(row, spread):
            continue
        number, first = rule_input.audit.counted.of(rule_input.namespace, spread).others(rule_input.workload, _NAMED)
        if number:
            only_others = _only_others_fill_a_domain(row, spread, rule_input.audit)
            closes = only_others and spread.constraint.hard
            if closes or not all(_selects_a_group(term) for term in rule_input.terms):
                values = _values(spread, rule_input, _list(first, number), only_others=only_others)
                severity, fix = (Severity.WARNING, _SAME_CONSTRAINT) if closes else (Severity.INFO, None)
                yield Evidence(names(row.pods), values, severity, fix)
                return


def _selects_a_group(term: TopologyTerm) -> bool:
    """Tell whether a selector names only labels of groups of workloads, so that it is meant to count them together."""
    return bool(term.mentions) and term.mentions.keys() - term.match_label_keys <= _GROUP_LABELS


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


def _values(spread: Spread, rule_input: PodsInput, workloads: str, *, only_others: bool) -> Values:
    foreign = rule_input.audit.counted.of(rule_input.namespace, spread).of_others(rule_input.workload)
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


def _other_templates(rule_input: TemplateInput) -> Iterator[Evidence]:
    """Yield other templates whose pods a constraint will count; stored pods have findings of their own.

    A virtual machine has one pod, which is spread only among the pods of others.
    """
    template = rule_input.template
    if rule_input.beside_pods or (template.custom and template.replicas == 1):
        return
    own_workload = template.workload.first_copy
    for variant in rule_input.variants:
        workloads = _workloads_of_templates(variant, rule_input)
        first = list(islice((other for other in workloads if other != own_workload), _NAMED))
        if first and not _selects_a_group(variant.term):
            number = len(workloads) - (own_workload in workloads)
            values: Values = {"others": "the pods", "workloads": _list(first, number), "effect": ""}
            yield from together([variant], values)
            return


def _workloads_of_templates(variant: TermVariant, rule_input: TemplateInput) -> Mapping[ObjectRef, None]:
    """Return the workloads whose templates have pods that a constraint counts, in order.

    A controller sets another value of its labels, such as pod-template-hash, for each workload. Manifests with the same
    name, such as those of overlays, are one workload.
    """
    selector, template = variant.effective, rule_input.template
    if selector is None or not variant.term.spread or variant.unmet or counts_nothing(selector, rule_input.behaviour):
        return {}
    if any(variant.labels.get(key) == PRESUMED or template.may_get(key) for key in variant.term.match_label_keys):
        return {}
    if not template.complete:
        return {}
    return _selected_workloads(rule_input.audit, template.namespace, ENCODER.encode(selector))


@memoized
def _selected_workloads(audit: Audit, namespace: str, encoded: bytes) -> Mapping[ObjectRef, None]:
    selector = msgspec.json.decode(encoded, type=LabelSelector)
    selected = [template for _, template in _templates_by_namespace(audit)[namespace].selected(selector)]
    return dict.fromkeys(sorted({template.workload.first_copy for template in selected if template.replicas != 0}))


@memoized
def _templates_by_namespace(audit: Audit) -> Mapping[str, Labelled[Template]]:
    """Return the templates of each namespace by their labels, without labels whose value a controller sets.

    Constraints without a template have none.
    """
    by_namespace: dict[str, Labelled[Template]] = {}
    for template in audit.templates:
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
    fix=f"{_NARROW}, unless this is meant",
    of_counts=_other_workloads,
    of_template=_other_templates,
)
