"""The pods to evict so that a skew is within maxSkew again."""

from __future__ import annotations

from msgspec import UnsetType

from kubectl_spread.diagnosis.evictions import Evictions
from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.phrases import plural
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Terminal, heading, paragraph


def evictions(explanation: Explanation, terminal: Terminal) -> str:
    """Return a set of pods for each hard constraint above maxSkew, or the reason why there is none."""
    return "\n".join(_of_constraint(plan, terminal) for plan in explanation.evictions)


def _of_constraint(plan: Evictions, terminal: Terminal) -> str:
    title = heading(f"to bring {words.short_path(plan.path)} within maxSkew", terminal)
    if isinstance(plan.pods, UnsetType):
        return title + paragraph(words.safe(str(plan.reason)), "  ", terminal)
    text = f"evict {plural(len(plan.pods), 'pod')}: {' '.join(words.safe(name) for name in plan.pods)}"
    sure = (
        "their replacements can only go where the skew ends within maxSkew"
        if plan.sure
        else "other constraints decide too where replacements go, so the skew may end differently"
    )
    return title + paragraph(text, "  ", terminal) + paragraph(sure, "  ", terminal)
