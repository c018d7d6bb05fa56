"""The sections about each term, or a preview for a template without pods, and the owners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.explain.explanation import Explanation, TemplateTerm
from kubectl_spread.explain.uneven_rows import Owner, RowRollup, Share
from kubectl_spread.kube.api import labels
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.phrases import plural, sentence, value
from kubectl_spread.render import words
from kubectl_spread.render.document import AnswerSection, Instruction, Table
from kubectl_spread.render.figures import counts_cell
from kubectl_spread.render.terminal import Cell, Column
from kubectl_spread.report.model import Key, PodVerdict, Row

_REFUSES: Final = {
    "workload": "refuses the workload",
    "pods": "accepts the template, but refuses every pod of it",
}
_DEFAULT: Final = (
    "This is a default constraint of the scheduler, because the pods have none of their own.",
    "Its selector comes from the Services that select the pods and from their owner.",
)
_COLUMNS: Final = (Column("Pods", fit="middle", least=12), Column("Domains"), Column("Skew", "right"))
_Part = str | Instruction


def selectors(explanation: Explanation) -> Iterator[AnswerSection]:
    """Yield a section for each row: its selectors, their difference, and the verdicts on its pods."""
    rows = (
        (words.clause(row), [*_selectors(row), *_verdicts(row, explanation.pods)]) for row in explanation.constraints
    )
    yield from _once("Selectors of", rows)


def templates(explanation: Explanation) -> Iterator[AnswerSection]:
    """Yield a section for each term of a template."""
    yield from _once("Template,", (_template(term, explanation) for term in explanation.templates))


def _once(title: str, blocks: Iterable[tuple[str, list[_Part]]]) -> Iterator[AnswerSection]:
    """Yield equal parts once, with the names of all to which they belong."""
    of_parts: list[tuple[list[str], list[_Part]]] = []
    for name, parts in blocks:
        names = next((names for names, others in of_parts if others == parts), None)
        if names is None:
            of_parts.append(([name], parts))
        else:
            names.append(name)
    yield from (AnswerSection(f"{title} {'; '.join(names)}", parts) for names, parts in of_parts)


def _selectors(row: Row) -> list[_Part]:
    """Return a line for each distinct selector with the names of its forms, and the difference to the stored one."""
    own = row.selector
    if row.default is True:
        return [*_forms(effective=own.effective), *_DEFAULT]
    forms = _forms(authored=own.authored, merged=own.merged, stored=own.stored, effective=own.effective)
    return [*forms, *([Instruction("difference (- stored, + merged):", lines=row.diff)] if row.diff else [])]


def _forms(**selectors: LabelSelector | UnsetType | None) -> list[str]:
    """Return a line for each different selector, with the names of all its forms."""
    names: dict[str, list[str]] = {}
    for name, selector in selectors.items():
        if not isinstance(selector, UnsetType):
            names.setdefault(labels.describe(selector), []).append(name)
    return [f"{', '.join(equal)}: {selector}" for selector, equal in names.items()]


def _verdicts(row: Row, pods: Sequence[PodVerdict]) -> Iterator[str]:
    """Yield the number of pods with each verdict; then each key with another verdict than merged, and its pods."""
    yield from (f"verdict {verdict}: {plural(number, 'pod')}" for verdict, number in row.verdicts.items())
    pods_by_key: dict[str, list[str]] = {}
    for pod in pods:
        for key in pod.keys if pod.path == row.path and pod.verdict in row.verdicts else ():
            if key.verdict != "merged":
                pods_by_key.setdefault(_key(key), []).append(pod.name)
    yield from (f"{text} Pods: {words.names(names)}" for text, names in pods_by_key.items())


def _key(key: Key) -> str:
    """Return the values of a key and the verdict on it, then who changed the label, and the evidence."""
    stored = "nothing" if isinstance(key.stored, UnsetType) else value(key.stored)
    label = "absent" if isinstance(key.label, UnsetType) else value(key.label)
    sentences = [f"{key.key} stored {stored}, label {label}: {key.verdict} ({key.confidence})."]
    if not isinstance(key.changed_by, UnsetType):
        sentences.append(f"Changed by {key.changed_by.manager} before {key.changed_by.time}.")
    return " ".join([*sentences, *map(sentence, key.evidence)])


def _template(term: TemplateTerm, explanation: Explanation) -> tuple[str, list[_Part]]:
    name = words.clause(term) + (f", maxSkew {term.max_skew}" if isinstance(term.max_skew, int) else "")
    presumed = f"<value> stands for the value that the controller will set for {', '.join(term.presumed)}."
    lines = _forms(authored=term.selector.authored, merged=term.selector.merged)
    return name, [*lines, *([presumed] if term.presumed else []), _api_answer(term, explanation)]


def _api_answer(term: TemplateTerm, explanation: Explanation) -> str:
    """Return whether the API server allows a term, with its messages unless a finding has them."""
    if isinstance(term.refused, UnsetType):
        return "The API server allows this."
    reported = [finding.message for finding in explanation.findings]
    messages = [text for text in term.messages if not any(text in message for message in reported)]
    return f"The API server {_REFUSES[term.refused]}" + (f": {'; '.join(messages)}" if messages else ".")


def rollup(explanation: Explanation) -> Iterator[AnswerSection]:
    """Yield the owners of the pods if there are several, and a table for each row with pods of several of them.

    Pods of other workloads and terminating pods have a table, too.
    """
    owners = explanation.rollup.owners
    parts: list[str | Table] = [*(_owners(owners) if len(owners) > 1 else [])]
    for row in explanation.rollup.rows:
        # The domains show the counts of one revision already.
        extra = not isinstance(row.other_pods, UnsetType) or not isinstance(row.terminating, UnsetType)
        if extra or len(row.revisions) > 1:
            parts += [words.clause(explanation.constraints[row.row]), _table(row)]
    if parts:
        yield AnswerSection("Owners", parts)


def _owners(owners: Sequence[Owner]) -> list[str]:
    """Return a line for each chain of owners; the last owners of a chain share the line."""
    chains: dict[tuple[str, ...], list[Owner]] = {}
    for owner in owners:
        above = tuple(f"{higher.kind} {higher.name}" for higher in owner.above)
        chains.setdefault((*above, owner.kind), []).append(owner)
    return [
        " > ".join([*above, f"{kind} {', '.join(map(_link, links))}"])
        for (*above, kind), links in chains.items()
        if kind != "Pod"
    ]


def _link(owner: Owner) -> str:
    revision = f"revision {owner.revision}, " if isinstance(owner.revision, int) else ""
    return f"{owner.name} ({revision}{plural(owner.pods, 'pod')})"


def _table(row: RowRollup) -> Table:
    """Return the counts of each revision in the domains, and the skew if only these pods counted."""
    lines: list[tuple[str, Mapping[str, int], int | None]] = [
        (_share(share), share.counts, share.skew) for share in row.revisions
    ]
    if not isinstance(row.other_pods, UnsetType):
        lines.append(("of other workloads", row.other_pods, None))
    lines.append(("counted", row.counted, row.skew))
    if isinstance(row.terminating, dict) and isinstance(row.skew_with_terminating, int):
        with_terminating = {value: row.counted.get(value, 0) + row.terminating.get(value, 0) for value in row.counted}
        lines.append(("terminating", row.terminating, None))
        lines.append(("counted + terminating", with_terminating, row.skew_with_terminating))
    rows = [
        [
            Cell(name),
            counts_cell({value: counts.get(value, 0) for value in row.counted}),
            Cell("" if skew is None else str(skew)),
        ]
        for name, counts, skew in lines
    ]
    return Table("", _COLUMNS, rows)


def _share(share: Share) -> str:
    name = share.revision
    if isinstance(name, UnsetType):
        name = "pods" if isinstance(share.owner, UnsetType) else f"{share.owner.kind} {share.owner.name}"
    return f"revision {share.number} {name}" if isinstance(share.number, int) else name
