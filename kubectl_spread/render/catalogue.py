"""Rules as text: one rule for ``explain CODE``, all of them for ``rules``."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from kubectl_spread.render.terminal import Column, Terminal, table
from kubectl_spread.rules.model import Rule


def rule(found: Rule) -> str:
    """Return the page of one rule."""
    sections = (
        ("Why", found.why),
        ("Message", found.message),
        (
            "Fix",
            found.fix.replace("{restart}", "restart the pods by their owner"),
        ),
        ("Source", found.source),
    )
    head = f"{found.code} {found.name} ({found.severity})\n{found.summary}\n"
    body = (f"\n{title}\n{textwrap.indent(_filled(text), '  ')}\n" for title, text in sections)
    return head + "".join(body)


def _filled(text: str) -> str:
    """Return text in short lines; an address stays whole."""
    return textwrap.fill(text, 78, break_long_words=False, break_on_hyphens=False)


def rules(found: Sequence[Rule], terminal: Terminal) -> str:
    """Return the catalogue as a table."""
    columns = [Column("CODE"), Column("NAME"), Column("SEVERITY"), Column("SUMMARY", shrink=True)]
    return table(columns, [(one.code, one.name, str(one.severity), one.summary) for one in found], terminal)
