"""The domains of each constraint with the causes of a skew, and nodes for pending and next pods."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.explain.causes import SkewCause
from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.kube.api import labels
from kubectl_spread.kube.api.workloads import SCALABLE
from kubectl_spread.kube.scheduler.podtopologyspread.scoring import WEIGHT
from kubectl_spread.phrases import listed, named, plural, sentence, some, value
from kubectl_spread.render import figures, words
from kubectl_spread.render.document import AnswerSection, Instruction, Table
from kubectl_spread.render.terminal import Cell, Column
from kubectl_spread.report.explanation import (
    InertConstraint,
    NewNodes,
    Placing,
    SchedulerEvent,
    Step,
    Waiting,
    refusing,
)
from kubectl_spread.report.model import Domain, Row

_LISTED: Final = 12
"""The most domains with a line each; of more domains, those with equal counts share a line."""
_LEGEND: Final = (
    "Next pod: the domain's pods, plus 1 if the selector matches the pod itself, minus the global minimum, compared "
    "with maxSkew."
)
_NEXT: Final = Column("Next pod")
_COLUMNS: Final = (
    Column("Domain", fit="middle", least=16),
    Column("Nodes", "right"),
    Column("Pods", "right"),
    Column("Bars"),
    _NEXT,
)


def domains(explanation: Explanation) -> Iterator[AnswerSection]:
    """Yield a section for each row whose pods are counted, and the meaning of the columns and bars that need it."""
    rows = []
    for index, row in enumerate(explanation.constraints):
        if not isinstance(row.domains, UnsetType):
            pending = f", {row.pending} pending" if row.pending else ""
            title = f"Domains of {_title(row, explanation)} ({plural(row.pod_count, 'pod')}{pending})"
            causes = [line for cause in explanation.causes if cause.row == index for line in _cause(cause)]
            yield AnswerSection(title, [*_table(row), *_skew(row), *causes])
            rows += [row] if row.domains else []
    legends = [_LEGEND if any(map(_has_formulas, rows)) else "", figures.legend(rows)]
    if any(legends):
        yield AnswerSection("How to read it", [*filter(None, legends)])


def _has_formulas(row: Row) -> bool:
    return isinstance(row.self_match_num, int) and not isinstance(row.next, UnsetType)


def _title(row: Row, explanation: Explanation) -> str:
    """Return the path of a row and its requirement, and its selector where rows of the same path differ in it."""
    text = words.clause(row)
    if isinstance(row.max_skew, int):
        text += f", maxSkew {row.max_skew}"
    if sum(constraint.path == row.path for constraint in explanation.constraints) > 1:
        text += f", selecting {labels.describe(row.selector.effective)}"
    return text


def _table(row: Row) -> Iterator[Table]:
    """Yield a line for each domain, or for each number of pods if there are many domains."""
    if isinstance(row.domains, UnsetType) or not row.domains:
        return
    columns = _COLUMNS if _has_formulas(row) else _COLUMNS[:-1]
    most = max(domain.match_num for domain in row.domains)
    rows = []
    for equal in _folded(row.domains):
        first = equal[0]
        bar = figures.lengthwise(first.match_num, row, most)
        numbers = [str(sum(domain.nodes for domain in equal)), f"{first.match_num}{' each' if len(equal) > 1 else ''}"]
        formula = [_formula(first, row)] if _NEXT in columns else []
        rows.append([*map(Cell, (_name(equal), *numbers, bar, *formula))])
    yield Table("", columns, rows)


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
        return value(equal[0].value)
    return f"{len(equal)} domains ({some([value(domain.value) for domain in equal])})"


def _formula(domain: Domain, row: Row) -> str:
    """Return the comparison in Filter for one more pod: matchNum + selfMatchNum - minMatchNum against maxSkew."""
    numbers = (row.self_match_num, row.min_match_num, row.max_skew)
    own, least, most = (number for number in numbers if isinstance(number, int))
    skew = domain.skew + own
    if row.when_unsatisfiable != "DoNotSchedule":
        return f"{domain.match_num} + {own} - {least} = {skew}, preferred <= {most}"
    sign, answer = (">", "blocked") if skew > most else ("<=", "allowed")
    return f"{domain.match_num} + {own} - {least} = {skew} {sign} {most} {answer}"


def _skew(row: Row) -> Iterator[str]:
    """Yield the number of domains that are not listed, and the skew in words."""
    if not row.domains:
        policy = row.when_unsatisfiable
        yield f"No node that counts has the topology keys of all {policy} constraints, so there is no domain."
        return
    if isinstance(row.empty_domains, int):
        yield f"{plural(row.empty_domains, 'more domain')} without matching pods."
    bound = "at least " if row.lower_bound is True else ""
    most = plural(max(domain.match_num for domain in row.domains), "pod")
    least = row.min_match_num
    yield f"The skew is {bound}{row.skew}: the fullest domain has {most}, and the global minimum is {least}."


def _cause(cause: SkewCause) -> list[str]:
    """Return a cause in a sentence with its name in JSON, and further evidence in sentences of their own."""
    certainty = "Likely cause" if cause.confidence == "likely" else "Cause"
    first, *more = cause.evidence
    return [f"{certainty} ({cause.cause}): {first}", *more]


_NOT_RETRIED: Final = (
    "If the scheduler refused the pod before the label was changed, it tries again only after a node has changed or "
    "after 5 minutes. Until then the event keeps its old text."
)


def waiting(explanation: Explanation) -> Iterator[AnswerSection]:
    """Yield a section for each group of pending pods that are alike.

    It has the scheduler's message, then the nodes that can and cannot take one.
    """
    for group in explanation.waiting:
        pods = "Pending pod" if len(group.pods) == 1 else f"{len(group.pods)} pending pods"
        gates, inert = words.names(group.gates or ()), [*map(_inert, group.inert or ())]
        ignored = f"The scheduler ignores the pod until its scheduling gates are removed: {gates}."
        retried = [] if gates or not inert else [_NOT_RETRIED]
        parts = [*_reported(group), *([ignored] if gates else []), *_answer(group), *inert, *retried]
        yield AnswerSection(f"{pods}: {words.names(group.pods)}", parts)


def _inert(inert: InertConstraint) -> str:
    return (
        f"{words.short_path(inert.path)} keeps the pod from no node. Its selector matches no pod since the label "
        f"{inert.key} was changed from {value(inert.stored)} to {value(inert.label)}."
    )


def _reported(group: Waiting) -> Iterator[str]:
    """Yield the scheduler's own message: of its last event, else of the condition in a pod's status."""
    event, condition = group.event, group.condition
    if not isinstance(event, UnsetType):
        yield f"The scheduler's message, {_when(event)}: {event.message}"
    elif not isinstance(condition, UnsetType):
        reason = f" ({condition.reason})" if condition.reason else ""
        since = "" if isinstance(condition.since, UnsetType) else f" since {condition.since}"
        source = f"from the status of {condition.pod}: PodScheduled=False{reason}{since}"
        yield f"The scheduler's message, {source}: {condition.message}"
    elif not group.gates:
        yield "No FailedScheduling event was read, and the status has no message of the scheduler."


def _when(event: SchedulerEvent) -> str:
    times = "once" if event.count == 1 else f"{event.count} times"
    last = "" if isinstance(event.last, UnsetType) else f", last at {event.last}"
    return f"{times} about {event.pod}{last}"


def placing(explanation: Explanation) -> Iterator[AnswerSection]:
    """Yield a section for each group without pending pods, which have a section of their own."""
    waiting_pods = {name for group in explanation.waiting for name in group.pods}
    for group in explanation.placing or ():
        if waiting_pods.isdisjoint(group.pods):
            yield AnswerSection(f"Next pod like {group.pods[0]}", [*_answer(group, *_ranking(group.scores or {}))])


def _ranking(scores: Mapping[str, int]) -> Iterator[str]:
    """Yield the nodes by their score, the highest first, if there are scores."""
    by_score: dict[int, list[str]] = {}
    for name, score in scores.items():
        by_score.setdefault(score, []).append(name)
    ranks = [f"{score} for {_nodes(by_score[score])}" for score in sorted(by_score, reverse=True)]
    if ranks:
        yield (
            f"Score of the plugin PodTopologySpread: {listed(ranks, len(ranks))}. "
            f"Its weight is {WEIGHT} by default, and other plugins score too."
        )


def replicas(explanation: Explanation, inputs: Sequence[str] = ()) -> Iterator[AnswerSection]:
    """Yield a section for the pods that --replicas adds to each group, with the command for all of their ranges.

    Args:
        explanation: The explanation.
        inputs: The flags of commands that read the same cluster or files.
    """
    for group in explanation.next_pods:
        keys = " / ".join(words.topology(key) for key in group.topology_keys)
        parts: list[str | Instruction] = [
            f"+{number}  {_step(step)}" for number, step in enumerate(group.steps, start=1)
        ]
        if explanation.object.kind in SCALABLE:
            name = named(explanation.object.kind, explanation.object.name)
            scaled = f"{name}={explanation.summary.pods + len(group.steps)}"
            simulated = ["kubectl", "spread", "simulate", "--scale", scaled, "-n", explanation.namespace, *inputs]
            parts.append(Instruction(_ANY_OF_EQUALS, [shlex.join(simulated)]))
        yield AnswerSection(f"Next {plural(len(group.steps), 'pod')} like {group.pods[0]}, by {keys}", parts)


_ANY_OF_EQUALS: Final = "The scheduler takes any of equally good nodes. The range over many runs:"


def _step(step: Step) -> str:
    if not step.allowed:
        return sentence(f"can go to no node: {step.reason}")
    domains = words.names(step.allowed)
    return f"can go to {domains} ({plural(step.nodes, 'node')}), assumed to go to {step.assumed}"


def _answer(group: Placing | Waiting, *ranking: str) -> Iterator[str]:
    """Yield the nodes where a pod can go and their ranking, the reasons against others, and what is unknown."""
    yield from (f"Can go to {_nodes(group.allowed)}.", *ranking)
    yield from (f"Cannot go to {_nodes(refusal.nodes)}: {refusal.reason}." for refusal in group.refused)
    yield from (sentence(f"unknown: {text}") for text in group.unknown or ())


def _nodes(names: Sequence[str]) -> str:
    return f"{plural(len(names), 'node')} ({words.names(names)})" if names else "no node"


_NOT_KNOWN: Final = "Not known: instance types and their capacity, which are not in the API."
_POOL_COLUMNS: Final = (
    Column("Domain for Karpenter", fit="middle", least=16),
    Column("Nodes", "right"),
    Column("Pods", "right"),
    Column("Counts because", fit="wrap", least=24),
)
"""A domain that Karpenter counts, the nodes that the scheduler counts, and why the domain counts."""


def new_nodes(explanation: Explanation) -> Iterator[AnswerSection]:
    """Yield a section for each group of pending pods with the same answer, where an autoscaler was read."""
    yield from map(_new_nodes, explanation.new_nodes or ())


def _new_nodes(group: NewNodes) -> AnswerSection:
    none = group.verdict == "none"
    pods = words.names(group.pods)
    pods = pods if len(group.pods) == 1 else f"{plural(len(group.pods), 'pod')} ({pods})"
    rows = [
        [
            Cell(f"{words.topology(each.topology_key)} {value(each.value)}"),
            Cell(str(each.nodes)),
            Cell(str(each.pods)),
            Cell("; ".join(each.sources)),
        ]
        for each in group.domains
    ]
    return AnswerSection(
        f"{refusing(group.node_pools, group.node_groups) if none else 'A node may be made'} for {pods}",
        [
            *([] if none else [group.summary]),
            *group.reasons,
            *([Table("", _POOL_COLUMNS, rows)] if rows else []),
            *(f"Fix: {fix}" for fix in group.fixes),
            *(f"Event: {message}" for message in group.messages),
            *([] if none else [_NOT_KNOWN]),
        ],
    )
