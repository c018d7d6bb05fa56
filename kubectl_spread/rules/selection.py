"""Selections: which rules run, and whose findings are silenced?"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubectl_spread.phrases import did_you_mean
from kubectl_spread.report.model import Severity
from kubectl_spread.rules.inputs import InputPart
from kubectl_spread.rules.model import Rule


class Selection(msgspec.Struct, frozen=True):
    """The rules to run and to silence, by code, prefix of a code or name; an empty ``select`` runs all.

    Findings below the severity ``least`` are silenced too.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    least: Severity = Severity.INFO

    def selected(self, rules: Iterable[Rule]) -> tuple[Rule, ...]:
        """Return the rules to run."""
        return tuple(rule for rule in rules if not self.select or named(rule, self.select))


class SelectedRules:
    """The rules of a selection, which one audit or many run.

    Attributes:
        selection: The selection.
        rules: Its rules.
        compare: Whether all rules about another Kubernetes are among them.
    """

    def __init__(self, rules: Iterable[Rule], selection: Selection) -> None:
        """Select from ``rules``."""
        self.selection = selection
        rules = tuple(rules)
        self.rules = selection.selected(rules)
        self.compare = all(rule in self.rules for rule in rules if rule.compares)
        # Without it the comparison of flags takes a twentieth of a check of many workloads.
        self._by_parts: dict[InputPart, tuple[Rule, ...]] = {}

    def reading(self, parts: InputPart) -> tuple[Rule, ...]:
        """Return the rules that read any of the parts of an input."""
        if parts not in self._by_parts:
            self._by_parts[parts] = tuple(rule for rule in self.rules if rule.parts & parts)
        return self._by_parts[parts]


def named(rule: Rule, words: Iterable[str]) -> bool:
    """Tell whether one of the words is a rule's code, a prefix of it, or its name, in any letter case."""
    return any(rule.code.startswith(word.upper()) or rule.name == word.lower() for word in words)


def unknown(word: str, rules: Iterable[Rule]) -> str:
    """Return the error about a word that names no rule; no code is suggested, because many are equally near."""
    nearest = did_you_mean(word, (rule.name for rule in rules))
    return f'no rule has the code or name "{word}"{nearest or " (kubectl spread rules lists them)"}'
