"""The domains of each constraint with the causes of a skew, and nodes for pending and next pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.explain.causes import SkewCause
from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.kube.api import labels
from kubectl_spread.kube.api.workloads import SCALABLE
from kubectl_spread.kube.scheduler.podtopologyspread.scoring import WEIGHT
from kubectl_spread.phrases import listed, plural, sentence, some
from kubectl_spread.render import figures, words
from kubectl_spread.render.terminal import Column, Terminal, heading, paragraph, table
from kubectl_spread.report.explanation import InertConstraint, NextPods, Placing, SchedulerEvent, Step, Waiting
from kubectl_spread.report.model import Domain, Row

_INDENT: Final = "  "
_LISTED: Final = 12
"""The most domains with a line each; of more domains, those with equal counts share a line."""
_LEGEND: Final = (
    "NEXT POD is the domain's pods, plus 1 if the selector matches the pod itself, minus the global minimum, compared "
    "with maxSkew."
)


def domains(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each row whose pods are counted, and the meaning of the columns and bars that need it."""
    counted = [
        (index, row) for index, row in enumerate(explanation.constraints) if not isinstance(row.domains, UnsetType)
    ]
    text = "\n".join(_row(index, row, explanation, terminal) for index, row in counted)
    rows = [row for _, row in counted if row.domains]
    legends = [
        _LEGEND if any(map(_has_formulas, rows)) else "",
        figures.legend(rows, ascii_only=terminal.ascii),
    ]
    meaning = "".join(paragraph(legend, "", terminal) for legend in legends if legend)
    return f"{text}\n{meaning}" if meaning else text


def _has_formulas(row: Row) -> bool:
    return isinstance(row.self_match_num, int) and not isinstance(row.next, UnsetType)


def title(row: Row, explanation: Explanation) -> str:
    """Return the path of a row and its requirement, and its selector where rows of the same path differ in it."""
    text = words.clause(row)
    if isinstance(row.max_skew, int):
        text += f", maxSkew {row.max_skew}"
    if sum(constraint.path == row.path for constraint in explanation.constraints) > 1:
        text += f", selecting {words.safe(labels.describe(row.selector.effective))}"
    return text


def _row(index: int, row: Row, explanation: Explanation, terminal: Terminal) -> str:
    pending = f", {row.pending} pending" if row.pending else ""
    text = heading(f"Domains of {title(row, explanation)} ({plural(row.pod_count, 'pod')}{pending})", terminal)
    text += _table(row, terminal) + "".join(paragraph(line, _INDENT, terminal) for line in _skew(row))
    for cause in explanation.causes:
        if cause.row == index:
            text += "".join(paragraph(words.safe(line), _INDENT, terminal) for line in _cause(cause))
    return text


def _table(row: Row, terminal: Terminal) -> str:
    """Return a line for each domain, or for each number of pods if there are many domains."""
    if not isinstance(row.domains, list) or not row.domains:
        return ""
    most = max(domain.match_num for domain in row.domains)
    formulas = _has_formulas(row)
    columns = [
        Column(f"{_INDENT}DOMAIN", fit="middle", least=16),
        Column("NODES", "right"),
        Column("PODS", "right"),
        Column(""),
        *([Column("NEXT POD")] if formulas else []),
    ]
    cells = []
    for equal in _folded(row.domains):
        first = equal[0]
        bar = figures.lengthwise(first.match_num, row, most, ascii_only=terminal.ascii)
        numbers = [str(sum(domain.nodes for domain in equal)), f"{first.match_num}{' each' if len(equal) > 1 else ''}"]
        cells.append([_INDENT + _name(equal), *numbers, bar, *([_formula(first, row)] if formulas else [])])
    return table(columns, cells, terminal)


def _folded(listed: Sequence[Domain]) -> list[list[Domain]]:
    """Return each domain by itself or, of many domains, those with equal counts together, the fullest first."""
    if len(listed) <= _LISTED:
        return [[domain] for domain in listed]
    by_count: dict[int, list[Domain]] = {}
    for domain in sorted(listed, key=lambda domain: -domain.match_num):
        by_count.setdefault(domain.match_num, []).append(domain)
    return list(by_count.values())


def _name(equal: Sequence[Domain]) -> str:
    if len(equal) == 1:
        return words.value(equal[0].value)
    return f"{len(equal)} domains ({some([words.value(domain.value) for domain in equal])})"


def _formula(domain: Domain, row: Row) -> str:
    """Return the comparison in Filter for one more pod: matchNum + selfMatchNum - minMatchNum against maxSkew."""
    numbers = (row.self_match_num, row.min_match_num, row.max_skew)
    own, least, most = (number for number in numbers if isinstance(number, int))
    skew = domain.skew + own
    if row.when_unsatisfiable != "DoNotSchedule":
        return f"{domain.match_num} + {own} - {least} = {skew}, preferred <= {most}"
    sign, answer = (">", "blocked") if skew > most else ("<=", "allowed")
    return f"{domain.match_num} + {own} - {least} = {skew} {sign} {most} {answer}"


def _skew(row: Row) -> list[str]:
    """Return the number of domains that are not listed, and the skew in words."""
    if not row.domains:
        policy = words.safe(str(row.when_unsatisfiable))
        return [f"No node that counts has the topology keys of all {policy} constraints, so there is no domain."]
    lines = []
    if isinstance(row.empty_domains, int):
        lines.append(f"{plural(row.empty_domains, 'more domain')} without matching pods.")
    bound = "at least " if row.lower_bound is True else ""
    most = plural(max(domain.match_num for domain in row.domains), "pod")
    lines.append(
        f"The skew is {bound}{row.skew}: the fullest domain has {most}, and the global minimum is {row.min_match_num}."
    )
    return lines


def _cause(cause: SkewCause) -> list[str]:
    """Return a cause in a sentence with its name in JSON, and further evidence in sentences of their own."""
    certainty = {"certain": "Cause", "likely": "Likely cause", "unknown": "Cause"}[cause.confidence]
    first, *more = cause.evidence
    return [f"{certainty} ({cause.cause}): {first}", *more]


_QUOTED: Final = "    "
_NOT_RETRIED: Final = (
    "If the scheduler refused the pod before the label was changed, it tries again only after a node has changed or "
    "after 5 minutes. Until then the event keeps its old text."
)


def waiting(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each group of pending pods that are alike."""
    return "\n".join(_waiting_group(group, terminal) for group in explanation.waiting)


def _waiting_group(group: Waiting, terminal: Terminal) -> str:
    """Return the scheduler's message about pending pods, then the nodes that can and cannot take one."""
    pods = "Pending pod" if len(group.pods) == 1 else f"{len(group.pods)} pending pods"
    text = heading(f"{pods}: {words.names(group.pods)}", terminal) + _reported(group, terminal)
    if not isinstance(group.gates, UnsetType):
        gates = f"The scheduler ignores the pod until its scheduling gates are removed: {words.names(group.gates)}."
        text += paragraph(gates, _INDENT, terminal)
    return text + _answer(group, terminal) + _inert(group, terminal)


def _inert(group: Waiting, terminal: Terminal) -> str:
    if isinstance(group.inert, UnsetType):
        return ""
    text = "".join(paragraph(_inert_text(inert), _INDENT, terminal) for inert in group.inert)
    return text if isinstance(group.gates, list) else text + paragraph(_NOT_RETRIED, _INDENT, terminal)


def _inert_text(inert: InertConstraint) -> str:
    path, key = words.short_path(inert.path), words.safe(inert.key)
    stored, label = words.value(inert.stored), words.value(inert.label)
    return (
        f"{path} keeps the pod from no node. Its selector matches no pod since the label {key} was changed from "
        f"{stored} to {label}."
    )


def _reported(group: Waiting, terminal: Terminal) -> str:
    """Return the scheduler's own message: of its last event, else of the condition in a pod's status."""
    event, condition = group.event, group.condition
    if not isinstance(event, UnsetType):
        quoted = paragraph(words.safe(event.message), _QUOTED, terminal)
        return paragraph(f"The scheduler's message, {_when(event)}:", _INDENT, terminal) + quoted
    if isinstance(condition, UnsetType):
        missing = "No FailedScheduling event was read, and the status has no message of the scheduler."
        return "" if isinstance(group.gates, list) else paragraph(missing, _INDENT, terminal)
    reason = f" ({words.safe(condition.reason)})" if condition.reason else ""
    since = "" if isinstance(condition.since, UnsetType) else f" since {condition.since}"
    source = f"from the status of {words.safe(condition.pod)}: PodScheduled=False{reason}{since}:"
    quoted = paragraph(words.safe(condition.message), _QUOTED, terminal)
    return paragraph(f"The scheduler's message, {source}", _INDENT, terminal) + quoted


def _when(event: SchedulerEvent) -> str:
    times = "once" if event.count == 1 else f"{event.count} times"
    last = "" if isinstance(event.last, UnsetType) else f", last at {event.last}"
    return f"{times} about {words.safe(event.pod)}{last}"


def placing(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each group without pending pods, which have a section of their own."""
    if isinstance(explanation.placing, UnsetType):
        return ""
    waiting_pods = {name for group in explanation.waiting for name in group.pods}
    return "\n".join(
        _placing_group(group, terminal) for group in explanation.placing if waiting_pods.isdisjoint(group.pods)
    )


def _placing_group(group: Placing, terminal: Terminal) -> str:
    ranking = "" if isinstance(group.scores, UnsetType) else _ranking(group.scores)
    title = heading(f"Next pod like {words.safe(group.pods[0])}", terminal)
    return title + _answer(group, terminal, ranking)


def _ranking(scores: Mapping[str, int]) -> str:
    """Return the nodes by their score, the highest first."""
    by_score: dict[int, list[str]] = {}
    for name, score in scores.items():
        by_score.setdefault(score, []).append(name)
    ranks = [f"{score} for {_nodes(by_score[score])}" for score in sorted(by_score, reverse=True)]
    return (
        f"Score of the plugin PodTopologySpread: {listed(ranks, len(ranks))}. "
        f"Its weight is {WEIGHT} by default, and other plugins score too."
    )


def replicas(explanation: Explanation, terminal: Terminal) -> str:
    """Return a line for each pod that --replicas adds."""
    return "\n".join(_next_pods(next_pods, explanation, terminal) for next_pods in explanation.next_pods)


def _next_pods(next_pods: NextPods, explanation: Explanation, terminal: Terminal) -> str:
    keys = " / ".join(words.topology(key) for key in next_pods.topology_keys)
    title = heading(
        f"Next {plural(len(next_pods.steps), 'pod')} like {words.safe(next_pods.pods[0])}, by {keys}", terminal
    )
    lines = [f"+{number}  {_step(step)}" for number, step in enumerate(next_pods.steps, start=1)]
    text = title + "".join(paragraph(line, _INDENT, terminal) for line in lines)
    if explanation.object.kind not in SCALABLE:
        return text
    scaled = f"{words.workload(explanation.object)}={explanation.summary.pods + len(next_pods.steps)}"
    # A command is one line of any length, so that it can be copied.
    command = f"$ kubectl spread simulate --scale {scaled} -n {words.safe(explanation.namespace)}"
    return f"{text}{paragraph(_ANY_OF_EQUALS, _INDENT, terminal)}{_INDENT}{command}\n"


_ANY_OF_EQUALS: Final = "The scheduler takes any of equally good nodes. The range over many runs:"


def _step(step: Step) -> str:
    if not step.allowed:
        return sentence(f"can go to no node: {words.safe(str(step.reason))}")
    domains = words.names(step.allowed)
    return f"can go to {domains} ({plural(step.nodes, 'node')}), assumed to go to {words.safe(step.assumed)}"


def _answer(group: Placing | Waiting, terminal: Terminal, ranking: str = "") -> str:
    """Return the nodes where a pod can go, a line for each reason against others, and what is unknown.

    ``ranking`` is how the scheduler ranks the nodes that take it; "" if it is not computed.
    """
    lines = [f"Can go to {_nodes(group.allowed)}.", *([ranking] if ranking else [])]
    lines += [f"Cannot go to {_nodes(refusal.nodes)}: {words.safe(refusal.reason)}." for refusal in group.refused]
    if isinstance(group.unknown, list):
        lines += [sentence(f"unknown: {words.safe(text)}") for text in group.unknown]
    return "".join(paragraph(line, _INDENT, terminal) for line in lines)


def _nodes(names: Sequence[str]) -> str:
    return f"{plural(len(names), 'node')} ({words.names(names)})" if names else "no node"
