"""SPR216 to SPR218: affinity terms that do not keep their pods apart, and topology keys that no node has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from kubectl_spread.audit.evaluation.topologykeys import standard_key
from kubectl_spread.audit.snapshot.records import DEFAULT_SCHEDULER
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import HOSTNAME, REGION, ZONE
from kubectl_spread.kube.custom import base_kind
from kubectl_spread.phrases import capitalized, listed, sentence, value
from kubectl_spread.report.model import Severity
from kubectl_spread.rules import patches
from kubectl_spread.rules.constraints.no_effect import Mismatch, mismatches
from kubectl_spread.rules.inputs import PodsInput, TemplateInput, TermInput, TermVariant
from kubectl_spread.rules.model import Evidence, Remedy, Rule, Values, names, together
from kubectl_spread.rules.topology import (
    acting,
    covers_namespace,
    kept_apart_otherwise,
    leaves_out_own,
    probable_key,
    right_key,
    selects_others,
    selects_own,
    unknown_key,
    use_key,
)

_SEVERAL: Final = 2
_WITHOUT_REPLICAS: Final = frozenset({"", "CronJob", "DaemonSet", "Job"})
"""Controllers whose pods do not stand in for each other; "" for none."""
_FEW_VALUES: Final = frozenset(f"{prefix}kubernetes.io/{name}" for prefix in ("", "beta.") for name in ("arch", "os"))


def _has_replicas(rule_input: TermInput) -> bool:
    """Tell whether a workload has several pods that stand in for each other; True where their number is unknown."""
    template = rule_input.pod_template
    kinds = {base_kind(variant.holder.kind) for variant in rule_input.variants}
    if not _WITHOUT_REPLICAS.isdisjoint(kinds):
        return False
    if template is not None:
        return template.replicas is None or template.replicas >= _SEVERAL
    return len({pod.name for variant in rule_input.variants for pod in variant.pods}) >= _SEVERAL


_APART: Final = "It does not keep them apart, so they may all be placed together"
_OTHERS: Final = "It keeps them away from other pods, and not from each other"
_NONE: Final = "It selects no pod that was read"
_NO_FAULT: Final = (
    "nothing to do if the term is meant for other pods. To keep its own pods apart, add topologySpreadConstraints"
)
_OWN_NAMESPACE: Final = "remove namespaces, so that the term is about the namespace of the pods"
_WIDER: Final = "let namespaces or namespaceSelector of the term include the namespace of the pods"


def _anti_self_mismatch(rule_input: TermInput) -> Iterator[Evidence]:
    """Yield the pods that their own anti-affinity term does not select."""
    variants = [
        variant
        for variant in rule_input.variants
        if variant.term.anti and variant.authored is not None and not variant.term.parse_error
        if not (variant.term.mismatch_label_keys or leaves_out_own(variant) or selects_own(variant, rule_input))
    ]
    for mismatch in _anti_mismatches(variants, rule_input):
        first = mismatch.variants[0]
        covers_own = covers_namespace(first.term, rule_input.namespace, rule_input) is not False
        effect = _APART
        if any(selects_others(variant, rule_input) for variant in mismatch.variants):
            effect = _OTHERS
        elif not _has_replicas(rule_input) or (first.unmet and not covers_own):
            effect = _NONE
        is_fault = effect is _APART
        values: Values = {**mismatch.values, "effect": effect}
        severity = None if is_fault else Severity.INFO
        yield from together(mismatch.variants, values, severity, mismatch.fix if is_fault else _NO_FAULT)


def _anti_mismatches(variants: Sequence[TermVariant], rule_input: TermInput) -> Iterator[Mismatch]:
    """Yield the variants whose labels do not match, then those that are only about other namespaces."""
    if not variants:
        return
    change = partial(acting, variant=variants[0], key=variants[0].term.topology_key, rule_input=rule_input)
    yield from mismatches([variant for variant in variants if variant.unmet], rule_input, change)
    elsewhere = [variant for variant in variants if not variant.unmet]
    if elsewhere:
        term = elsewhere[0].term
        by_labels = f"a namespace with {labelselectors.describe(term.namespace_selector)}"
        namespaces = f"namespace {listed(term.namespaces)}" if term.namespaces else by_labels
        values: Values = {"asked": namespaces, "have": f"namespace {rule_input.namespace}", "template": ""}
        removed = patches.removed(rule_input.term_path / "namespaces", list(term.namespaces))
        fix = change(_OWN_NAMESPACE, removed) if term.namespace_selector is None else _WIDER
        yield Mismatch(elsewhere, values, fix)


ANTI_SELF_MISMATCH: Final = Rule(
    code="SPR216",
    name="anti-affinity-mismatch",
    severity=Severity.WARNING,
    summary="An anti-affinity term does not select the pods that have it",
    message="The anti-affinity term requires {asked}, but its own pods have {have}{template}. {effect}.",
    fix="make labelSelector and the labels of the pod template agree",
    explains_exposure=True,
    of_pods=_anti_self_mismatch,
    of_template=_anti_self_mismatch,
)


def _one_value(rule_input: TermInput) -> Iterator[Evidence]:
    """Yield affinity terms whose topology key has one value on all nodes that the pods may use."""
    variants: dict[str, list[TermVariant]] = {}
    for variant in rule_input.variants:
        term = variant.term
        meant_for_zones = not term.anti and term.topology_key in (ZONE, REGION)
        if not term.spread and variant.authored is not None and not term.parse_error and not meant_for_zones:
            subject = _only_value(variant, rule_input)
            if subject:
                variants.setdefault(subject, []).append(variant)
    for subject, alike in variants.items():
        severity, effect = _effect(alike, rule_input)
        values: Values = {"subject": subject, "effect": effect}
        pods = {pod.name: pod for variant in alike for pod in variant.pods}
        fix = _other_key(alike, severity, rule_input)
        anti = alike[0].term.anti
        # The current name of a deprecated label would have one value too.
        covers, explains = (("SPR213",), (HOSTNAME,)) if anti else ((), ())
        yield Evidence(names(pods.values()), values, severity, fix, covers, explains=explains)
        return


def _only_value(variant: TermVariant, rule_input: TermInput) -> str:
    """Return that all nodes have the same value of the topology key, in words; "" if they do not."""
    audit, key = rule_input.audit, variant.term.topology_key
    nodes = audit.nodes
    if not audit.evaluator.lists_nodes:
        return f"Most nodes have the same value of {key}" if variant.term.anti and key in _FEW_VALUES else ""
    fitting = nodes.usable(variant.holder.placement).fits
    number = fitting.bit_count()
    if number < _SEVERAL:
        return ""
    first = nodes.nodes[(fitting & -fitting).bit_length() - 1]
    domain = first.metadata.labels.get(key)
    if domain is None or fitting & ~nodes.index.with_value(key, [domain]):
        return ""
    which = ("Both nodes" if number == _SEVERAL else f"All {number} nodes") + (
        "" if number == len(nodes.nodes) else " that the pods may use"
    )
    return f"{which} have the value {value(domain)} of {key}"


def _effect(variants: Sequence[TermVariant], rule_input: TermInput) -> tuple[Severity, str]:
    """Return the severity and the effect of a term whose topology key has one value."""
    first = variants[0]
    term, has_replicas = first.term, _has_replicas(rule_input)
    if not term.anti:
        met = "the term is met on every node once a pod that it selects runs"
        return Severity.INFO, met if term.required else "the term prefers no node"
    if not term.required:
        needless = not has_replicas or kept_apart_otherwise(first, rule_input)
        return Severity.INFO if needless else Severity.WARNING, "the term keeps no pods apart"
    if not selects_own(first, rule_input):
        return Severity.WARNING, "these pods and the pods that the term selects never run at the same time"
    pending = any(pod.waits for variant in variants for pod in variant.pods)
    unplaced = isinstance(rule_input, TemplateInput) and not rule_input.beside_pods
    single = "at most one of the pods can run"
    if has_replicas and (pending or (unplaced and rule_input.audit.evaluator.lists_nodes)):
        return Severity.ERROR, single
    return Severity.WARNING if has_replicas else Severity.INFO, single


def _other_key(variants: Sequence[TermVariant], severity: Severity, rule_input: TermInput) -> Remedy | str:
    """Return the fix: the key that keeps pods on different nodes, where nothing else does so."""
    term = variants[0].term
    if not term.anti:
        return f"nothing to do if the pods may be on any node. To keep them close, use {HOSTNAME} or {ZONE}"
    if kept_apart_otherwise(variants[0], rule_input):
        return "remove the term: another term or constraint keeps the pods apart"
    if severity is Severity.INFO:
        return "nothing to do: there are no replicas to keep apart"
    more = f", or add nodes with other values of {term.topology_key}" if term.topology_key in (ZONE, REGION) else ""
    return use_key(HOSTNAME, variants, rule_input, f"use {{key}}, which keeps the pods on different nodes{more}")


ONE_VALUE: Final = Rule(
    code="SPR217",
    name="one-topology-value",
    severity=Severity.WARNING,
    summary="An affinity term is over a topology key that has one value on all nodes",
    message="{subject}, so {effect}.",
    fix=f"use {HOSTNAME}, which keeps the pods on different nodes",
    reads_nodes=True,
    explains_exposure=True,
    of_pods=_one_value,
    of_template=_one_value,
)


_OF_PLACES: Final = (REGION, ZONE)
"""Standard labels that a cluster may lack, because it is in one place."""


def _wrong_key(rule_input: TermInput) -> Iterator[Evidence]:
    """Yield a term over a key that no node has, or over a well-known mistake where nodes were not read."""
    audit = rule_input.audit
    lists_nodes = audit.evaluator.lists_nodes and bool(audit.nodes.nodes)
    by_key: dict[str, list[TermVariant]] = {}
    for variant in rule_input.variants:
        by_key.setdefault(variant.term.topology_key, []).append(variant)
    for key, variants in by_key.items():
        fault = unknown_key(key, rule_input) if lists_nodes else _mistake(key)
        if not fault:
            continue
        effect = _effect_of_key(variants, rule_input)
        values: Values = {
            "fault": sentence(fault),
            "effect": capitalized(effect if lists_nodes else f"unless somebody labels the nodes with it, {effect}"),
            "topology_key": key,
        }
        pods = {pod.name: pod for variant in variants for pod in variant.pods}
        yield Evidence(
            names(pods.values()),
            values,
            _severity_of_key(variants, rule_input) if lists_nodes else None,
            right_key(variants, rule_input) if lists_nodes else use_key(standard_key(key), variants, rule_input),
            covers=("SPR213", "SPR305") if lists_nodes else (),
            explains=_explained(variants[0], rule_input) if lists_nodes else (),
        )
        return


def _mistake(key: str) -> str:
    """Return that a topology key is a well-known mistake, as a clause; "" for any other key."""
    probable = standard_key(key)
    return f"Kubernetes gives nodes no label {key}; did you mean {probable}?" if probable else ""


def _explained(variant: TermVariant, rule_input: TermInput) -> tuple[str, ...]:
    """Return the topology keys by which the pods are not kept apart because of a key that no node has."""
    probable = probable_key(variant.term.topology_key, rule_input)
    others = _other_soft_keys(variant)
    return (*([probable] if probable else []), *([HOSTNAME] if probable == ZONE else []), *others)


def _effect_of_key(variants: Sequence[TermVariant], rule_input: TermInput) -> str:
    """Return the effect of a term on nodes that all lack its topology key."""
    term = variants[0].term
    if term.anti:
        return "the term keeps no pods apart"
    if term.required:
        runs = isinstance(rule_input, PodsInput) and all(pod.node for variant in variants for pod in variant.pods)
        return "no node would take one more such pod" if runs else "no node can take the pods"
    if not term.spread:
        return "the term has no effect"
    others = _other_soft_keys(variants[0])
    if not others:
        return "the constraint has no effect"
    constraints = f"constraint on {others[0]} has" if len(others) == 1 else f"constraints on {listed(others)} have"
    return (
        "the scheduler ranks only nodes that have the keys of all ScheduleAnyway constraints of a pod, so the "
        f"{constraints} no effect either"
    )


def _other_soft_keys(variant: TermVariant) -> list[str]:
    """Return the topology keys of the other ScheduleAnyway constraints of the pods, if the term is one."""
    if not variant.term.spread or variant.term.required:
        return []
    terms = variant.holder.terms
    keys = dict.fromkeys(term.topology_key for term in terms if term.spread and not term.required)
    return [key for key in keys if key != variant.term.topology_key]


def _severity_of_key(variants: Sequence[TermVariant], rule_input: TermInput) -> Severity:
    """Return the severity of a topology key that no node has."""
    first, term = variants[0], variants[0].term
    if term.required and not term.anti:
        scheduler = first.holder.scheduler_name or DEFAULT_SCHEDULER
        is_known = rule_input.audit.snapshot.schedulers.get(scheduler) is not None
        if isinstance(rule_input, TemplateInput):
            waits = rule_input.template.replicas != 0 and not rule_input.beside_pods
        else:
            waits = any(not pod.node for variant in variants for pod in variant.pods)
        return Severity.ERROR if waits and is_known else Severity.WARNING
    if term.topology_key not in _OF_PLACES:
        return Severity.WARNING
    needless = not _other_soft_keys(first) if term.spread else kept_apart_otherwise(first, rule_input)
    is_single = len(rule_input.audit.nodes.nodes) == 1
    return Severity.INFO if needless or is_single else Severity.WARNING


WRONG_TOPOLOGY_KEY: Final = Rule(
    code="SPR218",
    name="wrong-topology-key",
    severity=Severity.WARNING,
    summary="No node has the label that topologyKey names, or it is a well-known mistake",
    message="{fault} {effect}.",
    fix="use a topology key that the nodes have, or label the nodes with {topology_key}",
    reads_nodes=True,
    explains_exposure=True,
    of_pods=_wrong_key,
    of_template=_wrong_key,
)
