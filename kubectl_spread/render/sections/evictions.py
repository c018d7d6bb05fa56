"""Which pods to evict so that a skew is within maxSkew again."""

from __future__ import annotations

from msgspec import UnsetType

from kubectl_spread.diagnosis.evictions import Evictions
from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.phrases import plural
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Terminal, heading, paragraph


def evictions(found: Explanation, terminal: Terminal) -> str:
    """Return a set of pods for each hard constraint above maxSkew, or why there is none."""
    return "\n".join(_of_constraint(one, terminal) for one in found.evictions)


def _of_constraint(found: Evictions, terminal: Terminal) -> str:
    title = heading(f"to bring {words.short_path(found.path)} within maxSkew", terminal)
    if isinstance(found.pods, UnsetType):
        return title + paragraph(words.safe(str(found.reason)), "  ", terminal)
    text = f"evict {plural(len(found.pods), 'pod')}: {' '.join(words.safe(name) for name in found.pods)}"
    sure = (
        "their replacements can only go where the skew ends within maxSkew"
        if found.sure
        else "other constraints decide too where replacements go, so the skew may end differently"
    )
    return title + paragraph(text, "  ", terminal) + paragraph(sure, "  ", terminal)
