"""SPR203 to SPR206 and SPR214: keys and selectors without effect, that cannot be parsed or miss their own pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from kubectl_spread.audit.evaluation.evaluators import FIXED_TEMPLATES
from kubectl_spread.audit.snapshot.records import OwnerRecord, PodClass
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import POD_SPEC
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.features import COUNTS_EMPTY_SELECTORS
from kubectl_spread.phrases import listed, named, value, versions
from kubectl_spread.report.model import Operation, Severity
from kubectl_spread.rules import patches
from kubectl_spread.rules.inputs import PodsInput, TemplateInput, TermInput, TermVariant
from kubectl_spread.rules.model import Evidence, Remedy, Rule, Values, together
from kubectl_spread.rules.remedy import changed, corrected

COUNTED_LATER: Final = f"From 1.{COUNTS_EMPTY_SELECTORS} on it counts all pods of the namespace"
_LIST_ONCE: Final = "list each key once"
_MATCHED: Final = "matchLabelKeys"


def _repeated_key(rule_input: TermInput) -> Iterator[Evidence]:
    """Yield duplicate keys of terms that the API does not refuse."""
    for field, entries in patches.KEY_LISTS.items():
        variants = [variant for variant in rule_input.variants if _duplicates(entries(variant.term))]
        if variants:
            term = variants[0].term
            effect = effect_of_repeated(field, spread=term.spread)
            values: Values = {"field": field, "keys": _duplicates(entries(term)), "effect": effect}
            severity = None if field == _MATCHED else Severity.INFO
            yield from together(variants, values, severity, _once(field, [each.term for each in variants], rule_input))


def _once(field: str, terms: Sequence[TopologyTerm], rule_input: TermInput) -> Remedy:
    """Return how to list each key of a field once, where ``terms`` list a key twice."""
    entries = patches.KEY_LISTS[field]
    path, keys = rule_input.term_path / field, entries(terms[0])
    alike = all(entries(term) == keys for term in terms)
    operations = patches.replaced(path, list(keys), list(dict.fromkeys(keys))) if alike else ()
    return changed(_LIST_ONCE, operations, rule_input)


def _duplicates(keys: Sequence[str]) -> str:
    """Return the keys that are listed more than once; "" if all differ."""
    if len(keys) == len(set(keys)):
        return ""
    return listed([key for key, number in Counter(keys).items() if number > 1])


def effect_of_repeated(field: str, *, spread: bool) -> str:
    """Return the effect of a key that is listed twice in a field of a spread constraint, or of an affinity term."""
    if field != _MATCHED:
        return "which has no effect"
    refuses = "kube-apiserver 1.34 and newer refuses" if spread else "kube-apiserver refuses"
    return f"and {refuses} every pod that is created with the label"


def _null_selector(rule_input: TermInput) -> Iterator[Evidence]:
    variants = _without_selector(rule_input)
    blocking = [variant for variant in variants if _refuses_every_node(variant)]
    if variants:
        spread = (blocking or variants)[0].term.spread
        effect = effect_of_null(spread=spread, blocks=bool(blocking))
        severity = Severity.ERROR if blocking else Severity.WARNING
        yield from together(blocking or variants, {"effect": effect}, severity)


def _without_selector(rule_input: TermInput) -> list[TermVariant]:
    variants = (variant for variant in rule_input.variants if variant.term.selector is None)
    return [variant for variant in variants if variant.term.keyed or not variant.extended]


def _null_in_template(rule_input: TemplateInput) -> Iterator[Evidence]:
    """Yield a term of a template without labelSelector, which the controller of a custom kind may set."""
    variants, template = _without_selector(rule_input), rule_input.template
    if not (variants and template.sets_selectors and variants[0].term.spread):
        yield from _null_selector(rule_input)
        return
    effect = "kube-apiserver refuses pods with its matchLabelKeys" if variants[0].term.keyed else "nothing is spread"
    severity = Severity.WARNING if template.complete and not variants[0].extended else Severity.INFO
    yield from together(variants, {"effect": f"{effect}, unless a controller sets it"}, severity)


def effect_of_null(*, spread: bool, blocks: bool) -> str:
    """Return the effect of a term without labelSelector."""
    if spread:
        return "nothing is spread"
    return "no node can take the pods" if blocks else "the term has no effect"


def _refuses_every_node(variant: TermVariant) -> bool:
    """Tell whether a required affinity term of pending pods can never be met.

    The scheduler ignores a term that no pod matches only for pods that match it themselves.
    """
    term = variant.term
    affinity = term.required and not term.spread and not term.anti
    return affinity and not any(pod.node for pod in variant.pods)


def _empty_selector(rule_input: TermInput) -> Iterator[Evidence]:
    variants = [
        variant
        for variant in rule_input.variants
        if variant.term.spread and variant.effective is not None and labelselectors.is_empty(variant.effective)
        if not (variant.extended or any(map(variant.may_get, variant.term.match_label_keys)))
    ]
    if variants and rule_input.behaviour.empty_selector_counts_nothing:
        yield from together(variants, _count_of_empty(rule_input, hard=variants[0].term.required))


def _count_of_empty(rule_input: TermInput, *, hard: bool) -> Values:
    """Return how a scheduler that counts pods for an empty selector would count them, and its minors on the way."""
    upgrade = rule_input.audit.context.extra_checks.upgrade
    counting = [behaviour for behaviour in upgrade if not behaviour.empty_selector_counts_nothing]
    if not counting:
        return {"then": COUNTED_LATER}
    effect = "may keep new pods from nodes that take them today" if hard else "prefers nodes by their number"
    minors = versions(behaviour.minor for behaviour in counting)
    return {"then": f"The scheduler of {minors} counts all pods of the namespace and {effect}", "compared": minors}


def _unparseable(rule_input: PodsInput) -> Iterator[Evidence]:
    """Yield stored pods, or only the pending ones if there are any; a manifest with such a selector is refused."""
    variants = [variant for variant in rule_input.variants if variant.stored and variant.term.parse_error]
    unplaced = [variant for variant in variants if _keeps_unplaced(variant)]
    if unplaced:
        values = _unparseable_values(unplaced[0], _effect_on_pending(unplaced[0].term))
        yield from together(unplaced, values, Severity.ERROR)
    elif variants:
        effects = [_effect(variant) for variant in variants]
        worst = max(severity for severity, _ in effects)
        yield from together(variants, _unparseable_values(variants[0], effects[0][1]), worst)


def _keeps_unplaced(variant: TermVariant) -> bool:
    """Tell whether the pods are pending and their scheduler fails on the selector."""
    profile = variant.holder.profile if isinstance(variant.holder, PodClass) else None
    reads = profile is not None and (not variant.term.spread or profile.respects(hard=variant.term.required))
    return reads and _pending(variant)


def _pending(variant: TermVariant) -> bool:
    return any(pod.waits for pod in variant.pods)


def _unparseable_values(variant: TermVariant, effect: str) -> Values:
    field, error = variant.term.parse_error or ("", "")
    return {"field": field, "error": error, "effect": effect}


def _effect_on_pending(term: TopologyTerm) -> str:
    if term.spread and not term.required:
        return "it fails to place the pods unless only one node is left"
    return "it fails on every attempt to place the pods"


def _effect(variant: TermVariant) -> tuple[Severity, str]:
    """Return the severity and the effect of the selector on running pods, or on pending pods of another scheduler."""
    if _pending(variant):
        return Severity.INFO, "it is unknown what the scheduler of these pods does"
    if variant.term.spread:
        return Severity.INFO, "new pods with this selector are refused, while these ones keep running"
    anti = variant.term.anti
    if anti and variant.term.required:
        text = "it ignores all required anti-affinity terms of these pods, and they keep no pod away"
        return Severity.WARNING, text
    which = "required" if variant.term.required else "preferred"
    return Severity.INFO, f"it ignores all {which} {'anti-affinity' if anti else 'affinity'} terms of these pods"


REPEATED_KEY: Final = Rule(
    code="SPR203",
    name="repeated-key",
    severity=Severity.WARNING,
    summary="A key is listed twice in matchLabelKeys or mismatchLabelKeys",
    message="{field} lists {keys} more than once, {effect}.",
    fix=_LIST_ONCE,
    of_pods=_repeated_key,
    of_template=_repeated_key,
)
NULL_SELECTOR: Final = Rule(
    code="SPR204",
    name="null-selector",
    severity=Severity.WARNING,
    summary="A spread constraint or affinity term without labelSelector selects no pods",
    message="labelSelector is not set and therefore selects no pods, so {effect}.",
    fix="set labelSelector to the labels of the pods that are meant, or remove the constraint or term",
    explains_exposure=True,
    of_pods=_null_selector,
    of_template=_null_in_template,
)
EMPTY_SELECTOR: Final = Rule(
    code="SPR205",
    name="empty-selector",
    severity=Severity.WARNING,
    summary="A spread constraint with an empty labelSelector counts no pods",
    message="labelSelector is empty, so the scheduler counts no pods and nothing is spread. {then}.",
    fix="set labelSelector to the labels of the pods to spread",
    explains_exposure=True,
    compares=True,
    of_pods=_empty_selector,
    of_template=_empty_selector,
)
UNPARSEABLE_SELECTOR: Final = Rule(
    code="SPR214",
    name="unparseable-selector",
    severity=Severity.WARNING,
    summary="A stored pod has a selector that the scheduler cannot parse",
    message="The scheduler cannot parse {field} ({error}), so {effect}.",
    fix="correct the selector in the pod template or manifest, and replace the pods: a stored pod cannot be edited",
    of_pods=_unparseable,
)


_FIND_THE_WRITER: Final = "find the mutating webhook or the edit that changed the label. Then {restart}"
_OF_A_POD: Final = "make labelSelector and the labels of the pod agree"
_RESTART_OR_FIND: Final = "if the template is newer than the pods, {restart}. If not, find what changed the label"


def _self_mismatch(rule_input: TermInput) -> Iterator[Evidence]:
    """Yield the pods that their own selector does not select."""
    variants = [variant for variant in rule_input.variants if variant.term.spread and variant.unmet]
    for mismatch in mismatches(variants, rule_input, partial(changed, rule_input=rule_input)):
        yield from together(mismatch.variants, mismatch.values, fix=mismatch.fix)


class Mismatch(NamedTuple):
    """Variants whose selector does not select the labels of their pods, the values of the message, and the fix."""

    variants: Sequence[TermVariant]
    values: Values
    fix: Remedy | str | None


def mismatches(
    variants: Sequence[TermVariant], rule_input: TermInput, change: Callable[[str, Sequence[Operation]], Remedy]
) -> Iterator[Mismatch]:
    """Yield the mismatch of variants, separately those whose selector would select their template's labels.

    Args:
        variants: Variants with requirements that their labels do not meet.
        rule_input: The workload.
        change: Returns a change of the pod template in words as a remedy.
    """
    authored: list[tuple[TermVariant, OwnerRecord | None]] = []
    relabelled: list[tuple[TermVariant, OwnerRecord]] = []
    for variant in variants:
        owner = _owner(variant, rule_input)
        if owner is None or not _template_agrees(variant, owner):
            authored.append((variant, owner))
        else:
            relabelled.append((variant, owner))
    if authored:
        fix = _OF_A_POD if rule_input.workload.kind == "Pod" else _own_selector(rule_input, change)
        yield Mismatch([variant for variant, _ in authored], _mismatch(*authored[0]), fix)
    if relabelled:
        first, owner = relabelled[0]
        find = _FIND_THE_WRITER if owner.ref.kind in FIXED_TEMPLATES else _RESTART_OR_FIND
        yield Mismatch([variant for variant, _ in relabelled], _mismatch(first, owner), find)


def _own_selector(rule_input: TermInput, change: Callable[[str, Sequence[Operation]], Remedy]) -> Remedy | None:
    """Return the patch that makes the workload's selector that of the constraint or term.

    None where the template was not read, or does not have this constraint any more.
    """
    template = rule_input.audit.template_of(rule_input.workload)
    if template is None:
        return None
    path = rule_input.pod_path.moved(POD_SPEC, template.path)
    terms = template.terms_by_path.get(path, ())
    if len(terms) != 1:
        return None
    if labelselectors.matches(terms[0].selector, template.labels):
        return None if isinstance(rule_input, TemplateInput) else corrected(rule_input)
    own = template.selector
    if own is None or labelselectors.is_empty(own) or not labelselectors.matches(own, template.labels):
        return None
    selectors = msgspec.to_builtins(terms[0].selector), msgspec.to_builtins(own)
    operations = (
        patches.same_topology(terms[0], rule_input.term_path),
        *patches.replaced(path / "labelSelector", *selectors),
    )
    return change("set labelSelector to the selector of the workload, which selects its pods", operations)


def _owner(variant: TermVariant, rule_input: TermInput) -> OwnerRecord | None:
    """Return the owner of stored pods, if it was read and its template has labels."""
    chain = rule_input.audit.snapshot.owner_chain(variant.pods[0]) if variant.stored else ()
    return chain[0] if chain and chain[0].template_labels else None


def _template_agrees(variant: TermVariant, owner: OwnerRecord) -> bool:
    """Tell whether the labels of the pods' template meet the unmet requirements."""
    return all(labelselectors.satisfies(requirement, owner.template_labels) for requirement in variant.unmet)


def _mismatch(variant: TermVariant, owner: OwnerRecord | None) -> Values:
    requirements = labelselectors.describe_requirements(variant.authored or LabelSelector(), variant.unmet)
    keys = list(dict.fromkeys(requirement.key for requirement in variant.unmet))
    have = _label_texts(keys, variant.labels)
    return {"asked": listed(requirements), "have": have, "template": _template_text(keys, have, owner)}


def _template_text(keys: Iterable[str], have: str, owner: OwnerRecord | None) -> str:
    """Return the labels of the pods' template, as a part of the message; "" if it was not read."""
    if owner is None:
        return ""
    template = f"the template of {named(owner.ref.kind, owner.ref.name)}"
    template_labels = _label_texts(keys, owner.template_labels)
    return f", as {template} has" if template_labels == have else f", while {template} has {template_labels}"


def _label_texts(keys: Iterable[str], labels: Labels) -> str:
    return listed([f"{key}={value(labels[key])}" if key in labels else f"no label {key}" for key in keys])


SELF_MISMATCH: Final = Rule(
    code="SPR206",
    name="self-mismatch",
    severity=Severity.WARNING,
    summary="A spread constraint does not select the pods that have it",
    message=(
        "The selector requires {asked}, but the pods have {have}{template}. They do not count themselves, so they "
        "may all be placed together."
    ),
    fix="make labelSelector and the labels of the pod template agree",
    removes_pods=True,
    explains_exposure=True,
    of_pods=_self_mismatch,
    of_template=_self_mismatch,
)
