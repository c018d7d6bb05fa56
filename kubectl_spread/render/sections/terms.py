"""The sections about each term: selectors, verdicts and domains, or a preview for a template without pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.explain.template_preview import TemplateTerm
from kubectl_spread.kube.api import labels
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.phrases import plural
from kubectl_spread.render import bars, words
from kubectl_spread.render.terminal import Terminal, hanging, heading, paragraph
from kubectl_spread.report.model import Domain, Key, PodVerdict, Row

_REFUSES: Final = {
    "workload": "refuses the workload",
    "pods": "takes the template, and refuses every pod of it",
}


def domains(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each row whose pods are counted, and the legend of the bars."""
    counted = [row for row in explanation.constraints if not isinstance(row.domains, UnsetType)]
    text = "\n".join(_block(row, _counts(row, terminal), terminal) for row in counted)
    if any(row.domains for row in counted):
        text += "\n" + hanging(f"bars: {bars.legend(ascii_only=terminal.ascii)}", "  ", terminal)
    return text


def selectors(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each row: its selectors, their difference, and the verdicts on its pods."""
    blocks = ((row, _selectors(row) + _verdicts(row, explanation.pods)) for row in explanation.constraints)
    return "\n".join(_block(row, lines, terminal) for row, lines in blocks)


def _block(row: Row, lines: Sequence[str], terminal: Terminal) -> str:
    title = f"{words.safe(row.path)}  {words.term(row)}"
    if isinstance(row.max_skew, int):
        title += f"  maxSkew {row.max_skew}"
    pods = f"  {plural(row.pod_count, 'pod')}" + (f", {row.pending} pending" if row.pending else "")
    return heading(title, terminal) + "".join(f"{line}\n" for line in (pods, *lines))


def _selectors(row: Row) -> list[str]:
    """Return a line for each distinct selector with the names of its forms, and the difference to the stored one."""
    if row.default is True:
        deduced = words.safe(labels.describe(row.selector.effective))
        return [
            "  the scheduler's default, as the pods have no topologySpreadConstraints",
            f"  selector: {deduced}",
            "            deduced from the Services that select the pods and from their owner",
        ]
    selector_forms: list[tuple[str, LabelSelector | UnsetType | None]] = [
        ("authored", row.selector.authored),
        ("merged", row.selector.merged),
        ("stored", row.selector.stored),
        ("effective", row.selector.effective),
    ]
    names: dict[str, list[str]] = {}
    for name, selector in selector_forms:
        if not isinstance(selector, UnsetType):
            names.setdefault(words.safe(labels.describe(selector)), []).append(name)
    lines = [f"  {', '.join(equal)}: {selector}" for selector, equal in names.items()]
    if isinstance(row.diff, list) and row.diff:
        lines.append("  difference (- stored, + merged)")
        lines += [f"    {words.safe(line)}" for line in row.diff]
    return lines


def _verdicts(row: Row, pods: Sequence[PodVerdict]) -> list[str]:
    lines = [f"  verdict {verdict}: {plural(number, 'pod')}" for verdict, number in row.verdicts.items()]
    pods_by_key: dict[str, list[str]] = {}
    for pod in pods:
        if pod.path == row.path and pod.verdict in row.verdicts:
            for key in pod.keys:
                if key.verdict != "merged":
                    pods_by_key.setdefault(_key(key), []).append(pod.name)
    for text, names in pods_by_key.items():
        lines += [f"    {text}", f"      {words.names(names)}"]
    return lines


def _key(key: Key) -> str:
    stored = "nothing" if isinstance(key.stored, UnsetType) else words.value(key.stored)
    label = "absent" if isinstance(key.label, UnsetType) else words.value(key.label)
    text = f"{words.safe(key.key)} stored {stored}, label {label}: {key.verdict} ({key.confidence})"
    if not isinstance(key.changed_by, UnsetType):
        changed = key.changed_by
        text += f", written by {words.safe(changed.manager)} at or before {changed.time}"
    return "; ".join([text, *(words.safe(evidence) for evidence in key.evidence)])


def _counts(row: Row, terminal: Terminal) -> list[str]:
    if isinstance(row.domains, UnsetType):
        return []
    if not row.domains:
        return ["  no eligible domain: no node that counts has the topology key"]
    widest = max(len(words.value(domain.value)) for domain in row.domains)
    most = max(domain.match_num for domain in row.domains)
    drawn = [bars.lengthwise(domain.match_num, row, most, ascii_only=terminal.ascii) for domain in row.domains]
    longest = max(map(len, drawn))
    lines = [_domain(domain, row, widest, f"{bar:<{longest}}") for domain, bar in zip(row.domains, drawn, strict=True)]
    if isinstance(row.empty_domains, int):
        lines.append(f"  and {row.empty_domains} domains without matching pods")
    bound = "at least " if row.lower_bound is True else ""
    lines.append(f"  skew {bound}{row.skew}: the fullest domain above minMatchNum {row.min_match_num}")
    return lines


def _domain(domain: Domain, row: Row, widest: int, bar: str) -> str:
    text = f"  {words.value(domain.value):<{widest}}  {plural(domain.nodes, 'node'):>9}  {domain.match_num:>5} {bar}"
    return f"{text}  {_formula(domain, row)}".rstrip()


def _formula(domain: Domain, row: Row) -> str:
    """Return the comparison in Filter for one more pod: matchNum + selfMatchNum - minMatchNum against maxSkew."""
    numbers = (row.self_match_num, row.min_match_num, row.max_skew)
    if isinstance(row.next, UnsetType) or not all(isinstance(number, int) for number in numbers):
        return ""
    own, least, most = (number for number in numbers if isinstance(number, int))
    skew = domain.skew + own
    if row.when_unsatisfiable != "DoNotSchedule":
        return f"{domain.match_num} + {own} - {least} = {skew}, preferred <= {most}"
    sign, answer = (">", "blocked") if skew > most else ("<=", "allowed")
    return f"{domain.match_num} + {own} - {least} = {skew} {sign} {most} {answer}"


def templates(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each term of a template."""
    return "\n".join(_template(term, terminal) for term in explanation.templates)


def _template(term: TemplateTerm, terminal: Terminal) -> str:
    title = f"{words.safe(term.path)}  {words.requirement(term.topology_key, term.path, term.when_unsatisfiable)}"
    if isinstance(term.max_skew, int):
        title += f"  maxSkew {term.max_skew}"
    lines = [
        f"{'authored':<10} {words.safe(labels.describe(term.selector.authored))}",
        f"{'merged':<10} {words.safe(labels.describe(term.selector.merged))}",
    ]
    if term.presumed:
        keys = ", ".join(words.safe(key) for key in term.presumed)
        lines.append(f"{'<value>':<10} what the controller will set as {keys}")
    lines.append(f"{'API':<10} {_api_answer(term)}")
    return heading(title, terminal) + "".join(paragraph(line, "  ", terminal) for line in lines)


def _api_answer(term: TemplateTerm) -> str:
    if isinstance(term.refused, UnsetType):
        return "allows it"
    return f"{_REFUSES[term.refused]}: {words.safe('; '.join(term.messages))}"
