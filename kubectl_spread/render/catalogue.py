"""Rules as text: one rule for ``explain CODE``, all of them for ``rules``, and the page docs/rules.md."""

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
        ("Fix", found.general_fix),
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
    columns = [Column("CODE"), Column("NAME"), Column("SEVERITY"), Column("SUMMARY", fit="wrap", least=18)]
    return table(columns, [(one.code, one.name, str(one.severity), one.summary) for one in found], terminal)


def page(found: Sequence[Rule]) -> str:
    """Return the catalogue as Markdown: docs/rules.md."""
    head = "# Rules\n\nCodes never change and are never reused. `kubectl spread explain CODE` prints the same.\n\n"
    lines = ["| code | name | severity | summary |", "|---|---|---|---|"]
    lines += [f"| [{one.code}](#{one.code.lower()}) | {one.name} | {one.severity} | {one.summary} |" for one in found]
    return head + "\n".join(lines) + "\n" + "".join(_section(one) for one in found)


def _section(found: Rule) -> str:
    return (
        f"\n## {found.code}\n\n**{found.name}** ({found.severity}): {found.summary}.\n\n{found.why}\n\n"
        f"- Message: `{found.message}`\n- Fix: {found.general_fix}\n"
        f"- Asks about nodes: {'yes' if found.needs_nodes else 'no'}\n- Source: <{found.source}>\n"
    )
