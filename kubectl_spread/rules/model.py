"""The form of a rule: texts for people, and one check that yields evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.rule_input import InputPart, RuleInput, TermVariant

Values: TypeAlias = dict[str, str | int]


class Evidence(msgspec.Struct, frozen=True):
    """The result of a check: pods, values for the message, and severity and fix where they are not the rule's own."""

    pods: tuple[str, ...]
    values: Mapping[str, str | int] = msgspec.field(default_factory=dict)
    severity: Severity | None = None
    fix: str | None = None


Check: TypeAlias = Callable[[RuleInput], Iterator[Evidence]]


class Rule(msgspec.Struct, frozen=True):
    """A rule, with all texts that output, catalogue and documentation print about it.

    ``message`` and ``fix`` are templates of the evidence's values; ``fix`` may also use ``restart``, the safe way to
    replace the pods of the workload. ``needs_nodes`` tells whether the check needs to know where pods are or may go.
    ``of`` has the parts of an input that the check needs: it runs on inputs with at least one of them.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    message: str
    why: str
    fix: str
    source: str
    needs_nodes: bool
    check: Check
    of: frozenset[InputPart] = frozenset((InputPart.TEMPLATE, InputPart.PODS))

    @property
    def general_fix(self) -> str:
        """The fix, whatever the workload."""
        return self.fix.replace("{restart}", "restart the workload")


def literal(text: str) -> str:
    """Return text with the braces of a template escaped."""
    return text.replace("{", "{{").replace("}", "}}")


def together(pairs: Iterable[tuple[TermVariant, Values]], severity: Severity | None = None) -> Iterator[Evidence]:
    """Yield one piece of evidence, if there is any variant: the pods of all of them, with the values of the first."""
    pairs = list(pairs)
    if pairs:
        names = sorted({pod.name for variant, _ in pairs for pod in variant.pods})
        yield Evidence(tuple(names), pairs[0][1], severity)
