"""SPR218: topology keys that no node has, or that are well-known mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_spread.audit.evaluation.topologykeys import standard_key
from kubectl_spread.audit.snapshot.records import DEFAULT_SCHEDULER
from kubectl_spread.kube.api.labels import HOSTNAME, REGION, ZONE
from kubectl_spread.phrases import capitalized, listed, sentence
from kubectl_spread.report.model import Severity
from kubectl_spread.rules.inputs import PodsInput, TemplateInput, TermInput, TermVariant
from kubectl_spread.rules.model import Evidence, Rule, Values, names
from kubectl_spread.rules.topology import kept_apart_otherwise, probable_key, right_key, unknown_key, use_key

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
        effect = _effect(variants, rule_input)
        values: Values = {
            "fault": sentence(fault),
            "effect": capitalized(effect if lists_nodes else f"unless somebody labels the nodes with it, {effect}"),
            "topology_key": key,
        }
        pods = {pod.name: pod for variant in variants for pod in variant.pods}
        yield Evidence(
            names(pods.values()),
            values,
            _severity(variants, rule_input) if lists_nodes else None,
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


def _effect(variants: Sequence[TermVariant], rule_input: TermInput) -> str:
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


def _severity(variants: Sequence[TermVariant], rule_input: TermInput) -> Severity:
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
