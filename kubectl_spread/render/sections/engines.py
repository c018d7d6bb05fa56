"""The counts of other engines for the same constraints."""

from __future__ import annotations

from msgspec import UnsetType

from kubectl_spread.explain.engines import OtherCount
from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Terminal, heading, paragraph

_NAMED = 8


def engines(explanation: Explanation, terminal: Terminal) -> str:
    """Return a line for each engine and constraint, and the rules by which they differ from kube-scheduler."""
    if not explanation.other_engines:
        return ""
    return heading("other engines", terminal) + "".join(
        _of_engine(count, terminal) for count in explanation.other_engines
    )


def _of_engine(count: OtherCount, terminal: Terminal) -> str:
    text = paragraph(f"{count.engine}, {words.short_path(count.path)}: {_answer(count)}", "  ", terminal)
    return text + "".join(paragraph(f"- {difference.clause}", "    ", terminal) for difference in count.differences)


def _answer(count: OtherCount) -> str:
    if isinstance(count.domains, UnsetType):
        return "no number from here"
    listed = [f"{words.value(domain)}={number}" for domain, number in list(count.domains.items())[:_NAMED]]
    more = f" and {len(count.domains) - _NAMED} more" if len(count.domains) > _NAMED else ""
    same = "" if count.differences else ", the same count"
    judged = "would evict" if count.violated else "leaves it"
    return f"{' '.join(listed) or 'no domain'}{more}: skew {count.skew}, {judged}{same}"
