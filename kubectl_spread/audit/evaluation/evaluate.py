"""Evaluation: from a snapshot to rows and groups, the projections of its pod classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter

import msgspec

from kubectl_spread.audit.evaluation.affinity import AffinityFilter
from kubectl_spread.audit.evaluation.counted import CountedPods
from kubectl_spread.audit.evaluation.evaluators import ClassEvaluation, Comparison, Evaluator, KeyVerdicts, comparisons
from kubectl_spread.audit.evaluation.obstacles import Obstacles
from kubectl_spread.audit.evaluation.volumes import Volumes
from kubectl_spread.audit.merge.admission import AdmissionCheck, admitted
from kubectl_spread.audit.merge.verdicts import SEVEREST, KeyVerdict, ServerFacts, Verdict, term_verdict
from kubectl_spread.audit.snapshot.records import ENCODER, PodClass, PodRecord, digest
from kubectl_spread.audit.snapshot.revisions import Revisions
from kubectl_spread.audit.snapshot.scope import Target
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.audit.snapshot.templates import Template
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.scheduler import nodeaffinity
from kubectl_spread.kube.scheduler.podtopologyspread.domains import NodeSets
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread


class EvaluatedPod(msgspec.Struct, frozen=True):
    """An evaluated pod in one term, with the verdicts on its keys."""

    pod: PodRecord
    term: TopologyTerm
    verdict: Verdict | None
    keys: tuple[KeyVerdict, ...]


class EvaluatedConstraint(msgspec.Struct, eq=False):
    """Pods of one workload, by name, that are alike in one term.

    ``members`` are the pods whose verdict is not ``merged``. ``evaluations`` has each class with its number of pods;
    they all count the same domains.
    """

    workload: ObjectRef
    term: TopologyTerm
    index: int
    effective: bytes
    pods: list[PodRecord] = msgspec.field(default_factory=list)
    members: list[EvaluatedPod] = msgspec.field(default_factory=list)
    verdicts: Counter[Verdict] = msgspec.field(default_factory=Counter)
    evaluations: list[tuple[ClassEvaluation, int]] = msgspec.field(default_factory=list)

    @property
    def namespace(self) -> str:
        """The namespace of the workload and its pods."""
        return self.workload.namespace

    @property
    def path(self) -> FieldPath:
        """The field path of the term."""
        return self.term.path

    @property
    def representative(self) -> PodRecord:
        """The pod whose selectors are reported: the first by name among the pods with the worst verdict."""
        worst = min(self.members, key=_member_order, default=None)
        return self.pods[0] if worst is None else worst.pod

    @property
    def spread(self) -> Spread | None:
        """The count of the class with the most pods; where classes are equally large, the one with selfMatchNum 1."""
        counted = [
            (number, spread)
            for evaluation, number in self.evaluations
            if (spread := evaluation.spreads[self.index]) is not None
        ]
        return max(counted, key=lambda count: (count[0], count[1].self_match_num), default=(0, None))[1]

    @property
    def lower_bound(self) -> bool:
        """Whether the domains are only inferred."""
        return any(evaluation.lower_bound for evaluation, _ in self.evaluations)


class EvaluatedGroup(msgspec.Struct, eq=False):
    """Pods that are alike in everything the spread plugin reads."""

    workload: ObjectRef
    evaluation: ClassEvaluation
    pods: list[PodRecord] = msgspec.field(default_factory=list)

    @property
    def namespace(self) -> str:
        """The namespace of the workload and its pods."""
        return self.workload.namespace


class Audit(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The facts about the evaluated pods: rows and groups in the report's order, and the objects behind them.

    ``pods`` are the requested pods and ``workloads`` is the number of their workloads; ``without_pods`` is the number
    of further workloads, which have templates only. ``everyone`` has all pods in scope. Manifests are as they would be
    stored. ``comparisons`` are with the minors on the way to another Kubernetes, if the user requested that.
    """

    rows: tuple[EvaluatedConstraint, ...]
    groups: tuple[EvaluatedGroup, ...]
    templates: tuple[Template, ...]
    pods: tuple[PodRecord, ...]
    workloads: int
    without_pods: int
    everyone: Sequence[PodRecord]
    nodes: NodeSets
    obstacles: Obstacles
    volumes: Volumes
    affinity: AffinityFilter
    revisions: Revisions
    context: ServerFacts
    snapshot: Snapshot
    evaluator: Evaluator
    admission: AdmissionCheck
    counted: CountedPods
    comparisons: tuple[Comparison, ...]

    def template_of(self, workload: ObjectRef) -> Template | None:
        """Return the pod template of a workload of one of Kubernetes' own kinds; None unless exactly one was read."""
        templates = self._templates_by_holder.get(workload, ())
        return templates[0] if len(templates) == 1 else None

    def rows_of(self, workload: ObjectRef) -> Sequence[EvaluatedConstraint]:
        """Return the rows of a workload, in the report's order."""
        return self._rows_by_workload.get(workload, ())

    @cached_property
    def _rows_by_workload(self) -> Mapping[ObjectRef, Sequence[EvaluatedConstraint]]:
        by_workload: dict[ObjectRef, list[EvaluatedConstraint]] = {}
        for row in self.rows:
            by_workload.setdefault(row.workload, []).append(row)
        return by_workload

    @cached_property
    def _templates_by_holder(self) -> Mapping[ObjectRef, Sequence[Template]]:
        by_holder: dict[ObjectRef, list[Template]] = {}
        for template in self.templates:
            if not template.custom:
                by_holder.setdefault(template.holder, []).append(template)
        return by_holder


def evaluate(snapshot: Snapshot, context: ServerFacts, *, nodes: str, admission: AdmissionCheck | None = None) -> Audit:
    """Evaluate and count every pod in scope; the snapshot is not changed, so that it can be evaluated again.

    Args:
        snapshot: The pods, nodes and owners that were read.
        context: The facts about the servers.
        nodes: ``listed``, ``inferred`` (from the pods' own zone labels) or ``none``.
        admission: A check of this behaviour that knows answers about these objects already.
    """
    everyone = admitted(snapshot.pods, context.behaviour)
    evaluator = Evaluator(snapshot, context, nodes=nodes)
    rows: dict[object, EvaluatedConstraint] = {}
    groups: dict[object, EvaluatedGroup] = {}
    requested: list[PodRecord] = []
    workloads: set[ObjectRef] = set()
    revisions = Revisions(snapshot)
    for workload, pod_class, pods in _alike(snapshot, everyone):
        requested += pods
        workloads.add(workload)
        revisions.add(workload, pods)
        evaluation = evaluator.of(pod_class)
        keys = _keys(evaluation)
        verdicts = [evaluation.verdicts if evaluation.settled else evaluator.verdicts(pod) for pod in pods]
        for row_key in keys.rows:
            key = (workload, row_key)
            if key not in rows:
                _, index, _, effective = row_key
                rows[key] = EvaluatedConstraint(workload, pod_class.terms[index], index, effective)
            _add_to_row(rows[key], evaluation, pods, verdicts)
        if keys.group is not None:
            group = groups.setdefault((workload, keys.group), EvaluatedGroup(workload, evaluation))
            group.pods += pods
    for pods in (*(row.pods for row in rows.values()), *(group.pods for group in groups.values())):
        pods.sort(key=attrgetter("name"))
    templates = _requested_templates(snapshot)
    return Audit(
        rows=tuple(sorted(rows.values(), key=_row_order)),
        groups=tuple(sorted(groups.values(), key=_group_order)),
        templates=templates,
        pods=tuple(requested),
        workloads=len(workloads),
        without_pods=len({template.workload for template in templates} - workloads),
        everyone=everyone,
        nodes=evaluator.node_sets,
        obstacles=Obstacles(evaluator.node_sets, snapshot.capacity(), context.behaviour),
        volumes=Volumes(snapshot, evaluator.node_sets),
        affinity=AffinityFilter(snapshot, evaluator.node_sets, context.behaviour),
        revisions=revisions,
        context=context,
        snapshot=snapshot,
        evaluator=evaluator,
        admission=admission or AdmissionCheck(context.behaviour),
        counted=CountedPods(snapshot, context.behaviour, lambda pod_class: evaluator.of(pod_class).spreads),
        comparisons=comparisons(context, evaluator, templates),
    )


def _alike(snapshot: Snapshot, everyone: Iterable[PodRecord]) -> Iterator[tuple[ObjectRef, PodClass, list[PodRecord]]]:
    """Yield the requested pods by workload and class; a pod without owner is its own workload.

    The order of classes is that of their pods' first names, because findings quote the first class of a constraint.
    """
    by_class: dict[PodClass, list[PodRecord]] = {}
    for pod in everyone:
        by_class.setdefault(pod.pod_class, []).append(pod)
    for pods in sorted(by_class.values(), key=_first_name):
        owners = [owner.ref for owner in snapshot.owner_chain(pods[0])]
        named = [pod for pod in pods if _is_requested(pod, owners, snapshot.scope.targets)]
        if named and owners:
            yield owners[-1], named[0].pod_class, named
        else:
            yield from ((pod.ref, pod.pod_class, [pod]) for pod in named)


def _first_name(pods: list[PodRecord]) -> tuple[str, str]:
    return pods[0].pod_class.namespace, min(pod.name for pod in pods)


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
    return (template.workload, *(owner.ref for owner in snapshot.template_owners(template)))


def _is_requested(pod: PodRecord, owners: Sequence[ObjectRef], targets: Sequence[Target]) -> bool:
    return not targets or any(target.includes(ref) for target in targets for ref in (pod.ref, *owners))


class _Keys(msgspec.Struct, frozen=True):
    """The keys that, with the workload, identify the rows and the group of an evaluation's pods.

    The key of a row has path, index, a digest of the further common fields, and effective selector. The index is part
    of it because pods whose revisions have more or fewer constraints have the same term at another index.
    """

    rows: tuple[tuple[FieldPath, int, bytes, bytes], ...]
    group: bytes | None


def _keys(evaluation: ClassEvaluation) -> _Keys:
    terms = evaluation.pod_class.terms
    spread_keys = {
        required: digest([term.topology_key for term in terms if term.spread and term.required is required])
        for required in (True, False)
    }
    rows = tuple(
        (term.path, index, _row_key(evaluation, index, spread_keys), ENCODER.encode(evaluation.effective[index]))
        for index, term in enumerate(terms)
        if term.spread or term.keyed
    )
    return _Keys(rows, _group_key(evaluation) if any(term.spread for term in terms) else None)


def _add_to_row(
    row: EvaluatedConstraint, evaluation: ClassEvaluation, pods: list[PodRecord], verdicts: Sequence[KeyVerdicts]
) -> None:
    row.pods += pods
    row.evaluations.append((evaluation, len(pods)))
    term = evaluation.pod_class.terms[row.index]
    if evaluation.settled and (alike := term_verdict(term, evaluation.verdicts[row.index])) in (
        None,
        Verdict.MERGED,
    ):
        if alike is not None:
            row.verdicts[alike] += len(pods)
        return
    for pod, verdicts_on_pod in zip(pods, verdicts, strict=True):
        keys = verdicts_on_pod[row.index]
        verdict = term_verdict(term, keys)
        if verdict is not None:
            row.verdicts[verdict] += 1
        if verdict not in (None, Verdict.MERGED):
            row.members.append(EvaluatedPod(pod, term, verdict, keys))


def _row_key(evaluation: ClassEvaluation, index: int, spread_keys: Mapping[bool, bytes]) -> bytes:
    """Return a digest of the fields that the pods of one row have in common besides path and effective selector.

    ``spread_keys`` has the digests of the topology keys of the pods' hard (True) and soft (False) constraints.
    """
    pod_class, term = evaluation.pod_class, evaluation.pod_class.terms[index]
    if term.constraint is None:
        keys = (term.match_label_keys, term.mismatch_label_keys)
        return digest((term.topology_key, term.selector, keys))
    honors_taints = term.constraint.node_taints_policy == "Honor"
    return digest(
        (
            term.constraint,
            pod_class.placement.node_selector,
            nodeaffinity.required(pod_class.placement.affinity),
            pod_class.placement.tolerations if honors_taints else (),
            spread_keys[term.required].hex(),
            pod_class.pinned,
            pod_class.scheduler_name,
        )
    )


def _group_key(evaluation: ClassEvaluation) -> bytes:
    pod_class = evaluation.pod_class
    return digest(
        (
            [(term.constraint, term.selector) for term in pod_class.terms],
            evaluation.effective,
            # A pod that lost a merged label no longer matches the selector that its siblings match.
            [None if spread is None else spread.self_match_num for spread in evaluation.spreads],
            pod_class.placement.node_selector,
            nodeaffinity.required(pod_class.placement.affinity),
            pod_class.placement.tolerations,
            pod_class.pinned,
            pod_class.scheduler_name,
        )
    )


def _member_order(member: EvaluatedPod) -> tuple[int, str]:
    rank = len(SEVEREST) if member.verdict is None else SEVEREST[member.verdict]
    return rank, member.pod.name


def _row_order(row: EvaluatedConstraint) -> tuple[object, ...]:
    return (row.workload, row.path.order, row.effective, row.pods[0].name)


def _group_order(group: EvaluatedGroup) -> tuple[object, ...]:
    return (group.workload, ENCODER.encode(group.evaluation.effective), group.pods[0].name)
