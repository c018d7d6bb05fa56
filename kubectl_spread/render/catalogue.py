"""Rules as text: one rule for ``explain CODE``, all of them for ``rules`` and for the page docs/rules.md."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kubectl_spread import policy
from kubectl_spread.phrases import sentence
from kubectl_spread.render.terminal import Column, Terminal, table
from kubectl_spread.rules.model import Rule


class Example(msgspec.Struct, frozen=True):
    """An object, what ``check`` prints about it, and the object after the patch of the finding.

    Attributes:
        options: The options of the check.
        object: The fields of the object that matter, as YAML.
        finding: The finding, with the rows of the table.
        patched: As ``object``; "" if the finding has no patch.
    """

    options: str
    object: str
    finding: str
    patched: str

    @property
    def command(self) -> str:
        """The command that prints the finding."""
        return f"kubectl spread check {self.options}".rstrip()


def rule(described: Rule, example: Example) -> str:
    """Return the page of one rule."""
    head = f"{described.code} {described.name} ({_severities(described)})\n{described.summary}\n"
    sections = (
        ("Why", described.why),
        *((f"As {severity}", case) for severity, case in described.cases),
        *([("Fix", fix)] if (fix := _fix(described)) else []),
        *([("Without a command or patch", described.no_remedy)] if described.no_remedy else []),
        *([("Prevent", f"{prevention} prints an admission policy.")] if (prevention := _prevention(described)) else []),
    )
    blocks = (
        ("Example", example.object),
        (f"$ {example.command}", example.finding),
        *([("After the patch", example.patched)] if example.patched else []),
        ("Source", described.source),
    )
    return head + "".join(
        f"\n{title}\n{textwrap.indent(text.rstrip(), '  ')}\n"
        for title, text in (*((title, _filled(text)) for title, text in sections), *blocks)
    )


def _fix(described: Rule) -> str:
    """Return the fix for any object; "" if it has values of one object, which the example shows."""
    return "" if "{" in described.general_fix else sentence(described.general_fix)


def _prevention(described: Rule) -> str:
    """Return the command that prints an admission policy with a rule; "" where a policy cannot have it."""
    return "kubectl spread policy" if described.code in policy.codes() else ""


def _filled(text: str) -> str:
    """Return text in short lines that do not break addresses."""
    return textwrap.fill(text, 78, break_long_words=False, break_on_hyphens=False)


def rules(catalogue: Sequence[Rule], terminal: Terminal) -> str:
    """Return the catalogue as a table."""
    columns = [Column("CODE"), Column("NAME"), Column("SEVERITY", fit="wrap"), Column("SUMMARY", fit="wrap", least=18)]
    return table(columns, [(rule.code, rule.name, _severities(rule), rule.summary) for rule in catalogue], terminal)


def _severities(described: Rule) -> str:
    """Return the severities that findings of a rule may have, the worst first."""
    return ", ".join(map(str, described.severities))


def page(catalogue: Sequence[Rule], examples: Mapping[str, Example]) -> str:
    """Return the catalogue as Markdown: docs/rules.md."""
    head = (
        "# Rules\n\nCodes never change and are never reused. `kubectl spread explain CODE` prints the same. Where new "
        "pods of a\ndeletion, a restart or a patch would find no node, the finding says so instead "
        "([tried before printed](explain.md#tried-before-printed)).\n\n"
    )
    lines = ["| code | name | severity | summary |", "|---|---|---|---|"]
    lines += [
        f"| [{rule.code}](#{rule.code.lower()}) | {rule.name} | {_severities(rule)} | {rule.summary} |"
        for rule in catalogue
    ]
    return head + "\n".join(lines) + "\n" + "".join(_section(rule, examples[rule.code]) for rule in catalogue)


def _section(described: Rule, example: Example) -> str:
    """Return the part of the page about one rule."""
    facts = (
        *(f"{str(severity).capitalize()}: {case}" for severity, case in described.cases),
        *([f"Fix: {fix}"] if (fix := _fix(described)) else []),
        *([f"Without a command or patch: {described.no_remedy}"] if described.no_remedy else []),
        *([f"Prevent: [`{prevention}`](policy.md)"] if (prevention := _prevention(described)) else []),
        f"Reads nodes: {'yes' if described.needs_nodes else 'no'}",
        f"Source: <{described.source}>",
    )
    return (
        f"\n## {described.code}\n\n**{described.name}** ({_severities(described)}): {described.summary}.\n\n"
        f"{described.why}\n\n" + "".join(f"- {fact}\n" for fact in facts) + "".join(_blocks(example))
    )


def _blocks(example: Example) -> Iterator[str]:
    yield f"\n```yaml\n{example.object}```\n"
    yield f"\n```\n$ {example.command}\n{example.finding}\n```\n"
    if example.patched:
        yield f"\nAfter the patch:\n\n```yaml\n{example.patched}```\n"
