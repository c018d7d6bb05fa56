"""The sections about each term, or a preview for a template without pods, and the owners."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.explain.explanation import Explanation, TemplateTerm
from kubectl_spread.explain.rollup import Owner, RowRollup, Share
from kubectl_spread.kube.api import labels
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.phrases import plural, sentence
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Column, Terminal, heading, paragraph, table
from kubectl_spread.report.model import Key, PodVerdict, Row

_REFUSES: Final = {
    "workload": "refuses the workload",
    "pods": "accepts the template, but refuses every pod of it",
}


def selectors(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each row: its selectors, their difference, and the verdicts on its pods."""
    return _once(_term(row, explanation, terminal) for row in explanation.constraints)


def _once(blocks: Iterable[tuple[str, str]]) -> str:
    """Return each different text once, below all its headings."""
    headings_by_text: dict[str, str] = {}
    for title, text in blocks:
        headings_by_text[text] = headings_by_text.get(text, "") + title
    return "\n".join(titles + text for text, titles in headings_by_text.items())


def _term(row: Row, explanation: Explanation, terminal: Terminal) -> tuple[str, str]:
    lines = (*_selectors(row), *_verdicts(row, explanation.pods))
    return heading(f"Selectors of {words.clause(row)}", terminal), "".join(f"{line}\n" for line in lines)


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


_COLUMNS: Final = 6
"""The most domains that get a column each."""
_INDENT: Final = "  "


def rollup(explanation: Explanation, terminal: Terminal) -> str:
    """Return the owners of the pods if there are several, and a table for each row with pods of several of them.

    Pods of other workloads and terminating pods have a table, too.
    """
    owners = explanation.rollup.owners
    lines = _owners(owners) if len(owners) > 1 else []
    text = "".join(paragraph(line, _INDENT, terminal) for line in lines)
    for row in explanation.rollup.rows:
        # The domains show the counts of one revision already.
        extra = not isinstance(row.other_pods, UnsetType) or not isinstance(row.terminating, UnsetType)
        if extra or len(row.revisions) > 1:
            text += paragraph(words.clause(explanation.constraints[row.row]), _INDENT, terminal) + _table(row, terminal)
    return f"{heading('Owners', terminal)}{text}" if text else ""


def _owners(owners: Sequence[Owner]) -> list[str]:
    """Return a line for each chain of owners; the last owners of a chain share the line."""
    chains: dict[tuple[str, ...], list[Owner]] = {}
    for owner in owners:
        above = tuple(f"{higher.kind} {higher.name}" for higher in owner.above)
        chains.setdefault((*above, owner.kind), []).append(owner)
    return [
        " > ".join([*(words.safe(higher) for higher in above), f"{words.safe(kind)} {', '.join(map(_link, links))}"])
        for (*above, kind), links in chains.items()
        if kind != "Pod"
    ]


def _link(owner: Owner) -> str:
    revision = f"revision {owner.revision}, " if isinstance(owner.revision, int) else ""
    return f"{words.safe(owner.name)} ({revision}{plural(owner.pods, 'pod')})"


def _table(row: RowRollup, terminal: Terminal) -> str:
    lines: list[tuple[str, Mapping[str, int], int | None]] = [
        (_share(share), share.counts, share.skew) for share in row.revisions
    ]
    if not isinstance(row.other_pods, UnsetType):
        lines.append(("pods of other workloads", row.other_pods, None))
    lines.append(("counted", row.counted, row.skew))
    if isinstance(row.terminating, dict) and isinstance(row.skew_with_terminating, int):
        with_terminating = {value: row.counted.get(value, 0) + row.terminating.get(value, 0) for value in row.counted}
        lines.append(("terminating", row.terminating, None))
        lines.append(("counted + terminating", with_terminating, row.skew_with_terminating))
    values = list(row.counted)
    has_columns = len(values) <= _COLUMNS
    columns = [
        Column("", fit="middle", least=12),
        *([Column(words.value(value), "right") for value in values] if has_columns else [Column("DOMAINS")]),
        Column("SKEW", "right"),
    ]
    cells = [
        [
            f"{_INDENT * 2}{name}",
            *([str(counts.get(value, 0)) for value in values] if has_columns else [_range(counts, values)]),
            "" if skew is None else str(skew),
        ]
        for name, counts, skew in lines
    ]
    return table(columns, cells, terminal)


def _share(share: Share) -> str:
    name = share.revision
    if isinstance(name, UnsetType):
        name = "pods" if isinstance(share.owner, UnsetType) else f"{share.owner.kind} {share.owner.name}"
    number = f"revision {share.number} " if isinstance(share.number, int) else ""
    return words.safe(f"{number}{name}")


def _range(counts: Mapping[str, int], values: Sequence[str]) -> str:
    numbers = [counts.get(value, 0) for value in values]
    return f"{len(values)} ({min(numbers)}..{max(numbers)})"
