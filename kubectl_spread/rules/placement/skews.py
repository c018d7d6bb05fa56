"""SPR301 and SPR302: skew above maxSkew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.diagnosis.evictions import HELD, Plan, held, plan
from kubectl_spread.diagnosis.skew import Passing, Skew, skew_of, why_wait
from kubectl_spread.engine.answers import Removable
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import capitalized, domains, named, plural, some, value
from kubectl_spread.report.model import CommandLine, Severity
from kubectl_spread.rules.inputs import InputPart, RuleInput
from kubectl_spread.rules.model import FILTERING, Evidence, Remedy, Rule, Values, names
from kubectl_spread.rules.placement.closed import UNPIN
from kubectl_spread.rules.remedy import Removal, literal, one_by_one, removable, removal, unreplaced

_NAMED: Final = 10
"""The most pods in a command."""


def _hard_skew(rule_input: RuleInput) -> Iterator[Evidence]:
    for skew in _uneven(rule_input, hard=True):
        severity = Severity.WARNING if _can_end(skew) else Severity.INFO
        evictions = _plan(skew, rule_input)
        values = _values(skew, skew.must_go if evictions is None else len(evictions.pods))
        exposes = skew.spread.constraint.topology_key
        yield Evidence(names(skew.pods), values, severity, _hard_fix(skew, evictions, rule_input), exposes=exposes)


def _soft_skew(rule_input: RuleInput) -> Iterator[Evidence]:
    for skew in _uneven(rule_input, hard=False):
        severity = Severity.WARNING if _loses_all(skew) and _can_end(skew) else Severity.INFO
        exposes = skew.spread.constraint.topology_key if _loses_all(skew) else ""
        values = _values(skew, skew.must_go)
        yield Evidence(names(skew.pods), values, severity, _soft_fix(skew, rule_input), exposes=exposes)


def _loses_all(skew: Skew) -> bool:
    """Tell whether all counted pods are in one domain, although the pod template asks for several."""
    return skew.spread.match_num.most == skew.spread.match_num.total and not skew.row.term.default


def _can_end(skew: Skew) -> bool:
    """Tell whether the skew stays until somebody moves pods, and a lower domain would take them."""
    return skew.kept_away is None and not skew.passing


def _uneven(rule_input: RuleInput, *, hard: bool) -> Iterator[Skew]:
    """Yield the largest skew above maxSkew to which pods of the workload contribute."""
    skews = [
        skew
        for row, spread in rule_input.spreads
        if spread.constraint.hard is hard and (skew := skew_of(row, spread, rule_input.audit)) is not None
    ]
    if skews:
        yield max(skews, key=lambda skew: skew.spread.skew)


def _values(skew: Skew, must_go: int) -> Values:
    """Return the values of the message; ``must_go`` is the number of pods to delete, or 0 if it is unknown."""
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
        "fullest": capitalized(domains(spread.constraint.topology_key, skew.domains)),
        "closable": "" if skew.kept_away is None else f" No node of a lower domain takes a pod ({skew.kept_away}).",
    }


def _held(skew: Skew) -> str:
    """Return the number of pods in the fullest domains, and how many of them are the workload's."""
    number, fullest = skew.spread.match_num.most, len(skew.domains)
    if number == skew.spread.match_num.total:
        held = "both pods" if number == 2 else f"all {number} pods"  # noqa: PLR2004 - both are two
    else:
        held = plural(number, "pod") + (" each" if fullest > 1 else "")
    pods = len(skew.pods)
    return held if pods == number * fullest else f"{held} ({pods} of this workload)"


def _lowest(spread: Spread) -> str:
    """Return the number of pods in the emptiest domains, or why the minimum counts as 0."""
    match_num, least = spread.match_num, spread.match_num.least
    if spread.short_of_domains:
        eligible = f"{len(match_num)} of the {spread.constraint.min_domains} domains that minDomains asks for"
        return f"the minimum counts as 0, because there are only {eligible}"
    lowest = sorted(domain for domain, number in match_num.items() if number == least)
    verb, each = ("has", "") if len(lowest) == 1 else ("have", " each" if least else "")
    return f"{domains(spread.constraint.topology_key, lowest)} {verb} {least or 'none'}{each}"


def _plan(skew: Skew, rule_input: RuleInput) -> Plan | None:
    """Return the pods to delete to end a hard skew; None if that does not end it, or domains are only inferred."""
    if _other_fix(skew, rule_input) or skew.row.lower_bound:
        return None
    return plan(skew.row, skew.spread, rule_input.audit)


def _hard_fix(skew: Skew, evictions: Plan | None, rule_input: RuleInput) -> Remedy | str | None:
    """Return the deletion of pods whose replacements end the skew, or why there is none."""
    if evictions is None:
        return _other_fix(skew, rule_input) or None
    if not evictions.pods:
        return literal(evictions.reason)
    outcome = f"; {_outcome(evictions, skew.spread.constraint.topology_key)}"
    chosen = Removable(evictions.pods) if evictions.sure else removable(evictions.pods, rule_input)
    return _deletion(evictions.pods, chosen, skew, rule_input, outcome)


def _outcome(evictions: Plan, key: str) -> str:
    """Return where the replacements can go."""
    replacements, go = ("its replacement", "goes") if len(evictions.pods) == 1 else ("their replacements", "go")
    if evictions.only:
        return literal(f"{replacements} can only go to {domains(key, [evictions.only])}")
    if evictions.sure:
        return f"{replacements} can only go where the skew ends within maxSkew"
    return f"other constraints decide too where {replacements} {go}, so look again afterwards"


def _soft_fix(skew: Skew, rule_input: RuleInput) -> Remedy | str:
    """Return the deletion of pods, as the scheduler prefers lower domains, or why that does not help."""
    if fix := _other_fix(skew, rule_input):
        return fix
    if held(skew.pods, rule_input.audit):
        return HELD
    pods = [pod for pod in skew.pods if not rule_input.audit.volumes.of(pod).may_hold][: skew.must_go]
    outcome = " when convenient, because the scheduler prefers emptier domains, or use DoNotSchedule"
    return _deletion(pods, removable(pods, rule_input), skew, rule_input, outcome)


def _other_fix(skew: Skew, rule_input: RuleInput) -> str:
    """Return the fix for a skew that deleting pods would not end; "" if it would."""
    if skew.passing is Passing.SUPERSEDED or (skew.passing is not None and skew.kept_away is None):
        return str(skew.passing)
    if "" in skew.spread.match_num:
        return 'first label the nodes whose value is "", which counts as a domain, with their own domain'
    if skew.kept_away is not None:
        return UNPIN if skew.pinned else "nothing to do until a node of a lower domain can take a pod"
    if rule_input.workload.kind != "Pod":
        return why_wait(skew.row)
    pods = skew.spread.match_num.most
    return "{restart}" + (f". Replacing {skew.must_go} of the {pods} pods is enough" if skew.must_go < pods else "")


def _deletion(pods: Sequence[PodRecord], can_go: Removable, skew: Skew, rule_input: RuleInput, outcome: str) -> Remedy:
    """Return the deletion or eviction of pods, or for many a reference to ``explain``, which names them.

    Workloads that fill a domain together get the same text, so that it is printed once for all of them. ``outcome``
    says what follows once all the pods are removed; ``can_go`` are the pods that can be removed at once.
    """
    if len(pods) > _NAMED:
        chosen = removal(pods, rule_input.audit)
        workload = named(rule_input.workload.kind, rule_input.workload.name)
        hard = skew.spread.constraint.hard
        which = f"the {len(pods)} pods that explain lists below the domains" if hard else f"{len(pods)} of these pods"
        return Remedy(
            f"{chosen.verb} {which}{outcome}{_noted(chosen)}",
            (CommandLine(("kubectl", "spread", "explain", workload, "-n", rule_input.namespace)),),
        )
    these = "this pod" if len(pods) == 1 else f"these {len(pods)} pods"
    owners = {rule_input.audit.snapshot.workload(pod) for pod in pods}
    whose = sorted(named(owner.kind, owner.name) for owner in owners)
    alone = owners == {rule_input.workload} and len(skew.pods) == skew.spread.match_num.most * len(skew.domains)
    which = these if alone else f"{these} (of {literal(some(whose))})"
    if not can_go.pods:
        return Remedy(literal(unreplaced(which, can_go)))
    chosen = removal(can_go.pods, rule_input.audit)
    if can_go.why and chosen.pods:
        text = f"{chosen.verb} {literal(chosen.pods[0])} and look again: {literal(one_by_one(can_go))}{_noted(chosen)}"
        return Remedy(text, chosen.commands)
    if not chosen.pods:
        return Remedy(f"{which} cannot be evicted now{_noted(chosen)}")
    if len(chosen.pods) < len(pods):
        return Remedy(f"evict {len(chosen.pods)} of {which} now, and look again{_noted(chosen)}", chosen.commands)
    return Remedy(f"{chosen.verb} {which}{outcome}{_noted(chosen)}", chosen.commands)


def _noted(chosen: Removal) -> str:
    """Return what disruption budgets decide, as a sentence to append; "" for nothing."""
    return f". {literal(chosen.note)}" if chosen.note else ""


HARD_SKEW: Final = Rule(
    code="SPR301",
    name="hard-skew",
    severity=Severity.WARNING,
    summary="A domain has more matching pods than a DoNotSchedule constraint allows",
    message="{fullest} {has} {held} and {lowest} (skew {skew}, maxSkew {max_skew}).{closable}",
    why=(
        "The scheduler holds each new pod to maxSkew, but it never moves a pod. Scale-down, rollouts, evictions and "
        "late nodes leave a skew behind, and the loss of the fullest domain then stops more pods than the constraint "
        "allows. The finding is reported for each workload with pods in the fullest domain. Where a disruption budget "
        "selects a pod, its eviction is advised, which the API server refuses if the budget does not allow it."
    ),
    fix="delete as many of the named pods as have to move; their owner replaces them where the constraint allows",
    source=FILTERING,
    cases=(
        (Severity.WARNING, "A node of a lower domain would take a pod."),
        (
            Severity.INFO,
            "No node of a lower domain would take a pod now, or a rollout replaces the pods. Nothing can be done now.",
        ),
    ),
    remedies=("command",),
    no_remedy=(
        "No command is given where replacements would not, or not surely, go to a lower domain, while pods are "
        "pending or a StatefulSet replaces one, and for pods of a Job."
    ),
    removes_pods=True,
    parts=InputPart.COUNTS,
    check=_hard_skew,
)

SOFT_SKEW: Final = Rule(
    code="SPR302",
    name="soft-skew",
    severity=Severity.INFO,
    summary="A domain has more matching pods than a ScheduleAnyway constraint asks for",
    message="{fullest} {has} {held} and {lowest} (skew {skew}, maxSkew {max_skew}).{closable}",
    why=(
        "ScheduleAnyway is a preference. Other scores may outweigh it, and nothing moves pods that run. The finding is "
        "reported for each workload with pods in the fullest domain."
    ),
    fix=(
        "delete as many of the named pods as have to move when convenient, or use DoNotSchedule if the spread must hold"
    ),
    source="https://kep.k8s.io/895",
    cases=(
        (
            Severity.WARNING,
            "All pods are in one domain and a node of another one would take a pod. Scheduler defaults are notes.",
        ),
        (Severity.INFO, "In all other cases, because the constraint is a preference."),
    ),
    remedies=("command",),
    no_remedy=(
        "No command is given where no lower domain would take a replacement, where a rollout ends the skew, while pods "
        "are pending or a StatefulSet replaces one, and for pods of a Job."
    ),
    removes_pods=True,
    parts=InputPart.COUNTS,
    check=_soft_skew,
)
