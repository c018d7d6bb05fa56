"""SPR2xx: selectors that the API took long ago and that the scheduler cannot parse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.rules.holders import Holder, Values, holders, together
from kubectl_spread.rules.model import Evidence, Rule, Severity, Subject, SubjectPart


def _unparseable(subject: Subject) -> Iterator[Evidence]:
    """Tell of stored pods, of the pending ones alone if there are any; a manifest with such a selector is refused."""
    found = [holder for holder in holders(subject) if holder.stored and holder.clause.parse_error]
    waiting = [holder for holder in found if _fails(holder)]
    if waiting:
        yield from together(((holder, _values(holder, _of_pending(holder))) for holder in waiting), Severity.ERROR)
        return
    told = [(holder, *_effect(holder)) for holder in found]
    worst = max((severity for _, severity, _ in told), default=None)
    yield from together(((holder, _values(holder, effect)) for holder, _, effect in told), worst)


def _fails(holder: Holder) -> bool:
    """Tell whether the pods wait for a scheduler that fails on the selector."""
    profile = None if holder.view is None else holder.view.shape.profile
    heeded = profile is not None and (not holder.clause.spread or profile.heeds(hard=holder.clause.required))
    return heeded and _pending(holder)


def _pending(holder: Holder) -> bool:
    return any(not pod.node and not pod.terminating for pod in holder.pods)


def _values(holder: Holder, effect: str) -> Values:
    field, error = holder.clause.parse_error or ("", "")
    return {"field": field, "error": error, "effect": effect}


def _of_pending(holder: Holder) -> str:
    if holder.clause.spread and not holder.clause.required:
        return "it fails to place the pods wherever it has more than one node to choose from"
    return "it fails on every attempt to place the pods"


def _effect(holder: Holder) -> tuple[Severity, str]:
    """Return what the selector does to pods that run, or that wait for another scheduler, and how bad that is."""
    if _pending(holder):
        return Severity.INFO, "what the scheduler of these pods makes of it is not known"
    if holder.clause.spread:
        return Severity.INFO, "the pods run on, but kube-apiserver takes no new one like them"
    which = "required" if holder.clause.required else "preferred"
    if "podAntiAffinity" in holder.clause.path:
        keeps = ", so that they keep no pod away" if holder.clause.required else ""
        severity = Severity.WARNING if holder.clause.required else Severity.INFO
        return severity, f"it passes over all {which} anti-affinity terms of these pods{keeps}"
    return Severity.INFO, f"it passes over all {which} affinity terms of these pods"


UNPARSEABLE_SELECTOR: Final = Rule(
    code="SPR214",
    name="unparseable-selector",
    severity=Severity.WARNING,
    summary="A stored pod has a selector that the scheduler cannot parse",
    message="the scheduler cannot parse {field} ({error}): {effect}",
    why=(
        "kube-apiserver checks the selectors of spread constraints since 1.27 and values of affinity terms since 1.26, "
        "and keeps what was stored before. A pending pod with such a selector in a DoNotSchedule constraint or in any "
        "affinity term is never placed; one with it in a ScheduleAnyway constraint only where one node is left. "
        "Running pods stay, and no new pod with the selector is taken."
    ),
    fix="correct the selector in the pod template or manifest and replace the pods; a stored one cannot be edited",
    source="https://github.com/kubernetes/kubernetes/issues/111791",
    needs_nodes=False,
    of=frozenset({SubjectPart.PODS}),
    check=_unparseable,
)
