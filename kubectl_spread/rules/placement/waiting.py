"""SPR315: pods that wait, whatever the reason is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_spread.audit.evaluation.obstacles import FILTERS
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.audit.snapshot.snapshot import OVERDUE
from kubectl_spread.engine.answers import Fix, Reason
from kubectl_spread.kube.api.workloads import Deployment, StatefulSet
from kubectl_spread.phrases import listed, plural, sentence, some
from kubectl_spread.report.model import CommandLine, Severity
from kubectl_spread.rules.inputs import PodsInput, WaitingInput, is_modelled
from kubectl_spread.rules.model import Evidence, Remedy, Rule, names
from kubectl_spread.rules.remedy import in_file, literal

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


def _fix(pods: list[PodRecord], reason: Reason, rule_input: WaitingInput) -> Remedy:
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
        return Remedy(literal(_by_hand(reason)))
    commands = () if in_file(rule_input) else _commands(fix)
    return Remedy(literal(f"{fix.text}. Tried in a simulation: all pods of the workload run afterwards"), commands)


def _commands(fix: Fix) -> tuple[CommandLine, ...]:
    return tuple(CommandLine(words) for words in fix.commands)


def _by_hand(reason: Reason) -> str:
    """Return one action for each filter that refuses nodes, in words."""
    causes = reason.causes
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
