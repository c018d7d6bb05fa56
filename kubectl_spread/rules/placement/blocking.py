"""SPR303, SPR308 and SPR315: pods that no node accepts, because of their constraints or for any other reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedGroup
from kubectl_spread.audit.evaluation.evaluators import ClassEvaluation
from kubectl_spread.audit.evaluation.obstacles import FILTERS, ObstacleKind
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.audit.snapshot.snapshot import OVERDUE
from kubectl_spread.engine.answers import Fix, Reason, RefusalCause
from kubectl_spread.engine.node_answers import NodeAnswers, answers_of
from kubectl_spread.kube.api.field import POD_SPEC, FieldPath
from kubectl_spread.kube.api.labels import HOSTNAME
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.api.workloads import Deployment, StatefulSet
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread, feasible_nodes
from kubectl_spread.memoization import memoized
from kubectl_spread.phrases import domains, listed, plural, sentence, some
from kubectl_spread.report.model import ClosedDomains, CommandLine, Severity
from kubectl_spread.rules.inputs import PodsInput, WaitingInput, is_modelled
from kubectl_spread.rules.model import Evidence, Remedy, Rule, Values, names
from kubectl_spread.rules.placement.closed import (
    closed,
    closed_domains,
    fewer_domains,
    left_out,
    lowest,
    once_open,
    opening,
    shortage,
)
from kubectl_spread.rules.remedy import corrected, in_file, labelled, literal
from kubectl_spread.rules.topology import right_key, unknown_key

_MESSAGE: Final = 200
"""The number of characters of the scheduler's message that are quoted."""


def _waiting(rule_input: WaitingInput) -> Iterator[Evidence]:
    """Yield the pods of one workload that wait for the same reason."""
    audit, engine = rule_input.audit, rule_input.engine
    explained, quoted, overdue = list[PodRecord](), list[PodRecord](), list[PodRecord]()
    for pod in rule_input.waiting:
        if is_modelled(pod, audit) and (pod.refused or not engine.has_node(pod)):
            explained.append(pod)
        elif pod.refused:
            quoted.append(pod)
        elif audit.snapshot.is_overdue(pod):
            overdue.append(pod)
    yield from _by_reason(explained, rule_input)
    yield from _by_message(quoted, rule_input)
    if overdue:
        yield _without_message(overdue, rule_input)


def _by_reason(waiting: list[PodRecord], rule_input: WaitingInput) -> Iterator[Evidence]:
    """Yield the pods by the refusals of all nodes."""
    groups: dict[object, tuple[Reason, list[PodRecord]]] = {}
    for pod in waiting:
        reason = rule_input.engine.wait_of(pod)
        if not reason.free or pod.gates or pod.refused:
            key = (reason.key, reason.unknown, bool(reason.free), rule_input.about_new_nodes(pod))
            groups.setdefault(key, (reason, []))[1].append(pod)
    for reason, pods in groups.values():
        values = {"who": _who(pods, reason), "why": _why(pods, reason, rule_input)}
        values |= {"then": not_created(pods, rule_input), "new_nodes": rule_input.about_new_nodes(pods[0])}
        yield Evidence(names(pods), values, fix=_fix(pods, reason, rule_input))


def _without_message(pods: list[PodRecord], rule_input: WaitingInput) -> Evidence:
    """Return the pods about which their scheduler says nothing, although it should have placed or refused them."""
    which = "the pending pod" if len(pods) == 1 else f"{len(pods)} pending pods"
    schedulers = listed(sorted({pod.pod_class.scheduler_name for pod in pods}))
    values = {
        "who": f"{schedulers} has neither placed nor refused {which}",
        "why": f"{'it has' if len(pods) == 1 else 'they have'} waited for more than {OVERDUE.seconds // 60} minutes",
        "then": not_created(pods, rule_input),
        "new_nodes": "",
    }
    fix = "see whether this scheduler runs, and whether a ResourceClaim of the pods is missing"
    return Evidence(names(pods), values, fix=fix)


def _by_message(waiting: list[PodRecord], rule_input: WaitingInput) -> Iterator[Evidence]:
    """Yield the pods by the scheduler's message, where nodes were not read or the scheduler is not known."""
    groups: dict[str, list[PodRecord]] = {}
    for pod in waiting:
        groups.setdefault(_said([pod]), []).append(pod)
    for scheduler_message, pods in groups.items():
        which = "the pending pod" if len(pods) == 1 else f"{len(pods)} pending pods"
        values = {
            "who": f"The scheduler refused {which}",
            "why": scheduler_message,
            "then": not_created(pods, rule_input),
            "new_nodes": "",
        }
        fix = "read the nodes as well, so that the reason of each node is known"
        if rule_input.audit.evaluator.lists_nodes:
            fix = literal(f"see what {pods[0].pod_class.scheduler_name} says: its rules are not known")
        yield Evidence(names(pods), values, fix=fix)


def _who(pods: list[PodRecord], reason: Reason) -> str:
    which = "the pending pod" if len(pods) == 1 else f"{len(pods)} pending pods"
    if pods[0].gates:
        return f"The scheduler does not try to place {which}"
    if reason.free:
        return f"The scheduler refused {which}"
    return f"No node takes {which}"


def _why(pods: list[PodRecord], reason: Reason, rule_input: WaitingInput) -> str:
    scheduler_message = _said(pods)
    if pods[0].gates:
        return reason.text
    if reason.free:
        free = f"{'node' if len(reason.free) == 1 else 'nodes'} {some(reason.free)} would take it now"
        not_known = f". Not known: {reason.unknown}" if reason.unknown else ""
        return f"{scheduler_message}. By the filters that are modelled, {free}{not_known}"
    text = reason.text
    if _are_kept_by_a_rollout(reason, rule_input):
        text += ". The term counts pods of all revisions, and the rollout keeps the old ones until new ones run"
        text += " (maxUnavailable 0)"
    if reason.unknown:
        text += f". Not known: {reason.unknown}"
    if scheduler_message and not _agrees(scheduler_message, reason):
        text += f". The scheduler's last message has other reasons: {scheduler_message}"
    return text


def _are_kept_by_a_rollout(reason: Reason, rule_input: WaitingInput) -> bool:
    """Tell whether older pods of the same Deployment repel the new ones, and may not go before these run."""
    workload, audit = rule_input.workload, rule_input.audit
    stored = audit.snapshot.workload_objects.get(workload)
    return (
        isinstance(stored, Deployment)
        and not stored.pace.unavailable
        and any(workload in refusal.workloads for refusal in reason.refusals)
        and len(audit.revisions.of(workload)) > 1
    )


def _said(pods: list[PodRecord]) -> str:
    """Return the scheduler's message about the first pod that it refused, without its part about preemption."""
    message = next((pod.unscheduled.message for pod in pods if pod.unscheduled is not None and pod.refused), "")
    text = message.partition(" preemption:")[0].strip().rstrip(".")
    return text if len(text) <= _MESSAGE else f"{text[:_MESSAGE]} ..."


def _agrees(scheduler_message: str, reason: Reason) -> bool:
    """Tell whether the scheduler's message names one of the filters that refuse the pod in the model."""
    words = scheduler_message.lower()
    return any(sign in words for cause in reason.causes for sign in FILTERS[cause.kind].signs)


def not_created(pods: Sequence[PodRecord], rule_input: PodsInput | WaitingInput) -> str:
    """Return which pods are not created while these wait, as a sentence; "" for none."""
    stored = rule_input.audit.snapshot.workload_objects.get(rule_input.workload)
    if not isinstance(stored, StatefulSet) or not stored.ordered:
        return ""
    missing = stored.replicas - len(rule_input.audit.counted.siblings(rule_input.workload))
    if missing <= 0:
        return ""
    which = "the next pod is" if missing == 1 else f"the next {plural(missing, 'pod')} are"
    return f" By the OrderedReady policy {which} not created until {'it runs' if len(pods) == 1 else 'they run'}."


def _fix(pods: list[PodRecord], reason: Reason, rule_input: PodsInput | WaitingInput) -> Remedy:
    if pods[0].gates:
        gates = listed(list(pods[0].gates))
        return Remedy(literal(f"the controller that set the gates ({gates}) removes them: look there"))
    if reason.free:
        if any(sign in _said(pods).lower() for each in FILTERS.values() for sign in each.signs):
            return Remedy("wait some minutes: the cluster has changed since, and the scheduler tries again by itself")
        if reason.unknown:
            return Remedy("see what the message names, and what is not known: it may keep the pods from these nodes")
        return Remedy("see what the message names: it is a filter of the scheduler that is not modelled")
    fix = rule_input.engine.fix_of(reason, [rule_input.workload])
    if fix is None:
        return Remedy(literal(_by_hand(reason.causes)))
    commands = () if in_file(rule_input) else _commands(fix)
    return Remedy(literal(f"{fix.text}. Tried in a simulation: all pods of the workload run afterwards"), commands)


def _commands(fix: Fix) -> tuple[CommandLine, ...]:
    return tuple(CommandLine(words) for words in fix.commands)


def _by_hand(causes: Iterable[RefusalCause]) -> str:
    """Return one action for each filter that refuses nodes, in words."""
    ways = list(dict.fromkeys(each.remedy or FILTERS[each.kind].remedy.format(nodes="nodes") for each in causes))
    return f"one of these: {'; '.join(ways)}" if len(ways) > 1 else next(iter(ways), sentence("add nodes"))


WAITING: Final = Rule(
    code="SPR315",
    name="waiting",
    severity=Severity.ERROR,
    summary="Pods wait, and no node takes them",
    message="{who}: {why}.{then}{new_nodes}",
    fix="let a node take the pods",
    of_waiting=_waiting,
)


_LACKS: Final = ("lacks a topology key", "lack a topology key")


def _blocked(rule_input: PodsInput) -> Iterator[Evidence]:
    """Yield the pods that no node accepts, at the path of the first constraint that refuses a node.

    Pods that wait for the same reason are one finding, whatever their revision is.
    """
    groups_by_reason: dict[tuple[str, str], list[EvaluatedGroup]] = {}
    for group in _blocked_groups(rule_input, conflict=False):
        reason = (_answer(group, rule_input), _cause(group, rule_input).text)
        groups_by_reason.setdefault(reason, []).append(group)
    for (answer, text), groups in groups_by_reason.items():
        # What the newest revision needs is advised first.
        cause = _cause(min(groups, key=lambda group: _is_replaced(group, rule_input)), rule_input)
        pending = _pending(*groups)
        values = {"who": _subject(groups), "answer": answer, "cause": text}
        values["then"] = not_created(pending, rule_input) if pending else ""
        values["new_nodes"] = rule_input.about_new_nodes(pending[0]) if pending else ""
        yield Evidence(_affected(groups), values, _severity(groups), cause.fix, cause.covers, cause.closed)


def _answer(group: EvaluatedGroup, rule_input: PodsInput) -> str:
    """Return the number of nodes that refuse the pods of a group, with the reasons.

    Each node counts once, by the first filter that refuses it, as in the scheduler's own message.
    """
    numbers: Counter[tuple[str, str]] = Counter()
    for cause, nodes in _refused(group, rule_input):
        of_filter = FILTERS[cause.kind]
        verbs = (of_filter.one_node, of_filter.several_nodes) if cause.right_key is None else _LACKS
        numbers[verbs] += nodes.bit_count()
    spread = FILTERS[ObstacleKind.CONSTRAINED]
    order = [(spread.one_node, spread.several_nodes), _LACKS]
    order += [(each.one_node, each.several_nodes) for each in FILTERS.values() if each is not spread]
    refusing = [(numbers[verbs], verbs) for verbs in order if numbers[verbs]]
    return listed([f"{plural(number, 'node')} {verbs[number > 1]}" for number, verbs in refusing], len(refusing))


def _refused(group: EvaluatedGroup, rule_input: PodsInput) -> Sequence[tuple[RefusalCause, int]]:
    """Return what refuses the first pending pod of a group, or one more such pod, each with the nodes as a bitmap."""
    engine, pending = rule_input.engine, _pending(group)
    return (engine.destinations(pending[0]) if pending else engine.next_destinations(group.pods[0])).refused


class _Cause(msgspec.Struct, frozen=True):
    """Why the constraint at the path refuses nodes: a sentence or "", the fix, and the rules that would repeat it.

    ``closed`` are the domains that the pods wait for, if only cordons or taints close these.
    """

    text: str
    fix: Remedy | str | None
    covers: tuple[str, ...] = ()
    closed: ClosedDomains | None = None


def _cause(group: EvaluatedGroup, rule_input: PodsInput) -> _Cause:
    """Return why the constraint at the path refuses nodes."""
    cause = _cause_now(group, rule_input)
    # Where too few domains are not the cause, they need no finding of their own before it is gone.
    cause = msgspec.structs.replace(cause, covers=(*cause.covers, "SPR304"))
    return msgspec.structs.replace(cause, fix=corrected(rule_input)) if _is_replaced(group, rule_input) else cause


def _is_replaced(group: EvaluatedGroup, rule_input: PodsInput) -> bool:
    """Tell whether pods are of an older revision, and the template has another constraint at the path than they."""
    template = rule_input.stored_template
    if template is None or not rule_input.audit.revisions.superseded(rule_input.workload, group.pods):
        return False
    pod_class = group.evaluation.pod_class
    index = next(index for index, term in enumerate(pod_class.terms) if term.path == rule_input.path)
    path = rule_input.pod_path.moved(POD_SPEC, template.path)
    constraint, selector = pod_class.terms[index].constraint, pod_class.splits[index].authored
    own = None if constraint is None else msgspec.structs.replace(constraint, label_selector=selector)
    return all(now.constraint != own for now in template.terms_by_path.get(path, ()))


def _cause_now(group: EvaluatedGroup, rule_input: PodsInput) -> _Cause:
    """Return why the constraint at the path refuses nodes, with the fix for the constraint that the pods have."""
    evaluation, audit = group.evaluation, rule_input.audit
    spread = next(
        spread
        for term, spread in zip(evaluation.pod_class.terms, evaluation.spreads, strict=True)
        if term.path == rule_input.path and spread is not None
    )
    if not spread.match_num or not _with_all_keys(evaluation, audit):
        return _keyless(spread, evaluation, rule_input)
    first = next(iter(_pending(group)), None)
    answers = answers_of(evaluation, first or group.pods[0], audit)
    if spread.lowered:
        fix = fewer_domains(spread, answers, rule_input)
        return _Cause(f" {shortage(spread, answers)}", fix, closed=left_out(spread, answers))
    shut = closed(spread, answers, answers.obstacles(lowest(spread)))
    open_nodes = [node for node in lowest(spread) if answers.obstacle(node) is None]
    if open_nodes or (first is not None and ObstacleKind.VOLUME in shut.causes):
        return _by_all_filters(group, rule_input)
    fix = opening(shut, evaluation, rule_input, blocked=True)
    for_all = closed_domains(shut)
    after = "" if first is None else once_open(for_all, rule_input)
    return _Cause(f" {shut.sentence}{after}.", fix, ("SPR307",), for_all)


def _with_all_keys(evaluation: ClassEvaluation, audit: Audit) -> list[str]:
    """Return the nodes that the pods could use and that have the topology keys of all hard constraints."""
    labels_of, usable = audit.nodes.labels_of, audit.nodes.usable(evaluation.pod_class.placement)
    keys = {spread.constraint.topology_key for spread in evaluation.hard}
    return [name for name, node in usable.items() if node.schedulable and keys <= labels_of(name).keys()]


def _keyless(spread: Spread, evaluation: ClassEvaluation, rule_input: PodsInput) -> _Cause:
    """Return the cause if every node that the pods could use lacks the topology key of a hard constraint."""
    nodes, key = rule_input.audit.nodes, spread.constraint.topology_key
    usable = nodes.usable(evaluation.pod_class.placement)
    lacking = [node for node in nodes.lacking(key) if usable[node].schedulable]
    keys = list(dict.fromkeys(each.constraint.topology_key for each in evaluation.hard))
    on_none = [each for each in keys if len(nodes.lacking(each)) == len(nodes.nodes)]
    if absent := unknown_key(key, rule_input):
        variants = [each for each in rule_input.variants if each.term.topology_key == key]
        fix = right_key(variants, rule_input) if variants else None
        return _Cause(f" {sentence(absent)}", fix, ("SPR213", "SPR218"))
    others = {each for each in keys if each != key}
    near = [node for node in lacking if others <= nodes.labels_of(node).keys()]
    if on_none:
        text = f" No node has the label {on_none[0]}."
    else:
        text = f" No node that the pods could use has all of the labels {listed(keys, len(keys))}." if others else ""
    return _Cause(text, labelled(near or lacking, key, rule_input))


def _by_all_filters(group: EvaluatedGroup, rule_input: PodsInput) -> _Cause:
    """Return what each filter refuses, where closed domains are not all that keeps the pods away."""
    if pending := _pending(group):
        reason = rule_input.engine.wait_of(pending[0])
        return _Cause(f" {sentence(reason.text)}", _fix(pending, reason, rule_input), ("SPR307",))
    causes = [cause for cause, _ in _refused(group, rule_input)]
    text = "; ".join(dict.fromkeys(cause.text for cause in causes))
    return _Cause(f" {sentence(text)}", literal(_by_hand(causes)), ("SPR307",))


def _conflicting(rule_input: PodsInput) -> Iterator[Evidence]:
    """Yield the pods whose constraints each allow nodes, but not the same ones."""
    groups_by_keys: dict[str, list[EvaluatedGroup]] = {}
    for group in _blocked_groups(rule_input, conflict=True):
        constraints = [term for term in group.evaluation.pod_class.terms if term.spread and term.required]
        keys = listed([term.topology_key for term in constraints], len(constraints))
        groups_by_keys.setdefault(keys, []).append(group)
    for keys, groups in groups_by_keys.items():
        pending = _pending(*groups)
        then = not_created(pending, rule_input) if pending else ""
        refused = _refused(groups[0], rule_input)
        lowest = [(cause.topology_key, cause.lowest) for cause, _ in refused if cause.lowest]
        place = next((f"to {domains(*each)}" for each in lowest if each[0] != HOSTNAME), "that all of them allow")
        values: Values = {"who": _subject(groups), "keys": keys, "more": f"add nodes {place}", "then": then}
        fix = _fix(pending, rule_input.engine.wait_of(pending[0]), rule_input) if pending else None
        yield Evidence(_affected(groups), values, _severity(groups), fix)


def _blocked_groups(rule_input: PodsInput, *, conflict: bool) -> list[EvaluatedGroup]:
    """Return the groups with pending pods that the constraint at the path blocks; without any at most one other."""
    blockage = _Blockage(rule_input.path, conflict)
    groups = [
        group
        for group in rule_input.groups
        if (_pending(group) or rule_input.followed(group.pods)) and _blockage(rule_input.audit, group) == blockage
    ]
    return [group for group in groups if _pending(group)] or groups[:1]


def _pending(*groups: EvaluatedGroup) -> list[PodRecord]:
    return [pod for group in groups for pod in group.pods if pod.waits]


def _severity(groups: Sequence[EvaluatedGroup]) -> Severity:
    return Severity.ERROR if _pending(*groups) else Severity.WARNING


def _affected(groups: Sequence[EvaluatedGroup]) -> tuple[str, ...]:
    return names(_pending(*groups) or groups[0].pods)


def _subject(groups: Sequence[EvaluatedGroup]) -> str:
    """Return the beginning of the message: which pods no node takes."""
    pending = _pending(*groups)
    if not pending:
        return "No node would take one more such pod"
    return f"No node takes the {'pending pod' if len(pending) == 1 else f'{len(pending)} pending pods'}"


class _Blockage(msgspec.Struct, frozen=True):
    """The refusal of every usable node by the hard constraints of pods.

    Attributes:
        path: The path of the first constraint that refuses a node.
        conflict: Whether each constraint alone would allow some node.
    """

    path: FieldPath
    conflict: bool


@memoized
def _blockage(audit: Audit, group: EvaluatedGroup) -> _Blockage | None:
    """Return how the hard constraints keep a group from every node that it could use; None if they do not.

    A pending pod cannot use a full node; a later pod may, because the node may have room again by then.
    """
    evaluation = group.evaluation
    hard = [
        (term.path, spread)
        for term, spread in zip(evaluation.pod_class.terms, evaluation.spreads, strict=True)
        if spread is not None and spread.constraint.hard
    ]
    if not hard or evaluation.node_answers is None:
        return None
    distinct: dict[object, NodeAnswers] = {}
    for pod in _pending(group) or group.pods[:1]:
        answers = answers_of(evaluation, pod, audit)
        distinct.setdefault(answers.question, answers)
    return next(filter(None, (_blockage_by(answers, hard, group, audit) for answers in distinct.values())), None)


def _blockage_by(
    answers: NodeAnswers, hard: Sequence[tuple[FieldPath, Spread]], group: EvaluatedGroup, audit: Audit
) -> _Blockage | None:
    """Return how hard constraints keep a pod of a group from every node that it could use."""
    evaluation, waits = group.evaluation, bool(_pending(group))

    def usable(node: Node) -> bool:
        obstacle = answers.obstacle(node.metadata.name)
        return obstacle is None or (obstacle.cause is ObstacleKind.FULL and not waits)

    if any(usable(node) for node in feasible_nodes(evaluation.hard, audit.nodes)):
        return None
    refusing = [
        {path for path, spread in hard if not _lets_in(spread, node)} for node in audit.nodes.nodes if usable(node)
    ]
    if not refusing:
        return None
    # One key that no node has takes the domains of all hard constraints away.
    absent = (path for path, spread in hard if not audit.nodes.number_of_values(spread.constraint.topology_key))
    first = next(absent, None) or next(path for path, _ in hard if any(path in paths for paths in refusing))
    each_allows_a_node = all(any(path not in paths for paths in refusing) for path, _ in hard)
    return _Blockage(first, each_allows_a_node and bool(_with_all_keys(evaluation, audit)))


def _lets_in(spread: Spread, node: Node) -> bool:
    return spread.allows(node.metadata.labels.get(spread.constraint.topology_key))


BLOCKED: Final = Rule(
    code="SPR303",
    name="blocked",
    severity=Severity.ERROR,
    summary="DoNotSchedule constraints refuse every node that the pods could use",
    message="{who}: {answer}.{cause}{then}{new_nodes}",
    fix=(
        "open the domain at the minimum, or set nodeTaintsPolicy: Honor in the pod template, so that nodes with taints "
        "that the pods do not tolerate no longer count"
    ),
    of_counts=_blocked,
)

CONFLICTING: Final = Rule(
    code="SPR308",
    name="conflicting-constraints",
    severity=Severity.ERROR,
    summary="Each DoNotSchedule constraint allows some nodes, but no node is allowed by all of them",
    message="{who}. The constraints on {keys} each allow some nodes, but no node is allowed by all of them.{then}",
    fix=("make one of the constraints ScheduleAnyway or raise its maxSkew in the pod template, or {more}"),
    of_counts=_conflicting,
)
