"""Where one more pod of each group may go."""

from __future__ import annotations

from msgspec import UnsetType

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.explain.placing import Placing
from kubectl_spread.render import words
from kubectl_spread.render.sections.names import answer
from kubectl_spread.render.terminal import Terminal, heading


def placing(found: Explanation, terminal: Terminal) -> str:
    """Return a block for each group of which no pod waits already; what waits has a section of its own."""
    if isinstance(found.placing, UnsetType):
        return ""
    told = {name for waiting in found.waiting for name in waiting.pods}
    return "\n".join(_group(one, terminal) for one in found.placing if told.isdisjoint(one.pods))


def _group(found: Placing, terminal: Terminal) -> str:
    title = heading(f"next pod like {words.safe(found.pods[0])}", terminal)
    unknown = found.unknown if isinstance(found.unknown, list) else ()
    return f"{title}{answer(found.allowed, found.refused, unknown, terminal)}"
