"""SPR214: selectors that older API servers accepted and that the scheduler cannot parse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import Evidence, Rule, Values, together
from kubectl_spread.rules.rule_input import InputPart, RuleInput
from kubectl_spread.rules.variants import TermVariant


def _unparseable(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield stored pods, or only the pending ones if there are any; a manifest with such a selector is refused."""
    variants = [variant for variant in rule_input.variants if variant.stored and variant.term.parse_error]
    unplaced = [variant for variant in variants if _keeps_unplaced(variant)]
    if unplaced:
        pairs = ((variant, _values(variant, _effect_on_pending(variant.term))) for variant in unplaced)
        yield from together(pairs, Severity.ERROR)
        return
    effects = [(variant, *_effect(variant)) for variant in variants]
    worst = max((severity for _, severity, _ in effects), default=None)
    yield from together(((variant, _values(variant, effect)) for variant, _, effect in effects), worst)


def _keeps_unplaced(variant: TermVariant) -> bool:
    """Tell whether the pods are pending and their scheduler fails on the selector."""
    profile = None if variant.pod_class is None else variant.pod_class.profile
    reads = profile is not None and (not variant.term.spread or profile.respects(hard=variant.term.required))
    return reads and _pending(variant)


def _pending(variant: TermVariant) -> bool:
    return any(not pod.node and not pod.terminating for pod in variant.pods)


def _values(variant: TermVariant, effect: str) -> Values:
    field, error = variant.term.parse_error or ("", "")
    return {"field": field, "error": error, "effect": effect}


def _effect_on_pending(term: TopologyTerm) -> str:
    if term.spread and not term.required:
        return "it fails to place the pods wherever it has more than one node to choose from"
    return "it fails on every attempt to place the pods"


def _effect(variant: TermVariant) -> tuple[Severity, str]:
    """Return the severity and the effect of the selector on running pods, or on pending pods of another scheduler."""
    if _pending(variant):
        return Severity.INFO, "what the scheduler of these pods makes of it is not known"
    if variant.term.spread:
        return Severity.INFO, "the pods run on, but kube-apiserver takes no new one like them"
    anti = "podAntiAffinity" in variant.term.path
    if anti and variant.term.required:
        text = "it passes over all required anti-affinity terms of these pods, so that they keep no pod away"
        return Severity.WARNING, text
    which = "required" if variant.term.required else "preferred"
    return Severity.INFO, f"it passes over all {which} {'anti-affinity' if anti else 'affinity'} terms of these pods"


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
    of=InputPart.PODS,
    check=_unparseable,
)
