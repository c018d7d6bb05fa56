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
            found.fix.format(restart="restart the pods by their owner") if found.fix == "{restart}" else found.fix,
        ),
        ("Source", found.source),
    )
    head = f"{found.code} {found.name} ({found.severity})\n{found.summary}\n"
    body = (f"\n{title}\n{textwrap.indent(textwrap.fill(text, 78), '  ')}\n" for title, text in sections)
    return head + "".join(body)


def rules(found: Sequence[Rule], terminal: Terminal) -> str:
    """Return the catalogue as a table."""
    columns = [Column("CODE"), Column("NAME"), Column("SEVERITY"), Column("SUMMARY", shrink=True)]
    return table(columns, [(one.code, one.name, str(one.severity), one.summary) for one in found], terminal)
