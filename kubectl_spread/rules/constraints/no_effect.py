"""SPR203 to SPR205 and SPR214: keys and selectors that have no effect, or that cannot be parsed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.features import COUNTS_EMPTY_SELECTORS
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import KUBERNETES, Evidence, Rule, Values, together
from kubectl_spread.rules.rule_input import InputPart, RuleInput
from kubectl_spread.rules.variants import TermVariant


def _repeated_key(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield duplicate keys of terms that the API does not refuse."""
    yield from together(
        (variant, {"field": "matchLabelKeys", "keys": keys, "effect": _effect_of_repeated(variant.term)})
        for variant in rule_input.variants
        if (keys := _duplicates(variant.term.match_label_keys))
    )
    yield from together(
        (
            (variant, {"field": "mismatchLabelKeys", "keys": keys, "effect": "the second one adds nothing"})
            for variant in rule_input.variants
            if (keys := _duplicates(variant.term.mismatch_label_keys))
        ),
        Severity.INFO,
    )


def _duplicates(keys: Sequence[str]) -> str:
    """Return the keys that are listed more than once; "" if all differ."""
    if len(keys) == len(set(keys)):
        return ""
    return ", ".join(key for key, number in Counter(keys).items() if number > 1)


def _effect_of_repeated(term: TopologyTerm) -> str:
    refuses = "kube-apiserver 1.34 and newer refuses" if term.spread else "kube-apiserver refuses"
    return f"{refuses} every pod that is created with the label"


def _null_selector(rule_input: RuleInput) -> Iterator[Evidence]:
    variants = [variant for variant in rule_input.variants if variant.term.selector is None]
    blocking = [variant for variant in variants if _refuses_every_node(variant)]
    yield from together(
        (
            (variant, {"effect": _effect_of_null(variant.term, blocks=bool(blocking))})
            for variant in blocking or variants
        ),
        Severity.ERROR if blocking else Severity.WARNING,
    )


def _effect_of_null(term: TopologyTerm, *, blocks: bool) -> str:
    if term.spread:
        return "nothing is spread"
    return "no node ever takes the pods" if blocks else "the term does nothing"


def _refuses_every_node(variant: TermVariant) -> bool:
    """Tell whether a required affinity term of pending pods can never be met.

    The scheduler ignores a term that no pod matches only for pods that match it themselves.
    """
    affinity = variant.term.required and "podAffinity" in variant.term.path
    return affinity and not any(pod.node for pod in variant.pods)


def _empty_selector(rule_input: RuleInput) -> Iterator[Evidence]:
    if not rule_input.behaviour.empty_selector_counts_nothing:
        return
    yield from together(
        (variant, {"then": _count_of_empty(rule_input, hard=variant.term.required)})
        for variant in rule_input.variants
        if variant.term.spread and variant.effective is not None and labelselectors.is_empty(variant.effective)
    )


def _count_of_empty(rule_input: RuleInput, *, hard: bool) -> str:
    """Return how a scheduler that counts pods for an empty selector would count them."""
    upgrade = rule_input.audit.context.extra_checks.upgrade
    pods = sum(counts.total() for _, counts in rule_input.audit.snapshot.population(rule_input.namespace))
    counted = f"counts all pods of the namespace{f' ({pods} now)' if pods else ''}"
    if upgrade is None or upgrade.empty_selector_counts_nothing:
        return f"from 1.{COUNTS_EMPTY_SELECTORS} on it {counted}"
    effect = "may keep new pods from nodes that take them today" if hard else "ranks nodes by it"
    return f"1.{upgrade.minor} {counted} and {effect}"


def _unparseable(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield stored pods, or only the pending ones if there are any; a manifest with such a selector is refused."""
    variants = [variant for variant in rule_input.variants if variant.stored and variant.term.parse_error]
    unplaced = [variant for variant in variants if _keeps_unplaced(variant)]
    if unplaced:
        pairs = ((variant, _unparseable_values(variant, _effect_on_pending(variant.term))) for variant in unplaced)
        yield from together(pairs, Severity.ERROR)
        return
    effects = [(variant, *_effect(variant)) for variant in variants]
    worst = max((severity for _, severity, _ in effects), default=None)
    yield from together(((variant, _unparseable_values(variant, effect)) for variant, _, effect in effects), worst)


def _keeps_unplaced(variant: TermVariant) -> bool:
    """Tell whether the pods are pending and their scheduler fails on the selector."""
    profile = None if variant.pod_class is None else variant.pod_class.profile
    reads = profile is not None and (not variant.term.spread or profile.respects(hard=variant.term.required))
    return reads and _pending(variant)


def _pending(variant: TermVariant) -> bool:
    return any(not pod.node and not pod.terminating for pod in variant.pods)


def _unparseable_values(variant: TermVariant, effect: str) -> Values:
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


REPEATED_KEY: Final = Rule(
    code="SPR203",
    name="repeated-key",
    severity=Severity.WARNING,
    summary="A key is listed twice in matchLabelKeys or mismatchLabelKeys",
    message="{field} lists {keys} more than once: {effect}",
    why=(
        "The merge appends a requirement for each entry, and kube-apiserver refuses a pod whose selector names a "
        "matchLabelKeys key twice. Spread constraints are merged from 1.34 on: a list that works before stops all new "
        "pods after the upgrade. Without the label nothing is appended. A mismatchLabelKeys key may appear twice."
    ),
    fix="list each key once",
    source="https://github.com/kubernetes/kubernetes/issues/130554",
    check=_repeated_key,
)
NULL_SELECTOR: Final = Rule(
    code="SPR204",
    name="null-selector",
    severity=Severity.WARNING,
    summary="A spread constraint or affinity term without labelSelector selects no pod",
    message="labelSelector is not set, which selects no pod: {effect}",
    why=(
        "Only an empty selector selects all pods; one that is not set selects none. A spread constraint then counts 0 "
        "on every node, an anti-affinity term keeps nothing away, and a required affinity term can never be met. "
        "kube-apiserver only warns."
    ),
    fix="set labelSelector to the labels of the pods that are meant, or remove the constraint or term",
    source=f"{KUBERNETES}/pkg/api/pod/warnings.go",
    check=_null_selector,
)
EMPTY_SELECTOR: Final = Rule(
    code="SPR205",
    name="empty-selector",
    severity=Severity.WARNING,
    summary="A spread constraint with an empty labelSelector counts no pod",
    message="labelSelector is empty: the scheduler counts no pod for it, so nothing is spread; {then}",
    why=(
        "An empty selector selects every pod of the namespace, but the schedulers of 1.27 to 1.37 count none for it: "
        "every domain has 0. From 1.38 on they count all pods of the namespace, whatever they are. A constraint that "
        "did nothing then begins to act, and DoNotSchedule can block new pods. An affinity term with an empty "
        "selector has always selected all pods."
    ),
    fix="set labelSelector to the labels of the pods to spread",
    source="https://github.com/kubernetes/kubernetes/pull/141340",
    check=_empty_selector,
)
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
    parts=InputPart.PODS,
    check=_unparseable,
)
