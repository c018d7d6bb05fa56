"""Evaluation: from a snapshot to rows and groups, the projections of its shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from kubectl_spread.audit.evaluation.affinity import AffinityFilter
from kubectl_spread.audit.evaluation.comparison import Comparison
from kubectl_spread.audit.evaluation.counted import CountedPods
from kubectl_spread.audit.evaluation.counting import ENCODER
from kubectl_spread.audit.evaluation.evaluators import ClassEvaluation, Evaluator, KeyVerdicts
from kubectl_spread.audit.evaluation.obstacles import Obstacles
from kubectl_spread.audit.merge.admission import admitted
from kubectl_spread.audit.merge.admission_check import AdmissionCheck
from kubectl_spread.audit.merge.verdicts import SEVEREST, KeyVerdict, ServerFacts, Verdict, clause_verdict
from kubectl_spread.audit.snapshot.digests import digest
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.revisions import Revisions
from kubectl_spread.audit.snapshot.scope import Target
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.audit.snapshot.templates import Template
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.scheduler import nodeaffinity
from kubectl_spread.kube.scheduler.podtopologyspread import NodeSets, Spread


class EvaluatedPod(msgspec.Struct, frozen=True):
    """An evaluated pod in one clause, with the verdicts on its keys."""

    pod: PodRecord
    clause: TopologyTerm
    verdict: Verdict | None
    keys: tuple[KeyVerdict, ...]


class EvaluatedConstraint(msgspec.Struct, eq=False):
    """Pods of one workload, by name, that are alike in one clause.

    ``members`` are those whose verdict is not ``merged``.
    ``views`` maps each shape's view to its number of pods; all of them count the same domains.
    """

    workload: ObjectRef
    clause: TopologyTerm
    index: int
    effective: bytes
    pods: list[PodRecord] = msgspec.field(default_factory=list)
    members: list[EvaluatedPod] = msgspec.field(default_factory=list)
    verdicts: Counter[Verdict] = msgspec.field(default_factory=Counter)
    views: list[tuple[ClassEvaluation, int]] = msgspec.field(default_factory=list)

    @property
    def namespace(self) -> str:
        """The namespace of the workload and its pods."""
        return self.workload.namespace

    @property
    def path(self) -> FieldPath:
        """The field path of the clause."""
        return self.clause.path

    @property
    def representative(self) -> PodRecord:
        """The pod whose selectors the report has: the first by name of those with the worst verdict."""
        worst = min(self.members, key=_member_order, default=None)
        return self.pods[0] if worst is None else worst.pod

    @property
    def spread(self) -> Spread | None:
        """The count; selfMatchNum is that of most of the pods, of as many the larger."""
        counted = [(number, spread) for view, number in self.views if (spread := view.spreads[self.index]) is not None]
        return max(counted, key=lambda item: (item[0], item[1].self_match_num), default=(0, None))[1]

    @property
    def lower_bound(self) -> bool:
        """Whether the domains are only inferred."""
        return any(view.lower_bound for view, _ in self.views)


class EvaluatedGroup(msgspec.Struct, eq=False):
    """Pods that are alike in everything the spread plugin reads."""

    workload: ObjectRef
    view: ClassEvaluation
    pods: list[PodRecord] = msgspec.field(default_factory=list)

    @property
    def namespace(self) -> str:
        """The namespace of the workload and its pods."""
        return self.workload.namespace


class Audit(msgspec.Struct, frozen=True, eq=False):
    """What is true about the evaluated pods: rows and groups in the report's order, and what they were held against.

    ``pods`` are the requested pods, which belong to so many ``workloads``; ``everyone`` are all pods in scope.
    Manifests are as they would be stored. ``comparison`` is with another Kubernetes, if the user requested that.
    """

    rows: tuple[EvaluatedConstraint, ...]
    groups: tuple[EvaluatedGroup, ...]
    templates: tuple[Template, ...]
    pods: tuple[PodRecord, ...]
    workloads: int
    everyone: Sequence[PodRecord]
    nodes: NodeSets
    obstacles: Obstacles
    affinity: AffinityFilter
    revisions: Revisions
    context: ServerFacts
    snapshot: Snapshot
    views: Evaluator
    acceptance: AdmissionCheck
    counted: CountedPods
    comparison: Comparison | None


def evaluate(snapshot: Snapshot, context: ServerFacts, *, nodes: str) -> Audit:
    """Evaluate and count every pod in scope; the snapshot is not changed, so that it can be evaluated again.

    Args:
        snapshot: The pods, nodes and owners that were read.
        context: The facts about the servers.
        nodes: ``listed``, ``inferred`` (from the pods' own zone labels) or ``none``.
    """
    everyone = admitted(snapshot.pods, context.behaviour)
    views = Evaluator(snapshot, context, nodes=nodes)
    rows: dict[object, EvaluatedConstraint] = {}
    groups: dict[object, EvaluatedGroup] = {}
    judged: list[PodRecord] = []
    workloads: set[ObjectRef] = set()
    revisions = Revisions(snapshot)
    keys_of_views: dict[int, _Keys] = {}
    for workload, shape, pods in _alike(snapshot, everyone):
        judged += pods
        workloads.add(workload)
        revisions.add(workload, pods)
        view = views.of(shape)
        # Views that differ in their shapes alone share what they hold.
        keys = keys_of_views.get(id(view.effective))
        if keys is None:
            keys = keys_of_views[id(view.effective)] = _keys(view)
        verdicts = [view.verdicts if view.settled else views.verdicts(pod) for pod in pods]
        for row_key in keys.rows:
            key = (workload, row_key)
            if key not in rows:
                _, index, _, effective = row_key
                rows[key] = EvaluatedConstraint(workload, shape.clauses[index], index, effective)
            _add_to_row(rows[key], view, pods, verdicts)
        if keys.group is not None:
            group = groups.setdefault((workload, keys.group), EvaluatedGroup(workload, view))
            group.pods += pods
    for pods in (*(row.pods for row in rows.values()), *(group.pods for group in groups.values())):
        pods.sort(key=lambda pod: pod.name)
    templates = _requested_templates(snapshot)
    upgrade = context.inquiry.upgrade
    return Audit(
        rows=tuple(sorted(rows.values(), key=_row_order)),
        groups=tuple(sorted(groups.values(), key=_group_order)),
        templates=templates,
        pods=tuple(judged),
        workloads=len(workloads),
        everyone=everyone,
        nodes=views.node_sets,
        obstacles=Obstacles(views.node_sets, snapshot.room(), context.behaviour),
        affinity=AffinityFilter(snapshot, views.node_sets, context.behaviour),
        revisions=revisions,
        context=context,
        snapshot=snapshot,
        views=views,
        acceptance=AdmissionCheck(context.behaviour),
        counted=CountedPods(snapshot, context.behaviour, views),
        comparison=None if upgrade is None else Comparison(upgrade, views, templates),
    )


def _alike(snapshot: Snapshot, everyone: Iterable[PodRecord]) -> Iterator[tuple[ObjectRef, PodClass, list[PodRecord]]]:
    """Yield the requested pods by workload and class; a pod without owner is its own workload.

    The order of classes is that of their pods' first names, because findings quote the first class of a constraint.
    """
    by_shape: dict[PodClass, list[PodRecord]] = {}
    for pod in everyone:
        by_shape.setdefault(pod.shape, []).append(pod)
    for pods in sorted(by_shape.values(), key=_first_name):
        owners = [owner.ref for owner in snapshot.owner_chain(pods[0])]
        requested = [pod for pod in pods if _is_requested(pod, owners, snapshot.scope.targets)]
        if requested and owners:
            yield owners[-1], requested[0].shape, requested
        else:
            yield from ((pod.ref, pod.shape, [pod]) for pod in requested)


def _first_name(pods: list[PodRecord]) -> tuple[str, str]:
    return pods[0].shape.namespace, min(pod.name for pod in pods)


def _requested_templates(snapshot: Snapshot) -> tuple[Template, ...]:
    """Return the templates that are requested by their own or an owner's name, under the root owner of their pods."""
    targets = snapshot.scope.targets
    templates = [
        msgspec.structs.replace(template, workload=snapshot.root(template))
        for template in snapshot.templates
        if not targets or any(target.includes(ref) for target in targets for ref in _names(template, snapshot))
    ]
    return tuple(sorted(templates, key=lambda template: template.workload))


def _names(template: Template, snapshot: Snapshot) -> tuple[ObjectRef, ...]:
    """Return the objects whose names request a template."""
    return (template.workload, *(owner.ref for owner in snapshot.template_owners(template)))


def _is_requested(pod: PodRecord, owners: Sequence[ObjectRef], targets: Sequence[Target]) -> bool:
    return not targets or any(target.includes(ref) for target in targets for ref in (pod.ref, *owners))


class _Keys(msgspec.Struct, frozen=True):
    """What makes the pods of a view, together with their workload, part of rows and of a group.

    A row is identified by path, index, what else its pods have in common, and effective selector: pods
    whose revisions have more or fewer constraints hold the same term at another index.
    """

    rows: tuple[tuple[FieldPath, int, bytes, bytes], ...]
    group: bytes | None


def _keys(view: ClassEvaluation) -> _Keys:
    clauses = view.shape.clauses
    spread_keys = {
        required: digest([clause.topology_key for clause in clauses if clause.spread and clause.required is required])
        for required in (True, False)
    }
    rows = tuple(
        (clause.path, index, _row_key(view, index, spread_keys), ENCODER.encode(view.effective[index]))
        for index, clause in enumerate(clauses)
        if clause.spread or clause.keyed
    )
    return _Keys(rows, _group_key(view) if any(clause.spread for clause in clauses) else None)


def _add_to_row(
    row: EvaluatedConstraint, view: ClassEvaluation, pods: list[PodRecord], verdicts: Sequence[KeyVerdicts]
) -> None:
    """Add pods of one class to a row, with the verdicts on each of them."""
    row.pods += pods
    row.views.append((view, len(pods)))
    clause = view.shape.clauses[row.index]
    if view.settled and (alike := clause_verdict(clause, view.verdicts[row.index])) in (None, Verdict.MERGED):
        if alike is not None:
            row.verdicts[alike] += len(pods)
        return
    for pod, verdicts_on_pod in zip(pods, verdicts, strict=True):
        keys = verdicts_on_pod[row.index]
        verdict = clause_verdict(clause, keys)
        if verdict is not None:
            row.verdicts[verdict] += 1
        if verdict not in (None, Verdict.MERGED):
            row.members.append(EvaluatedPod(pod, clause, verdict, keys))


def _row_key(view: ClassEvaluation, index: int, spread_keys: Mapping[bool, bytes]) -> bytes:
    """Return what the pods of one row have in common in addition to path and effective selector.

    ``spread_keys`` has the digest of the topology keys of the pods' hard constraints, and that of the soft ones.
    """
    shape, clause = view.shape, view.shape.clauses[index]
    if clause.constraint is None:
        keys = (clause.match_label_keys, clause.mismatch_label_keys)
        return digest((clause.topology_key, clause.selector, keys))
    honors_taints = clause.constraint.node_taints_policy == "Honor"
    return digest(
        (
            clause.constraint,
            shape.placement.node_selector,
            nodeaffinity.required(shape.placement.affinity),
            shape.placement.tolerations if honors_taints else (),
            spread_keys[clause.required].hex(),
            shape.pinned,
            shape.scheduler_name,
        )
    )


def _group_key(view: ClassEvaluation) -> bytes:
    shape = view.shape
    return digest(
        (
            [(clause.constraint, clause.selector) for clause in shape.clauses],
            view.effective,
            # A pod that lost a merged label no longer matches the selector that its siblings match.
            [None if spread is None else spread.self_match_num for spread in view.spreads],
            shape.placement.node_selector,
            nodeaffinity.required(shape.placement.affinity),
            shape.placement.tolerations,
            shape.pinned,
            shape.scheduler_name,
        )
    )


def _member_order(member: EvaluatedPod) -> tuple[int, str]:
    rank = len(SEVEREST) if member.verdict is None else SEVEREST[member.verdict]
    return rank, member.pod.name


def _row_order(row: EvaluatedConstraint) -> tuple[object, ...]:
    return (row.workload, row.path.order, row.effective, row.pods[0].name)


def _group_order(group: EvaluatedGroup) -> tuple[object, ...]:
    return (group.workload, ENCODER.encode(group.view.effective), group.pods[0].name)
