"""SPR2xx: constraints and terms that the API refuses, or that select nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_spread.audit.snapshot.records import EventRecord
from kubectl_spread.audit.snapshot.templates import Refusal, Refused
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.features import COUNTS_EMPTY_SELECTORS
from kubectl_spread.phrases import plural
from kubectl_spread.report.projections import timestamp
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import Evidence, Rule, Values, together
from kubectl_spread.rules.rule_input import RuleInput, TermVariant
from kubectl_spread.rules.stored import names_a_key_twice

_VALIDATION: Final = "https://github.com/kubernetes/kubernetes/blob/v1.37.1/pkg/apis/core/validation/validation.go"
_CORRECT: Final = "correct the field that the error names"
_PATH: Final = "A path that ends in [i][j] is about entry j of matchLabelKeys in constraint i, both counted from 0."


def _refused(subject: RuleInput) -> Iterator[Evidence]:
    for refusal, pods in subject.refusals:
        if refusal.refused in (Refused.TEMPLATE, Refused.POD):
            fix = None if names_a_key_twice(refusal.messages) else _CORRECT
            yield Evidence(pods, {"refused": str(refusal.refused), "errors": _errors(refusal)}, fix=fix)


def _pods_refused(subject: RuleInput) -> Iterator[Evidence]:
    for refusal, pods in subject.refusals:
        if refusal.refused is Refused.PODS:
            events = subject.audit.snapshot.ownership.events(subject.workload, "FailedCreate")
            yield Evidence(pods, {"errors": _errors(refusal), "seen": _seen(refusal, events)})


def _errors(refusal: Refusal) -> str:
    """Return the API's errors, each of them once, as the API does."""
    return "; ".join(dict.fromkeys(refusal.messages))


def _seen(refusal: Refusal, events: list[EventRecord]) -> str:
    """Return the events of the attempts to create pods, as the end of the message; "" without events.

    An event with the errors comes before a newer one, which may be about a quota.
    """
    quoting = [event for event in events if all(message in event.message for message in refusal.messages)]
    for event in (quoting or events)[:1]:
        last = f", last at {timestamp(event.last)}" if event.last else ""
        own = "" if quoting else f": {event.message}"
        return f" (FailedCreate {plural(event.count, 'time')}{last}{own})"
    return ""


def _repeated_key(subject: RuleInput) -> Iterator[Evidence]:
    """Yield duplicate keys that are not refused now."""
    variants = [variant for variant in subject.variants if _repeats(variant.term)]
    yield from together((variant, values) for variant in variants if (values := _repeated_match(variant)))
    mismatches = ((variant, values) for variant in variants if (values := _repeated_mismatch(variant)))
    yield from together(mismatches, Severity.INFO)


def _repeats(term: TopologyTerm) -> bool:
    keys = (term.match_label_keys, term.mismatch_label_keys)
    return any(len(listed) > len(set(listed)) for listed in keys if len(listed) > 1)


def _repeated_match(variant: TermVariant) -> Values:
    refuses = "kube-apiserver 1.34 and newer refuses" if variant.term.spread else "kube-apiserver refuses"
    effect = f"{refuses} every pod that is created with the label"
    return _repeated("matchLabelKeys", variant.term.match_label_keys, effect)


def _repeated_mismatch(variant: TermVariant) -> Values:
    return _repeated("mismatchLabelKeys", variant.term.mismatch_label_keys, "the second one adds nothing")


def _repeated(field: str, keys: Sequence[str], effect: str) -> Values:
    twice = [key for key, number in Counter(keys).items() if number > 1]
    return {"field": field, "keys": ", ".join(twice), "effect": effect} if twice else {}


def _null_selector(subject: RuleInput) -> Iterator[Evidence]:
    variants = [variant for variant in subject.variants if variant.term.selector is None]
    never = [variant for variant in variants if _never_fits(variant)]
    yield from together(
        ((variant, {"effect": _effect_of_null(variant, never=bool(never))}) for variant in never or variants),
        Severity.ERROR if never else Severity.WARNING,
    )


def _effect_of_null(variant: TermVariant, *, never: bool) -> str:
    if variant.term.spread:
        return "nothing is spread"
    return "no node ever takes the pods" if never else "the term does nothing"


def _never_fits(variant: TermVariant) -> bool:
    """Tell whether a required affinity term of pending pods can never be met.

    The scheduler ignores a term that no pod matches only for pods that match it themselves.
    """
    asks = variant.term.required and "podAffinity" in variant.term.path
    return asks and not any(pod.node for pod in variant.pods)


def _empty_selector(subject: RuleInput) -> Iterator[Evidence]:
    if not subject.audit.context.behaviour.empty_selector_counts_nothing:
        return
    yield from together(
        (variant, {"then": _count_of_empty(subject, hard=variant.term.required)})
        for variant in subject.variants
        if variant.term.spread and variant.effective is not None and labelselectors.is_empty(variant.effective)
    )


def _count_of_empty(subject: RuleInput, *, hard: bool) -> str:
    """Return how a scheduler that counts pods for an empty selector would count them."""
    other = subject.audit.context.extra_checks.upgrade
    pods = sum(counts.total() for _, counts in subject.audit.snapshot.population(subject.namespace))
    counted = f"counts all pods of the namespace{f' ({pods} now)' if pods else ''}"
    if other is None or other.empty_selector_counts_nothing:
        return f"from 1.{COUNTS_EMPTY_SELECTORS} on it {counted}"
    effect = "may keep new pods from nodes that take them today" if hard else "ranks nodes by it"
    return f"1.{other.minor} {counted} and {effect}"


REFUSED: Final = Rule(
    code="SPR201",
    name="refused",
    severity=Severity.ERROR,
    summary="kube-apiserver would refuse the manifest as it is written",
    message="kube-apiserver refuses {refused}: {errors}",
    why=(
        "A pod is evaluated after the merge, a workload as it is written. A pod that was exported from a cluster holds "
        f"the merged part already: merged again, it names its keys twice. {_PATH}"
    ),
    fix="name each key once, in matchLabelKeys or in labelSelector; run an exported pod through kubectl spread unmerge",
    source=_VALIDATION,
    needs_nodes=False,
    check=_refused,
)
PODS_REFUSED: Final = Rule(
    code="SPR202",
    name="pods-refused",
    severity=Severity.ERROR,
    summary="kube-apiserver takes the workload and refuses every pod of it",
    message="kube-apiserver takes the template and refuses every pod of it: {errors}{seen}",
    why=(
        "Templates are never merged and so are evaluated before the merge, pods after it: a key that stands in "
        "matchLabelKeys and in the selector, or twice in matchLabelKeys, passes in the template. Its pods are refused, "
        "and pods of older templates hide that until they are gone. "
        f"{_PATH}"
    ),
    fix="in the template, name each key once: in matchLabelKeys or in labelSelector",
    source="https://github.com/kubernetes/kubernetes/issues/130063",
    needs_nodes=False,
    check=_pods_refused,
)
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
    needs_nodes=False,
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
    source="https://github.com/kubernetes/kubernetes/blob/v1.37.1/pkg/api/pod/warnings.go",
    needs_nodes=False,
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
    needs_nodes=False,
    check=_empty_selector,
)
