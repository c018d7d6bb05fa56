"""The rows, groups and pods of an audit as parts of the report, and the differences of selectors as text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint, EvaluatedGroup, EvaluatedPod
from kubectl_spread.audit.evaluation.evaluators import merged_selector
from kubectl_spread.audit.merge.verdicts import SEVEREST, Confidence, KeyVerdict, Verdict
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector, Node
from kubectl_spread.kube.scheduler import taints
from kubectl_spread.kube.scheduler.podtopologyspread.spread import FilterAnswer, Spread
from kubectl_spread.report import model

MANY_DOMAINS: Final = 200
"""With more domains than this, domains without pods are counted instead of listed."""
_ALIKE: Final = 1 << 15
"""The most equal parts of a report that are cached; thousands of workloads have equal parts."""


def timestamp(moment: datetime) -> str:
    """Return a time as the API writes it."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def zones(nodes: Iterable[Node], pods_on: Callable[[str], int]) -> list[model.Zone]:
    """Return the zones of nodes, by name; ``pods_on`` returns the number of evaluated pods on a node."""
    nodes_of: dict[str, list[Node]] = {}
    for node in nodes:
        if ZONE in node.metadata.labels:
            nodes_of.setdefault(node.metadata.labels[ZONE], []).append(node)
    return [
        model.Zone(
            zone=zone,
            nodes=len(nodes_of[zone]),
            pods=sum(pods_on(node.metadata.name) for node in nodes_of[zone]),
            closed=closed(nodes_of[zone]),
        )
        for zone in sorted(nodes_of)
    ]


def closed(nodes: Collection[Node]) -> model.Closed | UnsetType:
    """Return how all nodes of a domain keep pods away that tolerate nothing; UNSET if some node takes them."""
    if all(node.spec.unschedulable for node in nodes):
        return "cordoned"
    return "tainted" if all(map(taints.keep_pods_away, nodes)) else UNSET


@lru_cache(maxsize=_ALIKE)
def workload(ref: ObjectRef) -> model.Workload:
    """Return a workload as the report names it."""
    return model.Workload(kind=ref.kind, name=ref.name)


def constraint_row(row: EvaluatedConstraint) -> model.Row:
    """Return one row of the report."""
    selector = selectors(row)
    common = model.Row(
        namespace=row.namespace,
        workload=workload(row.workload),
        pod_count=len(row.pods),
        pending=sum(not pod.node for pod in row.pods),
        terminating=sum(pod.terminating for pod in row.pods) or UNSET,
        path=str(row.path),
        topology_key=row.term.topology_key,
        selector=selector,
        diff=UNSET if isinstance(selector.merged, UnsetType) else lines(selector.stored, selector.merged),
        verdicts=_verdicts(tuple(row.verdicts.items())),
    )
    return _with_constraint(common, row)


@lru_cache(maxsize=_ALIKE)
def _verdicts(counted: tuple[tuple[Verdict, int], ...]) -> dict[str, int]:
    numbers = dict(counted)
    return {str(verdict): numbers[verdict] for verdict in Verdict if numbers.get(verdict)}


def selectors(row: EvaluatedConstraint) -> model.Selectors:
    """Return the four selectors of a row, from its representative pod."""
    pod = row.representative
    evaluation = next(evaluation for evaluation, _ in row.evaluations if evaluation.pod_class is pod.pod_class)
    split = pod.pod_class.splits[row.index]
    term = pod.pod_class.terms[row.index]
    by_scheduler = Verdict.SCHEDULER_MERGED in {key.verdict for key in evaluation.verdicts[row.index]}
    # The API server never sees a default constraint, so that it merges nothing into it.
    merged = UNSET if by_scheduler or term.default else merged_selector(term, pod.pod_class, split.authored)
    return model.Selectors(
        authored=split.authored,
        merged=term.selector if merged == term.selector else merged,
        stored=term.selector,
        effective=evaluation.effective[row.index],
    )


def group(evaluated: EvaluatedGroup) -> model.Group:
    """Return one group of the report."""
    answers = evaluated.evaluation.node_answers
    return model.Group(
        namespace=evaluated.namespace,
        workload=workload(evaluated.workload),
        pods=[pod.name for pod in evaluated.pods],
        pending=sum(not pod.node for pod in evaluated.pods),
        nodes=UNSET
        if answers is None
        else model.NodeAnswer(
            total=answers.total(),
            feasible=answers[FilterAnswer.FEASIBLE],
            not_matching=answers[FilterAnswer.NOT_MATCHING],
            missing_label=answers[FilterAnswer.MISSING_LABEL],
        ),
    )


def pods(audit: Audit) -> list[model.PodVerdict]:
    """Return every pod and path whose verdict is not ``merged``, by namespace, name and path."""
    members = [(row, member) for row in audit.rows for member in row.members]
    members.sort(key=lambda entry: (entry[0].namespace, entry[1].pod.name, entry[0].path.order))
    return [_pod(row, member) for row, member in members]


def _pod(row: EvaluatedConstraint, member: EvaluatedPod) -> model.PodVerdict:
    decisive = min(member.keys, key=lambda key: SEVEREST[key.verdict], default=None)
    confidence = Confidence.CERTAIN if decisive is None else decisive.confidence
    return model.PodVerdict(
        namespace=row.namespace,
        name=member.pod.name,
        node=member.pod.node or UNSET,
        terminating=member.pod.terminating or UNSET,
        workload=workload(row.workload),
        path=str(row.path),
        verdict=str(member.verdict),
        confidence=str(confidence),
        keys=[_key(key) for key in member.keys],
    )


def _key(verdict: KeyVerdict) -> model.Key:
    changed = verdict.changed_by
    return model.Key(
        key=verdict.key,
        operator=str(verdict.operator),
        verdict=str(verdict.verdict),
        confidence=str(verdict.confidence),
        stored=model.unset_none(verdict.stored),
        label=model.unset_none(verdict.label),
        evidence=list(verdict.evidence),
        changed_by=UNSET
        if changed is None or changed.time is None
        else model.ChangedBy(manager=changed.manager, time=timestamp(changed.time)),
    )


def _with_constraint(row: model.Row, source: EvaluatedConstraint) -> model.Row:
    """Add the fields of spread constraints."""
    constraint = source.term.constraint
    if constraint is None:
        return row
    row = msgspec.structs.replace(
        row,
        default=source.term.default,
        when_unsatisfiable=constraint.when_unsatisfiable,
        max_skew=constraint.max_skew,
        min_domains=(constraint.min_domains or 1) if source.term.required else UNSET,
        node_affinity_policy=constraint.node_affinity_policy,
        node_taints_policy=constraint.node_taints_policy,
    )
    return row if source.spread is None else _with_counts(row, source.spread, inferred=source.lower_bound)


def _with_counts(row: model.Row, spread: Spread, *, inferred: bool) -> model.Row:
    many = len(spread.match_num) > MANY_DOMAINS
    listed = sorted(spread.match_num.occupied if many else spread.match_num)
    minimum = spread.min_match_num
    return msgspec.structs.replace(
        row,
        domains=[
            _domain(value, spread.domains.nodes[value], number, number - minimum)
            for value in listed
            for number in [spread.match_num[value]]
        ],
        empty_domains=spread.match_num.empty if many else UNSET,
        min_match_num=minimum,
        self_match_num=spread.self_match_num,
        skew=spread.skew,
        lower_bound=inferred or UNSET,
        next=UNSET if inferred else _next(spread, many=many),
    )


@lru_cache(maxsize=_ALIKE)
def _domain(value: str, nodes: int, match_num: int, skew: int) -> model.Domain:
    return model.Domain(value=value, nodes=nodes, match_num=match_num, skew=skew)


def _next(spread: Spread, *, many: bool) -> model.Next:
    blocked = sorted(spread.blocked)
    if many:
        return model.Next(allowed=len(spread.match_num) - len(blocked), blocked=len(blocked))
    return model.Next(allowed=sorted(spread.match_num.keys() - blocked), blocked=blocked)


def lines(stored: LabelSelector | None, merged: LabelSelector | None) -> list[str]:
    """Return the difference as ``kubectl diff`` prints it: ``-`` for stored, ``+`` for merged values."""
    if stored == merged:
        return []
    from deepdiff import DeepDiff  # noqa: PLC0415 - it takes 0.2 s, and a healthy cluster does not need it

    before, after = _plain(stored), _plain(merged)
    tree = DeepDiff(before, after, view="tree")
    changes = [(level.path(output_format="list"), level) for levels in tree.values() for level in levels]
    text = []
    for path, level in sorted(changes, key=lambda change: change[0]):
        where = FieldPath(path)
        for sign, value in (("-", level.t1), ("+", level.t2)):
            if isinstance(value, str | dict | list | tuple):
                text.append(f"{sign}{where}: {_compact(value)}" if where else f"{sign}{_compact(value)}")
    return text


def _plain(selector: LabelSelector | None) -> Any:
    return {} if selector is None else msgspec.to_builtins(selector)


def _compact(value: object) -> str:
    if isinstance(value, str):
        return value or '""'
    return msgspec.json.encode(value).decode()
