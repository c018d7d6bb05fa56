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
from kubectl_spread.phrases import plural
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Terminal, heading, paragraph

_NOT_RETRIED: Final = (
    "a pod that was refused before its label was changed is not retried for that: the scheduler looks again after an "
    "event of a node, or when it flushes what waits for more than 5 minutes; until then the pod's event keeps its old "
    "text"
)


def waiting(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each group of pending pods that are alike."""
    return "\n".join(_waiting_group(group, terminal) for group in explanation.waiting)


def _waiting_group(group: Waiting, terminal: Terminal) -> str:
    text = heading(f"{plural(len(group.pods), 'pending pod')}: {words.names(group.pods)}", terminal)
    if not isinstance(group.gates, UnsetType):
        gated = f"not looked at by the scheduler before its gates are removed: {words.names(group.gates)}"
        text += paragraph(gated, "  ", terminal)
    text += _answer(group, terminal)
    return text + _inert(group, terminal) + _event(group, terminal)


def _inert(group: Waiting, terminal: Terminal) -> str:
    if isinstance(group.inert, UnsetType):
        return ""
    text = "".join(paragraph(_inert_text(inert), "  ", terminal) for inert in group.inert)
    return text if isinstance(group.gates, list) else text + paragraph(_NOT_RETRIED, "  ", terminal)


def _inert_text(inert: InertConstraint) -> str:
    path, key = words.short_path(inert.path), words.safe(inert.key)
    stored, label = words.value(inert.stored), words.value(inert.label)
    return f"{path} holds it back nowhere: {key} was {stored} and is {label} now, so it selects no pod"


def _event(group: Waiting, terminal: Terminal) -> str:
    event = group.event
    if isinstance(event, UnsetType):
        return _status(group, terminal)
    when = paragraph(f"the scheduler's own words, {_when(event)}", "  ", terminal)
    return when + paragraph(words.safe(event.message), "    ", terminal)


def _status(group: Waiting, terminal: Terminal) -> str:
    """Return the condition in the pods' status, for pods without an event."""
    condition = group.condition
    if isinstance(condition, UnsetType):
        return "" if isinstance(group.gates, list) else "  no FailedScheduling event was read\n"
    reason = f" ({words.safe(condition.reason)})" if condition.reason else ""
    since = "" if isinstance(condition.since, UnsetType) else f", since {condition.since}"
    about = (
        f"no FailedScheduling event was read; the status of {words.safe(condition.pod)} says PodScheduled=False{reason}"
    )
    return paragraph(f"{about}{since}:", "  ", terminal) + paragraph(words.safe(condition.message), "    ", terminal)


def _when(event: SchedulerEvent) -> str:
    times = "once" if event.count == 1 else f"{event.count} times"
    last = "" if isinstance(event.last, UnsetType) else f", last at {event.last}"
    return f"{times} about {words.safe(event.pod)}{last}:"


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
    title = heading(f"next pod like {words.safe(group.pods[0])}", terminal)
    return title + _answer(group, terminal, ranking)


def _ranking(scores: Mapping[str, int]) -> str:
    """Return the nodes by their score, the highest first."""
    by_score: dict[int, list[str]] = {}
    for name, score in scores.items():
        by_score.setdefault(score, []).append(name)
    ranks = [f"{score} for {_nodes(by_score[score])}" for score in sorted(by_score, reverse=True)]
    return f"PodTopologySpread scores {', '.join(ranks)} (weight {WEIGHT} by default; other plugins score too)"


def replicas(explanation: Explanation, terminal: Terminal) -> str:
    """Return a line for each pod that --replicas adds."""
    return "\n".join(_next_pods(next_pods, terminal) for next_pods in explanation.next_pods)


def _next_pods(next_pods: NextPods, terminal: Terminal) -> str:
    keys = " / ".join(words.safe(key) for key in next_pods.topology_keys)
    title = heading(f"next pods like {words.safe(next_pods.pods[0])}, by {keys}", terminal)
    lines = [f"  +{number}  {_step(step)}" for number, step in enumerate(next_pods.steps, start=1)]
    lines.append("  by taints, node affinity and spread alone; each is assumed to go where there are fewest")
    return title + "".join(f"{line}\n" for line in lines)


def _step(step: Step) -> str:
    if not step.allowed:
        return "no node"
    return f"{words.names(step.allowed)} ({plural(step.nodes, 'node')}); assumed {words.safe(step.assumed)}"


def _answer(group: Placing | Waiting, terminal: Terminal, ranking: str = "") -> str:
    """Return the nodes where a pod may go, a line for each reason against others, and the limits of this answer.

    ``ranking`` is how the scheduler ranks the nodes that take it; "" if it is not computed.
    """
    lines = [f"may go to {_nodes(group.allowed)}", *([ranking] if ranking else [])]
    lines += [f"not to {_nodes(refusal.nodes)}: {words.safe(refusal.reason)}" for refusal in group.refused]
    if isinstance(group.unknown, list):
        lines += [f"not known: {words.safe(text)}" for text in group.unknown]
    lines.append("ports, volumes and other plugins are not looked at")
    return "".join(paragraph(line, "  ", terminal) for line in lines)


def _nodes(names: Sequence[str]) -> str:
    return f"{plural(len(names), 'node')} ({words.names(names)})" if names else "no node"
