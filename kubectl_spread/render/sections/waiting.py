"""What keeps the pending pods, in our words and in the scheduler's own."""

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


def waiting(found: Explanation, terminal: Terminal) -> str:
    """Return a block for the pending pods that are alike."""
    return "\n".join(_block(one, terminal) for one in found.waiting)


def _block(found: Waiting, terminal: Terminal) -> str:
    text = heading(f"{plural(len(found.pods), 'pending pod')}: {named(found.pods)}", terminal)
    if not isinstance(found.gates, UnsetType):
        gated = f"not looked at by the scheduler before its gates are removed: {named(found.gates)}"
        text += paragraph(gated, "  ", terminal)
    unknown = found.unknown if isinstance(found.unknown, list) else ()
    text += answer(found.allowed, found.refused, unknown, terminal)
    return text + _inert(found, terminal) + _said(found, terminal)


def _inert(found: Waiting, terminal: Terminal) -> str:
    if isinstance(found.inert, UnsetType):
        return ""
    text = "".join(paragraph(_told(one), "  ", terminal) for one in found.inert)
    return text if isinstance(found.gates, list) else text + paragraph(_NOT_RETRIED, "  ", terminal)


def _told(inert: Inert) -> str:
    path, key = words.short_path(inert.path), words.safe(inert.key)
    stored, label = words.value(inert.stored), words.value(inert.label)
    return f"{path} holds it back nowhere: {key} was {stored} and is {label} now, so it selects no pod"


def _said(found: Waiting, terminal: Terminal) -> str:
    said = found.event
    if isinstance(said, UnsetType):
        return _status(found, terminal)
    when = paragraph(f"the scheduler's own words, {_when(said)}", "  ", terminal)
    return when + paragraph(words.safe(said.message), "    ", terminal)


def _status(found: Waiting, terminal: Terminal) -> str:
    """Return what the pods' own status says, where no event was read."""
    told = found.condition
    if isinstance(told, UnsetType):
        return "" if isinstance(found.gates, list) else "  no FailedScheduling event was read\n"
    reason = f" ({words.safe(told.reason)})" if told.reason else ""
    since = "" if isinstance(told.since, UnsetType) else f", since {told.since}"
    about = f"no FailedScheduling event was read; the status of {words.safe(told.pod)} says PodScheduled=False{reason}"
    return paragraph(f"{about}{since}:", "  ", terminal) + paragraph(words.safe(told.message), "    ", terminal)


def _when(said: Said) -> str:
    times = "once" if said.count == 1 else f"{said.count} times"
    last = "" if isinstance(said.last, UnsetType) else f", last at {said.last}"
    return f"{times} about {words.safe(said.pod)}{last}:"
