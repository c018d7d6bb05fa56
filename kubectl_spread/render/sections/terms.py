"""The sections about each term: selectors and verdicts, or a preview for a template without pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.explain.template_preview import TemplateTerm
from kubectl_spread.kube.api import labels
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.phrases import plural, sentence
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Terminal, heading, paragraph
from kubectl_spread.report.model import Key, PodVerdict, Row

_REFUSES: Final = {
    "workload": "refuses the workload",
    "pods": "accepts the template, but refuses every pod of it",
}


def selectors(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each row: its selectors, their difference, and the verdicts on its pods."""
    return _once(_row(row, explanation, terminal) for row in explanation.constraints)


def _once(blocks: Iterable[tuple[str, str]]) -> str:
    """Return each different text once, below all its headings."""
    headings_by_text: dict[str, str] = {}
    for title, text in blocks:
        headings_by_text[text] = headings_by_text.get(text, "") + title
    return "\n".join(titles + text for text, titles in headings_by_text.items())


def _row(row: Row, explanation: Explanation, terminal: Terminal) -> tuple[str, str]:
    place = f"{words.short_path(row.path)}: {words.topology(row.topology_key)} {words.policy(row)}"
    lines = (*_selectors(row), *_verdicts(row, explanation.pods))
    return heading(f"Selectors of {place}", terminal), "".join(f"{line}\n" for line in lines)


def _selectors(row: Row) -> list[str]:
    """Return a line for each distinct selector with the names of its forms, and the difference to the stored one."""
    if row.default is True:
        deduced = words.safe(labels.describe(row.selector.effective))
        return [
            f"  effective: {deduced}",
            "  This is a default constraint of the scheduler, because the pods have none of their own.",
            "  Its selector comes from the Services that select the pods and from their owner.",
        ]
    own = row.selector
    lines = [
        f"  {line}"
        for line in _forms(authored=own.authored, merged=own.merged, stored=own.stored, effective=own.effective)
    ]
    if isinstance(row.diff, list) and row.diff:
        lines.append("  difference (- stored, + merged):")
        lines += [f"    {words.safe(line)}" for line in row.diff]
    return lines


def _forms(**selectors: LabelSelector | UnsetType | None) -> list[str]:
    """Return a line for each different selector, with the names of all its forms."""
    names: dict[str, list[str]] = {}
    for name, selector in selectors.items():
        if not isinstance(selector, UnsetType):
            names.setdefault(words.safe(labels.describe(selector)), []).append(name)
    return [f"{', '.join(equal)}: {selector}" for selector, equal in names.items()]


def _verdicts(row: Row, pods: Sequence[PodVerdict]) -> list[str]:
    """Return the number of pods with each verdict; then each key with another verdict than merged, and its pods."""
    lines = [f"  verdict {verdict}: {plural(number, 'pod')}" for verdict, number in row.verdicts.items()]
    pods_by_key: dict[tuple[str, ...], list[str]] = {}
    for pod in pods:
        if pod.path == row.path and pod.verdict in row.verdicts:
            for key in pod.keys:
                if key.verdict != "merged":
                    pods_by_key.setdefault(_key(key), []).append(pod.name)
    for (first, *more), names in pods_by_key.items():
        lines += [f"    {first}", *(f"      {line}" for line in more), f"      Pods: {words.names(names)}"]
    return lines


def _key(key: Key) -> tuple[str, ...]:
    """Return the values of a key and the verdict on it, then who changed the label, and the evidence."""
    stored = "nothing" if isinstance(key.stored, UnsetType) else words.value(key.stored)
    label = "absent" if isinstance(key.label, UnsetType) else words.value(key.label)
    lines = [f"{words.safe(key.key)} stored {stored}, label {label}: {key.verdict} ({key.confidence})"]
    if not isinstance(key.changed_by, UnsetType):
        changed = key.changed_by
        lines.append(f"Changed by {words.safe(changed.manager)} before {changed.time}.")
    return (*lines, *(sentence(words.safe(evidence)) for evidence in key.evidence))


def templates(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each term of a template."""
    return _once(_template(term, explanation, terminal) for term in explanation.templates)


def _template(term: TemplateTerm, explanation: Explanation, terminal: Terminal) -> tuple[str, str]:
    requirement = words.requirement(words.topology(term.topology_key), term.path, term.when_unsatisfiable)
    title = f"Template, {words.short_path(term.path)}: {requirement}"
    if isinstance(term.max_skew, int):
        title += f", maxSkew {term.max_skew}"
    lines = _forms(authored=term.selector.authored, merged=term.selector.merged)
    if term.presumed:
        keys = ", ".join(words.safe(key) for key in term.presumed)
        lines.append(f"<value> stands for the value that the controller will set for {keys}.")
    lines.append(_api_answer(term, explanation))
    return heading(title, terminal), "".join(paragraph(line, "  ", terminal) for line in lines)


def _api_answer(term: TemplateTerm, explanation: Explanation) -> str:
    """Return whether the API server allows a term, with its messages unless a finding has them."""
    if isinstance(term.refused, UnsetType):
        return "The API server allows this."
    reported = [finding.message for finding in explanation.findings]
    messages = [text for text in term.messages if not any(text in message for message in reported)]
    return f"The API server {_REFUSES[term.refused]}" + (f": {words.safe('; '.join(messages))}" if messages else ".")
