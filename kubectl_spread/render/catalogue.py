"""Rules as text: one rule for ``explain CODE``, all of them for ``rules`` and for the page docs/rules.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kubectl_spread import policy
from kubectl_spread.phrases import sentence
from kubectl_spread.render.document import AnswerSection, Document, Instruction
from kubectl_spread.render.terminal import Column, Terminal, table
from kubectl_spread.rules.model import Rule

_POLICY: Final = "kubectl spread policy"


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


def document(described: Rule, example: Example) -> Document:
    """Return the page of one rule."""
    title = f"{described.code} {described.name}"
    parts: list[tuple[str, str | Instruction]] = [
        ("Why", described.documentation.why),
        *_facts(described),
        ("Example", Instruction(lines=example.object.splitlines())),
        (f"$ {example.command}", Instruction(lines=example.finding.splitlines())),
        *([("After the patch", Instruction(lines=example.patched.splitlines()))] if example.patched else []),
        ("Source", Instruction(lines=[described.documentation.source])),
    ]
    return Document(
        command=f"explain {described.code}",
        title=title,
        cluster="",
        header=[f"{title} ({_severities(described)})"],
        headline=f"{described.summary}.",
        sections=[AnswerSection(name, [part]) for name, part in parts],
    )


def _facts(described: Rule) -> Iterator[tuple[str, str]]:
    """Yield the names of what is known about findings of a rule, and the texts."""
    yield from ((f"As {severity}", case) for severity, case in described.documentation.cases.items())
    # A fix with values of one object is in the example.
    if "{" not in described.general_fix:
        yield "Fix", sentence(described.general_fix)
    if no_remedy := described.documentation.no_remedy:
        yield "Without a command or patch", no_remedy
    if described.code in policy.codes():
        yield "Prevent", f"{_POLICY} prints an admission policy."


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
        *(f"{name}: {text.replace(_POLICY, f'[`{_POLICY}`](policy.md)')}" for name, text in _facts(described)),
        f"Reads nodes: {'yes' if described.needs_nodes else 'no'}",
        f"Source: <{described.documentation.source}>",
    )
    return (
        f"\n## {described.code}\n\n**{described.name}** ({_severities(described)}): {described.summary}.\n\n"
        f"{described.documentation.why}\n\n" + "".join(f"- {fact}\n" for fact in facts) + "".join(_blocks(example))
    )


def _blocks(example: Example) -> Iterator[str]:
    yield f"\n```yaml\n{example.object}```\n"
    yield f"\n```\n$ {example.command}\n{example.finding}\n```\n"
    if example.patched:
        yield f"\nAfter the patch:\n\n```yaml\n{example.patched}```\n"
