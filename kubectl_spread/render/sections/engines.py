"""How other engines see the same constraints."""

from __future__ import annotations

from msgspec import UnsetType

from kubectl_spread.explain.engines import OtherCount
from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Terminal, heading, paragraph

_NAMED = 8


def engines(found: Explanation, terminal: Terminal) -> str:
    """Return a line for each engine and constraint, and below it the rules that make it differ."""
    if not found.other_engines:
        return ""
    return heading("other engines", terminal) + "".join(_of_engine(one, terminal) for one in found.other_engines)


def _of_engine(found: OtherCount, terminal: Terminal) -> str:
    text = paragraph(f"{found.engine}, {words.short_path(found.path)}: {_answer(found)}", "  ", terminal)
    return text + "".join(paragraph(f"- {one.clause}", "    ", terminal) for one in found.differences)


def _answer(found: OtherCount) -> str:
    if isinstance(found.domains, UnsetType):
        return "no number from here"
    shown = [f"{words.value(domain)}={number}" for domain, number in list(found.domains.items())[:_NAMED]]
    more = f" and {len(found.domains) - _NAMED} more" if len(found.domains) > _NAMED else ""
    same = "" if found.differences else ", the same count"
    judged = "would evict" if found.violated else "leaves it"
    return f"{' '.join(shown) or 'no domain'}{more}: skew {found.skew}, {judged}{same}"
