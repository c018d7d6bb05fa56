"""SPR301 and SPR302: skew above maxSkew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.diagnosis.skew import Passing, Skew, skew_of, why_wait
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.phrases import capitalized, domains, named, plural, some, value
from kubectl_spread.report.model import CommandLine, Severity
from kubectl_spread.rules.inputs import PodsInput
from kubectl_spread.rules.model import Evidence, Remedy, Rule, Values, names
from kubectl_spread.rules.placement.closed import UNPIN
from kubectl_spread.rules.remedy import Removal, literal, removal


def _hard_skew(rule_input: PodsInput) -> Iterator[Evidence]:
    for skew in _uneven(rule_input, hard=True):
        severity = Severity.WARNING if _can_end(skew) else Severity.INFO
        exposes = skew.spread.constraint.topology_key
        yield Evidence(names(skew.pods), _values(skew), severity, _hard_fix(skew, rule_input), exposes=exposes)


def _soft_skew(rule_input: PodsInput) -> Iterator[Evidence]:
    for skew in _uneven(rule_input, hard=False):
        severity = Severity.WARNING if _loses_all(skew) and _can_end(skew) else Severity.INFO
        exposes = skew.spread.constraint.topology_key if _loses_all(skew) else ""
        fix = _soft_fix(skew, severity, rule_input)
        yield Evidence(names(skew.pods), _values(skew), severity, fix, exposes=exposes)


def _loses_all(skew: Skew) -> bool:
    """Tell whether all counted pods are in one domain, although the pod template asks for several."""
    return skew.spread.match_num.most == skew.spread.match_num.total and not skew.row.term.default


def _can_end(skew: Skew) -> bool:
    """Tell whether the skew stays until somebody moves pods, and a lower domain would take them."""
    return skew.kept_away is None and not skew.passing


def _uneven(rule_input: PodsInput, *, hard: bool) -> Iterator[Skew]:
    """Yield the largest skew above maxSkew to which pods of the workload contribute."""
    skews = [
        skew
        for row, spread in rule_input.spreads
        if spread.constraint.hard is hard and (skew := skew_of(row, spread, rule_input.audit)) is not None
    ]
    if skews:
        yield max(skews, key=lambda skew: skew.spread.skew)


def _values(skew: Skew) -> Values:
    """Return the values of the message; ``must_go`` is the number of pods that have to move."""
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
        "must_go": skew.must_go,
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
    if spread.lowered:
        eligible = f"{len(match_num)} of the {spread.constraint.min_domains} domains that minDomains asks for"
        return f"the minimum counts as 0, because there are only {eligible}"
    lowest = sorted(domain for domain, number in match_num.items() if number == least)
    verb, each = ("has", "") if len(lowest) == 1 else ("have", " each" if least else "")
    return f"{domains(spread.constraint.topology_key, lowest)} {verb} {least or 'none'}{each}"


def _hard_fix(skew: Skew, rule_input: PodsInput) -> Remedy | str | None:
    """Return the first eviction of the plan for the workload, or why there is none."""
    if fix := _other_fix(skew, rule_input):
        return fix
    return None if skew.row.lower_bound else _first_eviction(skew, rule_input)


def _soft_fix(skew: Skew, severity: Severity, rule_input: PodsInput) -> Remedy | str:
    """Return the first eviction of the plan where all pods are in one domain, or how to have a plan."""
    if fix := _other_fix(skew, rule_input):
        return fix
    first = None
    if severity is Severity.WARNING and not skew.row.lower_bound:
        first = _first_eviction(skew, rule_input)
    or_hard = ", or use DoNotSchedule if the spread must hold"
    if first is not None:
        return first
    if skew.row.term.default:
        return f"nothing to do: the constraint is a preference{or_hard}"
    command = _plan_command(rule_input, "--soft")
    return Remedy(f"let kubectl spread plan --soft name the pods to evict when convenient{or_hard}", (command,))


def _first_eviction(skew: Skew, rule_input: PodsInput) -> Remedy | None:
    """Return the eviction with which the plan for the workload begins; None where it has no part in a plan."""
    first = rule_input.engine.first_wave(rule_input.workload, soft=not skew.spread.constraint.hard)
    if first is None:
        flags = () if skew.spread.constraint.hard else ("--soft",)
        return Remedy("let kubectl spread plan name the pods to evict", (_plan_command(rule_input, *flags),))
    if first.ended:
        return Remedy("nothing more to do after the evictions of the other findings about these pods")
    chosen = removal([step.record for step in first.steps] or skew.pods[:1], rule_input.audit)
    if not chosen.pods:
        return Remedy(f"no pod can be evicted now{_noted(chosen)}")
    if not first.steps:
        return Remedy(literal(f"no eviction was found that is sure to help{f': {first.why}' if first.why else ''}"))
    step = first.steps[0]
    to = literal(domains(step.topology_key, step.to))
    these, replacement = ("this pod", "its replacement") if len(first.steps) == 1 else ("these pods", "a replacement")
    text = f"{chosen.verb} {these}: {replacement} can go to {to}"
    if step.topology_key != skew.spread.constraint.topology_key:
        text += f" ({literal(step.why)}), and look again"
    elif skew.must_go > 1:
        text += f". {capitalized(plural(skew.must_go - 1, 'more pod'))} {_have(skew.must_go - 1)} to move afterwards"
    return Remedy(f"{text}{_noted(chosen)}", chosen.commands)


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _plan_command(rule_input: PodsInput, *flags: str) -> CommandLine:
    name = named(rule_input.workload.kind, rule_input.workload.name)
    return CommandLine(("kubectl", "spread", "plan", name, "-n", rule_input.namespace, *flags))


def _other_fix(skew: Skew, rule_input: PodsInput) -> str:
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


def _noted(chosen: Removal) -> str:
    """Return the note about disruption budgets as a sentence to append; "" where none selects the pods."""
    return f". {literal(chosen.note)}" if chosen.note else ""


HARD_SKEW: Final = Rule(
    code="SPR301",
    name="hard-skew",
    severity=Severity.WARNING,
    summary="A domain has more matching pods than a DoNotSchedule constraint allows",
    message="{fullest} {has} {held} and {lowest} (skew {skew}, maxSkew {max_skew}).{closable}",
    fix="delete as many of the named pods as have to move, one after another; their owner replaces them",
    removes_pods=True,
    of_counts=_hard_skew,
)

SOFT_SKEW: Final = Rule(
    code="SPR302",
    name="soft-skew",
    severity=Severity.INFO,
    summary="A domain has more matching pods than a ScheduleAnyway constraint asks for",
    message="{fullest} {has} {held} and {lowest} (skew {skew}, maxSkew {max_skew}).{closable}",
    fix=(
        "delete as many of the named pods as have to move when convenient, or use DoNotSchedule if the spread must hold"
    ),
    removes_pods=True,
    of_counts=_soft_skew,
)
