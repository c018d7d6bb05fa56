"""SPR216 and SPR217: terms of pod affinity and anti-affinity that do not keep the pods apart that have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from kubectl_spread.audit.evaluation.topologykeys import is_separating, standard_key
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import HOSTNAME, REGION, ZONE, Labelled, Operator
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.custom import base_kind
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Placement
from kubectl_spread.phrases import listed, noun, plural, value
from kubectl_spread.report.model import Operation, Severity
from kubectl_spread.rules import patches
from kubectl_spread.rules.constraints.no_effect import Mismatch, mismatches
from kubectl_spread.rules.inputs import RuleInput, TermVariant, variants_of
from kubectl_spread.rules.model import KUBERNETES, Evidence, Remedy, Rule, Values, names, together
from kubectl_spread.rules.remedy import changed, in_file, literal

_PLUGIN: Final = f"{KUBERNETES}/pkg/scheduler/framework/plugins/interpodaffinity"
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The label by which the API server names each namespace."""
_SEVERAL: Final = 2
_WITHOUT_REPLICAS: Final = frozenset({"", "CronJob", "DaemonSet", "Job"})
"""Controllers whose pods do not stand in for each other; "" for none."""
_FEW_VALUES: Final = frozenset(f"{prefix}kubernetes.io/{name}" for prefix in ("", "beta.") for name in ("arch", "os"))


def selects_own(variant: TermVariant, rule_input: RuleInput) -> bool:
    """Tell whether an affinity term selects the pods that have it, as far as their labels are known."""
    return (
        variant.authored is not None
        and not variant.unmet
        and not _leaves_out_own(variant)
        and _covers(variant.term, rule_input.namespace, rule_input) is not False
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
    holder = variant.template or variant.pod_class
    return any(
        keeps_own_apart(other, rule_input)
        or (other.term.spread and not other.unmet and _separates(other.term.topology_key, rule_input))
        for other in (() if holder is None else variants_of(holder, rule_input.behaviour))
        if other.term.path != variant.term.path
    )


def _separates(key: str, rule_input: RuleInput) -> bool:
    audit = rule_input.audit
    return is_separating(key, audit.nodes) if audit.evaluator.lists_nodes else not standard_key(key)


def _leaves_out_own(variant: TermVariant) -> bool:
    """Tell whether a term is written to leave out the pods that have it, so that it is about others."""
    negative = (Operator.NOT_IN, Operator.DOES_NOT_EXIST)
    return any(key in variant.labels for key in variant.term.mismatch_label_keys) or any(
        requirement.operator in negative for requirement in variant.unmet
    )


def _covers(term: TopologyTerm, namespace: str, rule_input: RuleInput) -> bool | None:
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


def _selects_others(variant: TermVariant, rule_input: RuleInput) -> bool:
    """Tell whether a term selects pods of other workloads, or of their templates, that were read."""
    selector, snapshot = variant.effective, rule_input.audit.snapshot
    if selector is None:
        return False
    by_namespace = rule_input.answers.remember(_workloads, lambda: _workloads(snapshot))
    return any(
        workload != rule_input.workload
        for namespace, workloads in by_namespace.items()
        if _covers(variant.term, namespace, rule_input)
        for _, workload in workloads.selected(selector)
    )


def _workloads(snapshot: Snapshot) -> Mapping[str, Labelled[ObjectRef | None]]:
    """Return the workloads of pods and templates by namespace and labels; None for the pods out of scope."""
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
    key: str, variants: Sequence[TermVariant], rule_input: RuleInput, text: str = "use {key}", *, patch: bool = True
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
    template, pod_class = rule_input.template, variants[0].pod_class
    terms = template.terms if template is not None else () if pod_class is None else pod_class.terms
    duplicate = term.spread and any(other.spread and other.topology_key == key for other in terms)
    alike = all(variant.term.topology_key == term.topology_key for variant in variants)
    if duplicate:
        return Remedy(literal(f"remove the constraint: another one has the topologyKey {key}"))
    if not alike or not patch:
        return changed(text, (), rule_input)
    operations = patches.replaced(rule_input.term_path / "topologyKey", term.topology_key, key)
    audit = rule_input.audit
    acts = audit.evaluator.lists_nodes and is_separating(term.topology_key, audit.nodes)
    return changed(text, operations, rule_input) if acts else _acting(text, operations, variants[0], key, rule_input)


def _acting(
    text: str, operations: Sequence[Operation], variant: TermVariant, key: str, rule_input: RuleInput
) -> Remedy:
    """Return a change after which a term acts, with the topology key ``key``.

    Required anti-affinity keeps pods pending where there are few nodes, so that its patch needs enough of them.
    """
    remedy, term = changed(text, operations, rule_input), variant.term
    shortage = _shortage(variant, key, rule_input) if term.anti and term.required and remedy.patch else ""
    return Remedy(f"{text}. {shortage}") if shortage else remedy


def _shortage(variant: TermVariant, key: str, rule_input: RuleInput) -> str:
    """Return why a required anti-affinity term over ``key`` may keep pods pending, as a sentence; "" if it does not."""
    audit, pod_class = rule_input.audit, variant.pod_class
    template = rule_input.template or audit.template_of(rule_input.workload)
    if not audit.evaluator.lists_nodes:
        return "" if in_file(rule_input) else "It is required, and nodes were not read: make sure that there are enough"
    usable = audit.nodes.usable(_placement(variant))
    domains = {
        domain
        for node, domain in audit.nodes.value_of(key).items()
        if usable[node].schedulable and (pod_class is None or audit.obstacles.of(pod_class, node) is None)
    }
    if template is None or template.replicas is None or _selects_others(variant, rule_input):
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


def _placement(variant: TermVariant) -> Placement:
    """Return the parts of the spec that decide which nodes the pods of a variant may use."""
    if variant.template is None:
        return Placement({}, None, ()) if variant.pod_class is None else variant.pod_class.placement
    spec = variant.template.spec
    return Placement(spec.node_selector, spec.affinity, spec.tolerations)


def _has_replicas(rule_input: RuleInput) -> bool:
    """Tell whether a workload has several pods that stand in for each other; True where their number is unknown."""
    template = rule_input.template or rule_input.audit.template_of(rule_input.workload)
    kinds = {base_kind(variant.kind) for variant in rule_input.variants}
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


def _anti_self_mismatch(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield the pods that their own anti-affinity term does not select."""
    variants = [
        variant
        for variant in rule_input.variants
        if variant.term.anti and variant.authored is not None and not variant.term.parse_error
        if not (_leaves_out_own(variant) or selects_own(variant, rule_input))
    ]
    for mismatch in _anti_mismatches(variants, rule_input):
        first = mismatch.variants[0]
        covers_own = _covers(first.term, rule_input.namespace, rule_input) is not False
        effect = _APART
        if any(_selects_others(variant, rule_input) for variant in mismatch.variants):
            effect = _OTHERS
        elif not _has_replicas(rule_input) or (first.unmet and not covers_own):
            effect = _NONE
        is_fault = effect is _APART
        values: Values = {**mismatch.values, "effect": effect}
        severity = None if is_fault else Severity.INFO
        yield from together(mismatch.variants, values, severity, mismatch.fix if is_fault else _NO_FAULT)


def _anti_mismatches(variants: Sequence[TermVariant], rule_input: RuleInput) -> Iterator[Mismatch]:
    """Yield the variants whose labels do not match, then those that are only about other namespaces."""
    if not variants:
        return
    change = partial(_acting, variant=variants[0], key=variants[0].term.topology_key, rule_input=rule_input)
    yield from mismatches([variant for variant in variants if variant.unmet], rule_input, change)
    elsewhere = [variant for variant in variants if not variant.unmet]
    if elsewhere:
        term = elsewhere[0].term
        by_labels = f"a namespace with {labelselectors.describe(term.namespace_selector)}"
        asked = f"namespace {listed(term.namespaces)}" if term.namespaces else by_labels
        values: Values = {"asked": asked, "have": f"namespace {rule_input.namespace}", "template": ""}
        removed = patches.removed(rule_input.term_path / "namespaces", list(term.namespaces))
        fix = change(_OWN_NAMESPACE, removed) if term.namespace_selector is None else _WIDER
        yield Mismatch(elsewhere, values, fix)


ANTI_SELF_MISMATCH: Final = Rule(
    code="SPR216",
    name="anti-affinity-self-mismatch",
    severity=Severity.WARNING,
    summary="An anti-affinity term does not select the pods that have it",
    message="The anti-affinity term requires {asked}, but its own pods have {have}{template}. {effect}.",
    why=(
        "An anti-affinity term keeps pods away from the pods that its selector selects, in its namespaces. Replicas "
        "are kept apart only if the selector selects the labels of their own template. A term with NotIn, "
        "DoesNotExist or mismatchLabelKeys that leaves out its own pods is meant for others and is not reported."
    ),
    fix="make labelSelector and the labels of the pod template agree",
    source=f"{_PLUGIN}/filtering.go",
    cases=(
        (Severity.WARNING, "A workload with several replicas, where the term selects no other pod that was read."),
        (
            Severity.INFO,
            "The term selects other pods, names other namespaces, or the pods have no replicas to be kept apart from.",
        ),
    ),
    remedies=("command", "patch"),
    no_remedy=(
        "A patch needs a workload whose selector and pod template were read, and for a required term nodes for all "
        "pods. A term that selects other pods may be right."
    ),
    explains_exposure=True,
    check=_anti_self_mismatch,
)


def _one_value(rule_input: RuleInput) -> Iterator[Evidence]:
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


def _only_value(variant: TermVariant, rule_input: RuleInput) -> str:
    """Return that all nodes have the same value of the topology key, in words; "" if they do not."""
    audit, key = rule_input.audit, variant.term.topology_key
    nodes = audit.nodes
    if not audit.evaluator.lists_nodes:
        return f"Most nodes have the same value of {key}" if variant.term.anti and key in _FEW_VALUES else ""
    fitting = nodes.usable(_placement(variant)).fits
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


def _effect(variants: Sequence[TermVariant], rule_input: RuleInput) -> tuple[Severity, str]:
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
    pending = any(not pod.node and not pod.terminating for variant in variants for pod in variant.pods)
    unplaced = rule_input.template is not None and not rule_input.beside_pods and rule_input.audit.evaluator.lists_nodes
    single = "at most one of the pods can run"
    if has_replicas and (pending or unplaced):
        return Severity.ERROR, single
    return Severity.WARNING if has_replicas else Severity.INFO, single


def _other_key(variants: Sequence[TermVariant], severity: Severity, rule_input: RuleInput) -> Remedy | str:
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
    why=(
        "All nodes with the same value of the topology key are one domain. A preferred anti-affinity term then ranks "
        "all nodes alike, a required one lets one of its pods run in the whole cluster, and an affinity term is met "
        "everywhere. Labels such as kubernetes.io/os and kubernetes.io/arch, or the zone where there is one, tell no "
        "nodes apart."
    ),
    fix=f"use {HOSTNAME}, which keeps the pods on different nodes",
    source=f"{_PLUGIN}/scoring.go",
    cases=(
        (Severity.ERROR, "A required anti-affinity term leaves replicas pending."),
        (Severity.WARNING, "An anti-affinity term does not keep replicas apart, or lets only one of them run."),
        (
            Severity.INFO,
            "Another term or constraint keeps the pods apart, there is one replica, or it is a term of pod affinity.",
        ),
    ),
    remedies=("command", "patch"),
    no_remedy=(
        "An affinity term may be meant for any node, another term may keep the pods apart, and a required term needs "
        "enough nodes."
    ),
    reads_nodes=True,
    explains_exposure=True,
    check=_one_value,
)
