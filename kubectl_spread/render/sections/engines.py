"""The counts of other engines: the descheduler and Karpenter."""

from __future__ import annotations

from typing import Final

from msgspec import UnsetType

from kubectl_spread.explain.engines import OtherCount
from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.phrases import sentence
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Terminal, heading, paragraph

_LISTED_DOMAINS: Final = 8


def engines(explanation: Explanation, terminal: Terminal) -> str:
    """Return a line for each engine and constraint, and the rules by which the engine differs from kube-scheduler.

    An engine that counts as the scheduler does, and would not evict pods, has no line.
    """
    texts: dict[tuple[str, ...], list[str]] = {}
    for count in explanation.other_engines:
        if not (count.differences or count.violated is True):
            continue
        place = words.short_path(count.path)
        texts.setdefault((count.engine, *_lines(count)), []).append(place)
    text = ""
    for (engine, first, *more), places in texts.items():
        text += paragraph(f"{engine}, {', '.join(dict.fromkeys(places))}: {first}", "  ", terminal)
        text += "".join(paragraph(line, "    ", terminal) for line in more)
    return f"{heading('Other engines', terminal)}{text}" if text else ""


def _lines(count: OtherCount) -> list[str]:
    return [_figures(count), *(sentence(difference.clause) for difference in count.differences)]


def _figures(count: OtherCount) -> str:
    if isinstance(count.domains, UnsetType):
        return "no number is computed."
    counts = [f"{words.value(domain)}={number}" for domain, number in list(count.domains.items())[:_LISTED_DOMAINS]]
    more = f" and {len(count.domains) - _LISTED_DOMAINS} more" if len(count.domains) > _LISTED_DOMAINS else ""
    eviction = "It would evict pods." if count.violated else "It would not evict pods."
    return f"{' '.join(counts) or 'no domain'}{more}, skew {count.skew}. {eviction}"
