"""The title of ``explain``: which object, and of which cluster."""

from __future__ import annotations

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.phrases import plural
from kubectl_spread.render import about, words
from kubectl_spread.render.terminal import Terminal, between_phrases, heading, paragraph


def title(found: Explanation, terminal: Terminal) -> str:
    """Return the name of the object and which cluster it is in."""
    text = heading(f"{words.workload(found.object)} in {words.safe(found.namespace)}", terminal)
    text += between_phrases(about.header(found.cluster, found.summary, found.constraints, scope=False), "  ", terminal)
    if not found.constraints:
        text += paragraph(_without_rows(found), "", terminal)
    if isinstance(found.unconstrained, list):
        text += paragraph(_defaults(len(found.unconstrained), found.summary.pods), "", terminal)
    return text


def _without_rows(found: Explanation) -> str:
    """Return how many pods and constraints there are, where no pod has any."""
    count = plural(found.summary.pods, "pod")
    nothing = "no spread constraint and no affinity term with keys"
    if found.summary.pods or not found.summary.templates:
        return f"{count}, {nothing}"
    spread = sum(isinstance(one.when_unsatisfiable, str) for one in found.templates)
    terms = len(found.templates) - spread
    has = [plural(spread, "spread constraint")] if spread else []
    has += [f"{plural(terms, 'affinity term')} with keys"] if terms else []
    return f"{count}; the template has {' and '.join(has) or nothing}"


def _defaults(number: int, pods: int) -> str:
    """Return that the scheduler's own constraints apply to so many of the pods."""
    which = "" if number == pods else f"{number} of {plural(pods, 'pod')}: "
    whose = "its" if number == pods else "their"
    return f"{which}no constraints of {whose} own: the scheduler's defaults apply (--defaults, --scheduler-config)"
