"""Topology of terms: which pods does an affinity term select, does its key tell nodes apart, which key is meant?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.topologykeys import is_separating, nearest_key, standard_key
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.engine.node_answers import answers_of
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labelled, Operator
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.apiserver import CURRENT_KEYS
from kubectl_spread.memoization import memoized
from kubectl_spread.phrases import noun, plural
from kubectl_spread.report.model import Operation
from kubectl_spread.rules import patches
from kubectl_spread.rules.inputs import RuleInput, TermInput, TermVariant, variants_of
from kubectl_spread.rules.model import Remedy
from kubectl_spread.rules.remedy import changed, in_file, labelled, literal

_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The label by which the API server names each namespace."""


def selects_own(variant: TermVariant, rule_input: RuleInput) -> bool:
    """Tell whether an affinity term selects the pods that have it, as far as their labels are known."""
    return (
        variant.authored is not None
        and not variant.unmet
        and not leaves_out_own(variant)
        and covers_namespace(variant.term, rule_input.namespace, rule_input) is not False
    )


def keeps_own_apart(variant: TermVariant, rule_input: RuleInput) -> bool:
    """Tell whether an anti-affinity term selects the pods that have it, and keeps them apart by its key.

    A required term does so even where all nodes have one value, because only one of the pods can run there.
    """
    term, audit = variant.term, rule_input.audit
    if not (term.anti and selects_own(variant, rule_input)):
        return False
    lets_one_run = term.required and bool(audit.nodes.number_of_values(term.topology_key))
    return lets_one_run or _separates(term.topology_key, rule_input)


def kept_apart_otherwise(variant: TermVariant, rule_input: RuleInput) -> bool:
    """Tell whether another term, or a spread constraint, keeps the pods apart that have a term."""
    return any(
        keeps_own_apart(other, rule_input)
        or (other.term.spread and not other.unmet and _separates(other.term.topology_key, rule_input))
        for other in variants_of(variant.holder, rule_input.behaviour)
        if other.term.path != variant.term.path
    )


def _separates(key: str, rule_input: RuleInput) -> bool:
    audit = rule_input.audit
    return is_separating(key, audit.nodes) if audit.evaluator.lists_nodes else not standard_key(key)


def leaves_out_own(variant: TermVariant) -> bool:
    """Tell whether a term is written to leave out the pods that have it, so that it is about others."""
    negative = (Operator.NOT_IN, Operator.DOES_NOT_EXIST)
    return any(key in variant.labels for key in variant.term.mismatch_label_keys) or any(
        requirement.operator in negative for requirement in variant.unmet
    )


def covers_namespace(term: TopologyTerm, namespace: str, rule_input: RuleInput) -> bool | None:
    """Tell whether a term is about pods of a namespace; None: labels of it decide that were not read."""
    selector = term.namespace_selector
    if selector is None or namespace in term.namespaces:
        return namespace in (term.namespaces or (rule_input.namespace,))
    labels = rule_input.audit.snapshot.anti_affinity.namespaces.get(namespace)
    if labels is not None:
        return labelselectors.matches(selector, labels)
    requirements = list(labelselectors.requirements(selector))
    by_name = [each for each in requirements if each.key == _NAMESPACE_NAME]
    if not all(labelselectors.satisfies(each, {_NAMESPACE_NAME: namespace}) for each in by_name):
        return False
    return True if len(by_name) == len(requirements) else None


def selects_others(variant: TermVariant, rule_input: RuleInput) -> bool:
    """Tell whether a term selects pods of other workloads, or of their templates, that were read."""
    selector = variant.effective
    if selector is None:
        return False
    by_namespace = _workloads(rule_input.audit)
    return any(
        workload != rule_input.workload
        for namespace, workloads in by_namespace.items()
        if covers_namespace(variant.term, namespace, rule_input)
        for _, workload in workloads.selected(selector)
    )


@memoized
def _workloads(audit: Audit) -> Mapping[str, Labelled[ObjectRef | None]]:
    """Return the workloads of pods and templates by namespace and labels; None for the pods out of scope."""
    snapshot = audit.snapshot
    by_namespace: dict[str, Labelled[ObjectRef | None]] = {}
    workloads: dict[tuple[str, frozenset[tuple[str, str]], ObjectRef | None], Mapping[str, str]] = {}
    for pod in snapshot.pods:
        labels = pod.pod_class.labels
        workloads[pod.namespace, frozenset(labels.items()), snapshot.workload(pod)] = labels
    for template in snapshot.templates:
        labels = template.labels
        workloads[template.namespace, frozenset(labels.items()), snapshot.root(template)] = labels
    in_scope = {key[:2] for key in workloads}
    for namespace, population in snapshot.populations().items():
        for labels, _ in population:
            key = (namespace, frozenset(labels.items()))
            if key not in in_scope:
                workloads[(*key, None)] = labels
    for (namespace, _, workload), labels in workloads.items():
        by_namespace.setdefault(namespace, Labelled()).add(labels, workload)
    return by_namespace


def use_key(
    key: str, variants: Sequence[TermVariant], rule_input: TermInput, text: str = "use {key}", *, patch: bool = True
) -> Remedy:
    """Return how to give a term another topology key, as a patch; a constraint with that key may be there already.

    Args:
        key: The topology key.
        variants: The variants of the term.
        rule_input: The workload.
        text: What to do in words.
        patch: Whether a patch is safe.
    """
    term, text = variants[0].term, literal(text.replace("{key}", key))
    duplicate = term.spread and any(other.spread and other.topology_key == key for other in variants[0].holder.terms)
    alike = all(variant.term.topology_key == term.topology_key for variant in variants)
    if duplicate:
        return Remedy(literal(f"remove the constraint: another one has the topologyKey {key}"))
    if not alike or not patch:
        return changed(text, (), rule_input)
    operations = patches.replaced(rule_input.term_path / "topologyKey", term.topology_key, key)
    audit = rule_input.audit
    acts = audit.evaluator.lists_nodes and is_separating(term.topology_key, audit.nodes)
    return changed(text, operations, rule_input) if acts else acting(text, operations, variants[0], key, rule_input)


def acting(text: str, operations: Sequence[Operation], variant: TermVariant, key: str, rule_input: TermInput) -> Remedy:
    """Return a change after which a term acts, with the topology key ``key``.

    Required anti-affinity keeps pods pending where there are few nodes, so that its patch needs enough of them.
    """
    remedy, term = changed(text, operations, rule_input), variant.term
    shortage = _shortage(variant, key, rule_input) if term.anti and term.required and remedy.patch else ""
    return Remedy(f"{text}. {shortage}") if shortage else remedy


def _shortage(variant: TermVariant, key: str, rule_input: TermInput) -> str:
    """Return why a required anti-affinity term over ``key`` may keep pods pending, as a sentence; "" if it does not."""
    audit = rule_input.audit
    template = rule_input.pod_template
    if not audit.evaluator.lists_nodes:
        return "" if in_file(rule_input) else "It is required, and nodes were not read: make sure that there are enough"
    usable = audit.nodes.usable(variant.holder.placement)
    first = next(iter(variant.pods), None)
    answers = None if first is None else answers_of(audit.evaluator.of(first.pod_class), first, audit)
    domains = {
        domain
        for node, domain in audit.nodes.value_of(key).items()
        if usable[node].schedulable and (answers is None or answers.obstacle(node) is None)
    }
    if template is None or template.replicas is None or selects_others(variant, rule_input):
        return "The term is required, so make sure that there are enough nodes"
    surge = int(template.kind == "Deployment" and template.pace.surge > 0 and not template.pace.unavailable)
    needed = template.replicas + (0 if in_file(rule_input) else surge)
    if len(domains) >= needed:
        return ""
    steps = ["add nodes", "make the term preferred"]
    if surge and len(domains) >= template.replicas:
        steps.append("set maxUnavailable: 1 for the rollout")
    return (
        f"Not yet: the term is required, so it needs {plural(needed, noun(key))} that can take a pod, and there "
        f"{'is' if len(domains) == 1 else 'are'} {len(domains)}. First {', '.join(steps[:-1])} or {steps[-1]}"
    )


def unknown_key(key: str, rule_input: RuleInput) -> str:
    """Return that no node has a topology key and which was probably meant, as a clause; "" where nodes have it."""
    audit = rule_input.audit
    if audit.nodes.number_of_values(key):
        return ""
    probable = probable_key(key, rule_input)
    return f"No node has the label {key}" + (f"; did you mean {probable}?" if probable else "")


def probable_key(key: str, rule_input: RuleInput) -> str:
    """Return the label of the nodes that is probably meant by a topology key that none has; "" for none."""
    return _nearest_key(rule_input.audit, key)


@memoized
def _nearest_key(audit: Audit, key: str) -> str:
    return nearest_key(key, audit.nodes)


def right_key(variants: Sequence[TermVariant], rule_input: TermInput) -> Remedy:
    """Return how to correct a topology key that no node has: the right key first, then labels for the nodes."""
    key = variants[0].term.topology_key
    probable = probable_key(key, rule_input)
    if not probable:
        remedy = labelled(rule_input.audit.nodes.lacking(key), key, rule_input)
        return remedy if remedy.commands else Remedy(literal(_unlabelled(variants[0].term)))
    other = "" if key in CURRENT_KEYS else f", or label the nodes (kubectl label node NODE {key}=VALUE)"
    return use_key(probable, variants, rule_input, f"use {{key}}{other}")


def _unlabelled(term: TopologyTerm) -> str:
    """Return the fix for a topology key that no node has and that resembles none of their labels."""
    label = f"label the nodes (kubectl label node NODE {term.topology_key}=VALUE)"
    return f"{label}, use a topology key that they have, or remove the {'constraint' if term.spread else 'term'}"
