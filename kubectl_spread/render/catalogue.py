"""Rules as text: one rule for ``explain CODE``, all of them for ``rules`` and for the page docs/rules.md."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from kubectl_spread.render.terminal import Column, Terminal, table
from kubectl_spread.rules.model import Rule


def rule(described: Rule) -> str:
    """Return the page of one rule."""
    sections = (
        ("Why", described.why),
        ("Message", described.message),
        *((f"As {severity}", case) for severity, case in described.cases),
        ("Fix", described.general_fix),
        *([("Nothing to type", described.no_remedy)] if described.no_remedy else []),
        ("Source", described.source),
    )
    head = f"{described.code} {described.name} ({described.severity})\n{described.summary}\n"
    body = (f"\n{title}\n{textwrap.indent(_filled(text), '  ')}\n" for title, text in sections)
    return head + "".join(body)


def _filled(text: str) -> str:
    """Return text in short lines that do not break addresses."""
    return textwrap.fill(text, 78, break_long_words=False, break_on_hyphens=False)


def rules(catalogue: Sequence[Rule], terminal: Terminal) -> str:
    """Return the catalogue as a table."""
    columns = [Column("CODE"), Column("NAME"), Column("SEVERITY"), Column("SUMMARY", fit="wrap", least=18)]
    return table(columns, [(rule.code, rule.name, str(rule.severity), rule.summary) for rule in catalogue], terminal)


def page(catalogue: Sequence[Rule]) -> str:
    """Return the catalogue as Markdown: docs/rules.md."""
    head = "# Rules\n\nCodes never change and are never reused. `kubectl spread explain CODE` prints the same.\n\n"
    lines = ["| code | name | severity | summary |", "|---|---|---|---|"]
    lines += [
        f"| [{rule.code}](#{rule.code.lower()}) | {rule.name} | {rule.severity} | {rule.summary} |"
        for rule in catalogue
    ]
    return head + "\n".join(lines) + "\n" + "".join(_section(rule) for rule in catalogue)


def _section(rule: Rule) -> str:
    return (
        f"\n## {rule.code}\n\n**{rule.name}** ({rule.severity}): {rule.summary}.\n\n{rule.why}\n\n"
        f"- Message: `{rule.message}`\n- Fix: {rule.general_fix}\n"
        + "".join(f"- {str(severity).capitalize()}: {case}\n" for severity, case in rule.cases)
        + (f"- Nothing to type: {rule.no_remedy}\n" if rule.no_remedy else "")
        + f"- Asks about nodes: {'yes' if rule.needs_nodes else 'no'}\n- Source: <{rule.source}>\n"
    )
