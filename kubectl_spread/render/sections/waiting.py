"""The reasons why pods are pending, from our simulation and from the scheduler's events."""

from __future__ import annotations

from typing import Final

from msgspec import UnsetType

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.explain.waiting import Inert, Said, Waiting
from kubectl_spread.phrases import plural
from kubectl_spread.render import words
from kubectl_spread.render.sections.names import answer, named
from kubectl_spread.render.terminal import Terminal, heading, paragraph

_NOT_RETRIED: Final = (
    "a pod that was refused before its label was changed is not retried for that: the scheduler looks again after an "
    "event of a node, or when it flushes what waits for more than 5 minutes; until then the pod's event keeps its old "
    "text"
)


def waiting(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each group of pending pods that are alike."""
    return "\n".join(_block(group, terminal) for group in explanation.waiting)


def _block(group: Waiting, terminal: Terminal) -> str:
    text = heading(f"{plural(len(group.pods), 'pending pod')}: {named(group.pods)}", terminal)
    if not isinstance(group.gates, UnsetType):
        gated = f"not looked at by the scheduler before its gates are removed: {named(group.gates)}"
        text += paragraph(gated, "  ", terminal)
    unknown = group.unknown if isinstance(group.unknown, list) else ()
    text += answer(group.allowed, group.refused, unknown, terminal)
    return text + _inert(group, terminal) + _event(group, terminal)


def _inert(group: Waiting, terminal: Terminal) -> str:
    if isinstance(group.inert, UnsetType):
        return ""
    text = "".join(paragraph(_inert_text(inert), "  ", terminal) for inert in group.inert)
    return text if isinstance(group.gates, list) else text + paragraph(_NOT_RETRIED, "  ", terminal)


def _inert_text(inert: Inert) -> str:
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


def _when(event: Said) -> str:
    times = "once" if event.count == 1 else f"{event.count} times"
    last = "" if isinstance(event.last, UnsetType) else f", last at {event.last}"
    return f"{times} about {words.safe(event.pod)}{last}:"
