"""SPR3xx: skew above maxSkew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.diagnosis.evictions import Plan, plan
from kubectl_spread.diagnosis.skew import Passing, Skew, skew_of
from kubectl_spread.diagnosis.skew_fix import why_not
from kubectl_spread.kube.scheduler.podtopologyspread import Spread
from kubectl_spread.phrases import named, plural, some, value
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import Evidence, Rule, literal
from kubectl_spread.rules.rule_input import InputPart, RuleInput

_FILTERING: Final = "https://github.com/kubernetes/kubernetes/blob/v1.37.1/pkg/scheduler/framework/plugins/podtopologyspread/filtering.go"
_NAMED: Final = 10
"""A command names no more pods than this."""


def _hard_skew(subject: RuleInput) -> Iterator[Evidence]:
    for skew in _uneven(subject, hard=True):
        severity = Severity.WARNING if skew.below is None and not skew.passing else Severity.INFO
        found = _plan(skew, subject)
        values = _values(skew, skew.must_go if found is None else len(found.pods))
        yield Evidence(_names(skew.pods), values, severity, _hard_fix(skew, found, subject))


def _soft_skew(subject: RuleInput) -> Iterator[Evidence]:
    for skew in _uneven(subject, hard=False):
        values = _values(skew, skew.must_go)
        yield Evidence(_names(skew.pods), values, Severity.INFO, _soft_fix(skew, subject))


def _uneven(subject: RuleInput, *, hard: bool) -> Iterator[Skew]:
    """Yield the largest skew that pods of the subject's workload make, if there is one above maxSkew."""
    found = [
        skew
        for row, spread in subject.spreads
        if spread.constraint.hard is hard and (skew := skew_of(row, spread, subject.audit)) is not None
    ]
    if found:
        yield max(found, key=lambda skew: skew.spread.skew)


def _names(pods: Sequence[PodRecord]) -> tuple[str, ...]:
    return tuple(pod.name for pod in pods)


def _values(skew: Skew, must_go: int) -> dict[str, str | int]:
    """Return the message on a skew for which so many pods are known to have to go; 0: that is not known."""
    spread = skew.spread
    return {
        "domain": value(skew.domains[0]),
        "domains": some([value(domain) for domain in skew.domains]),
        "match_num": spread.match_num.most,
        "has": "has" if len(skew.domains) == 1 else "have",
        "held": _held(skew),
        "lowest": _lowest(spread),
        "min_match_num": spread.min_match_num,
        "skew": spread.skew,
        "max_skew": spread.constraint.max_skew,
        "topology_key": spread.constraint.topology_key,
        "must_go": must_go,
        "closable": "" if skew.below is None else f"; no node of a lower domain could take one ({why_not(skew.below)})",
        "surplus": f"; {must_go} must go" if must_go and skew.below is None and not skew.passing else "",
    }


def _held(skew: Skew) -> str:
    """Return how many pods the fullest domains have, and how many of them are the workload's."""
    number, domains = skew.spread.match_num.most, len(skew.domains)
    if number == skew.spread.match_num.total:
        held = "both pods" if number == 2 else f"all {number} pods"  # noqa: PLR2004 - both are two
    else:
        held = plural(number, "pod") + (" each" if domains > 1 else "")
    own = len(skew.pods)
    return held if own == number * domains else f"{held} ({own} of this workload)"


def _lowest(spread: Spread) -> str:
    """Return what the emptiest domains have, or why the minimum counts as 0."""
    domains, least = spread.match_num, spread.match_num.least
    if spread.short_of_domains:
        eligible = f"{len(domains)} of the {spread.constraint.min_domains} domains that minDomains asks for"
        return f"the minimum counts as 0, because there are only {eligible}"
    lowest = sorted(domain for domain, number in domains.items() if number == least)
    verb = "has" if len(lowest) == 1 else "have"
    return f"{some([value(domain) for domain in lowest])} {verb} {least or 'none'}"


def _plan(skew: Skew, subject: RuleInput) -> Plan | None:
    """Return whom to delete to end a hard skew; None where nobody is to be deleted, or domains are only inferred."""
    if _useless(skew, subject) or skew.row.lower_bound:
        return None
    return plan(skew.row, skew.spread, subject.audit)


def _hard_fix(skew: Skew, found: Plan | None, subject: RuleInput) -> str | None:
    """Return which pods to delete, so that their replacements end the skew, or why that ends none."""
    if found is None:
        return _useless(skew, subject) or None
    if not found.pods:
        return literal(found.reason)
    return f"{_delete(found.pods, subject)}; {_outcome(found)}"


def _outcome(found: Plan) -> str:
    """Return where replacements can go."""
    one = len(found.pods) == 1
    whose = "its replacement" if one else "their replacements"
    if found.only:
        return literal(f"{whose} can only go to {value(found.only)}")
    if found.sure:
        return f"{whose} can only go where the skew ends within maxSkew"
    return f"other constraints decide too where {whose} {'goes' if one else 'go'}, so look again afterwards"


def _soft_fix(skew: Skew, subject: RuleInput) -> str:
    """Return which pods to delete, for which the scheduler prefers lower domains, or why that helps nothing."""
    if useless := _useless(skew, subject):
        return useless
    pods = skew.pods[: skew.must_go]
    delete = f"delete {len(pods)} of these pods" if len(pods) > _NAMED else _delete(pods, subject)
    return f"use DoNotSchedule if the spread must hold; else, when convenient, {delete}: lower domains are preferred"


def _useless(skew: Skew, subject: RuleInput) -> str:
    """Return what to do about a skew that deleting pods would not end; a rollout that cannot continue ends none."""
    if skew.passing is Passing.SUPERSEDED or (skew.passing is not None and skew.below is None):
        return str(skew.passing)
    if "" in skew.spread.match_num:
        return "give the nodes of the domain with the empty value their own first; it counts as a domain"
    if skew.below is not None:
        return "nothing to gain by moving pods until a node of a lower domain can take one"
    return "{restart}" if subject.workload.kind == "Pod" else ""


def _delete(pods: Sequence[PodRecord], subject: RuleInput) -> str:
    """Return the command that deletes pods, as far as these are few; ``explain`` names more."""
    if len(pods) > _NAMED:
        workload = named(subject.workload.kind, subject.workload.name)
        return f"delete the {len(pods)} pods that kubectl spread explain {workload} -n {subject.namespace} names"
    command = f"kubectl delete pod -n {subject.namespace} {' '.join(_names(pods))}"
    owners = {subject.audit.snapshot.workload(pod) for pod in pods}
    names = sorted(named(owner.kind, owner.name) for owner in owners)
    return command if owners == {subject.workload} else f"{command} (of {some(names)})"


HARD_SKEW: Final = Rule(
    code="SPR301",
    name="hard-skew",
    severity=Severity.WARNING,
    summary="A domain holds more matching pods than a DoNotSchedule constraint allows",
    message="{topology_key} {domains} {has} {held} and {lowest} (skew {skew}, maxSkew {max_skew}){closable}{surplus}",
    why=(
        "The scheduler holds each new pod to maxSkew, but never moves one: scale-down, rollouts, evictions "
        "and nodes that come late leave a skew behind. Losing the fullest domain then loses more pods than "
        "the constraint promises."
    ),
    fix="delete as many of the named pods as must go; their owner replaces them where the constraint allows",
    source=_FILTERING,
    needs_nodes=True,
    of=frozenset({InputPart.COUNTS}),
    check=_hard_skew,
)

SOFT_SKEW: Final = Rule(
    code="SPR302",
    name="soft-skew",
    severity=Severity.INFO,
    summary="A domain holds more matching pods than a ScheduleAnyway constraint asks for",
    message="{topology_key} {domains} {has} {held} and {lowest} (skew {skew}, maxSkew {max_skew}){closable}{surplus}",
    why="ScheduleAnyway is a preference: other scores may outweigh it, and nothing moves pods that run.",
    fix="use DoNotSchedule if the spread must hold; else delete as many of the named pods as must go when convenient",
    source="https://kep.k8s.io/895",
    needs_nodes=True,
    of=frozenset({InputPart.COUNTS}),
    check=_soft_skew,
)
