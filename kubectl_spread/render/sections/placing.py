"""The sections about the nodes for pods: those of pending pods, of one more pod, and of several more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.explain.next_pods import NextPods, Step
from kubectl_spread.explain.placing import Placing
from kubectl_spread.explain.waiting import InertConstraint, SchedulerEvent, Waiting
from kubectl_spread.kube.scheduler.podtopologyspread.scoring import WEIGHT
from kubectl_spread.phrases import listed, plural, sentence
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Terminal, heading, paragraph

_INDENT: Final = "  "
_QUOTED: Final = "    "
_NOT_RETRIED: Final = (
    "If the scheduler refused the pod before the label was changed, it tries again only after a node has changed or "
    "after 5 minutes. Until then the event keeps its old text."
)


def waiting(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each group of pending pods that are alike."""
    return "\n".join(_waiting_group(group, terminal) for group in explanation.waiting)


def _waiting_group(group: Waiting, terminal: Terminal) -> str:
    """Return the scheduler's message about pending pods, then the nodes that can and cannot take one."""
    pods = "Pending pod" if len(group.pods) == 1 else f"{len(group.pods)} pending pods"
    text = heading(f"{pods}: {words.names(group.pods)}", terminal) + _reported(group, terminal)
    if not isinstance(group.gates, UnsetType):
        gates = f"The scheduler ignores the pod until its scheduling gates are removed: {words.names(group.gates)}."
        text += paragraph(gates, _INDENT, terminal)
    return text + _answer(group, terminal) + _inert(group, terminal)


def _inert(group: Waiting, terminal: Terminal) -> str:
    if isinstance(group.inert, UnsetType):
        return ""
    text = "".join(paragraph(_inert_text(inert), _INDENT, terminal) for inert in group.inert)
    return text if isinstance(group.gates, list) else text + paragraph(_NOT_RETRIED, _INDENT, terminal)


def _inert_text(inert: InertConstraint) -> str:
    path, key = words.short_path(inert.path), words.safe(inert.key)
    stored, label = words.value(inert.stored), words.value(inert.label)
    return (
        f"{path} keeps the pod from no node. Its selector matches no pod since the label {key} was changed from "
        f"{stored} to {label}."
    )


def _reported(group: Waiting, terminal: Terminal) -> str:
    """Return the scheduler's own message: of its last event, else of the condition in a pod's status."""
    event, condition = group.event, group.condition
    if not isinstance(event, UnsetType):
        quoted = paragraph(words.safe(event.message), _QUOTED, terminal)
        return paragraph(f"The scheduler's message, {_when(event)}:", _INDENT, terminal) + quoted
    if isinstance(condition, UnsetType):
        missing = "No FailedScheduling event was read, and the status has no message of the scheduler."
        return "" if isinstance(group.gates, list) else paragraph(missing, _INDENT, terminal)
    reason = f" ({words.safe(condition.reason)})" if condition.reason else ""
    since = "" if isinstance(condition.since, UnsetType) else f" since {condition.since}"
    source = f"from the status of {words.safe(condition.pod)}: PodScheduled=False{reason}{since}:"
    quoted = paragraph(words.safe(condition.message), _QUOTED, terminal)
    return paragraph(f"The scheduler's message, {source}", _INDENT, terminal) + quoted


def _when(event: SchedulerEvent) -> str:
    times = "once" if event.count == 1 else f"{event.count} times"
    last = "" if isinstance(event.last, UnsetType) else f", last at {event.last}"
    return f"{times} about {words.safe(event.pod)}{last}"


def placing(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each group without pending pods, which have a section of their own."""
    if isinstance(explanation.placing, UnsetType):
        return ""
    waiting_pods = {name for group in explanation.waiting for name in group.pods}
    return "\n".join(
        _placing_group(group, terminal) for group in explanation.placing if waiting_pods.isdisjoint(group.pods)
    )


def _placing_group(group: Placing, terminal: Terminal) -> str:
    ranking = "" if isinstance(group.scores, UnsetType) else _ranking(group.scores)
    title = heading(f"Next pod like {words.safe(group.pods[0])}", terminal)
    return title + _answer(group, terminal, ranking)


def _ranking(scores: Mapping[str, int]) -> str:
    """Return the nodes by their score, the highest first."""
    by_score: dict[int, list[str]] = {}
    for name, score in scores.items():
        by_score.setdefault(score, []).append(name)
    ranks = [f"{score} for {_nodes(by_score[score])}" for score in sorted(by_score, reverse=True)]
    return (
        f"Score of the plugin PodTopologySpread: {listed(ranks, len(ranks))}. "
        f"Its weight is {WEIGHT} by default, and other plugins score too."
    )


def replicas(explanation: Explanation, terminal: Terminal) -> str:
    """Return a line for each pod that --replicas adds."""
    return "\n".join(_next_pods(next_pods, terminal) for next_pods in explanation.next_pods)


def _next_pods(next_pods: NextPods, terminal: Terminal) -> str:
    keys = " / ".join(words.topology(key) for key in next_pods.topology_keys)
    title = heading(
        f"Next {plural(len(next_pods.steps), 'pod')} like {words.safe(next_pods.pods[0])}, by {keys}", terminal
    )
    lines = [f"+{number}  {_step(step)}" for number, step in enumerate(next_pods.steps, start=1)]
    lines.append("Only taints, node affinity and spread constraints were considered.")
    return title + "".join(paragraph(line, _INDENT, terminal) for line in lines)


def _step(step: Step) -> str:
    if not step.allowed:
        return "can go to no node"
    domains = words.names(step.allowed)
    return f"can go to {domains} ({plural(step.nodes, 'node')}), assumed to go to {words.safe(step.assumed)}"


def _answer(group: Placing | Waiting, terminal: Terminal, ranking: str = "") -> str:
    """Return the nodes where a pod can go, a line for each reason against others, and what is unknown.

    ``ranking`` is how the scheduler ranks the nodes that take it; "" if it is not computed.
    """
    lines = [f"Can go to {_nodes(group.allowed)}.", *([ranking] if ranking else [])]
    lines += [f"Cannot go to {_nodes(refusal.nodes)}: {words.safe(refusal.reason)}." for refusal in group.refused]
    if isinstance(group.unknown, list):
        lines += [sentence(f"unknown: {words.safe(text)}") for text in group.unknown]
    return "".join(paragraph(line, _INDENT, terminal) for line in lines)


def _nodes(names: Sequence[str]) -> str:
    return f"{plural(len(names), 'node')} ({words.names(names)})" if names else "no node"
