"""SPR210 to SPR213 and SPR219: what of a workload, or of nodes, takes the effect from constraints, or adds one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_spread.audit.snapshot.default_constraints import API_VERSIONS
from kubectl_spread.audit.snapshot.records import DEFAULT_SCHEDULER
from kubectl_spread.audit.snapshot.revisions import LABELS
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.types import (
    NodeInclusionPolicy,
    PodSpec,
    TopologySpreadConstraint,
    WhenUnsatisfiable,
    affinity_terms,
)
from kubectl_spread.kube.apiserver import CURRENT_KEYS
from kubectl_spread.kube.custom import base_kind
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import nodeaffinity
from kubectl_spread.kube.scheduler.configuration import WITHOUT_DEFAULTS, Profile
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import working_constraint
from kubectl_spread.kube.scheduler.podtopologyspread.domains import Placement
from kubectl_spread.phrases import domains, some
from kubectl_spread.report.model import Operation, Severity
from kubectl_spread.rules import patches
from kubectl_spread.rules.inputs import PodsInput, TemplateInput, TermInput, TermVariant, WorkloadInput
from kubectl_spread.rules.model import Evidence, Remedy, Rule, Values, names, together
from kubectl_spread.rules.remedy import changed, in_file
from kubectl_spread.rules.topology import use_key

KEEPS_OFF: Final = "the constraint can only keep a pod off its node"
NOTHING_TO_SPREAD: Final = "there is nothing to spread"
OF_TEMPLATE: Final = {"effect": "All pods of the template go to that node", "whose": "their"}
OF_POD: Final = {"effect": "The pod goes to that node", "whose": "its"}
UNKNOWN_SPREADING: Final = "it is unknown how that scheduler spreads them"
_DISABLED: Final = "its profile disables PodTopologySpread, so that their constraints have no effect"
_NAME_DEFAULT: Final = "add a profile of default-scheduler to the file of --scheduler-config"
_ENABLE: Final = "enable PodTopologySpread in the profile, or remove topologySpreadConstraints"
_REMOVE: Final = "remove topologySpreadConstraints"
_REMOVE_NODE_NAME: Final = "remove spec.nodeName, and choose nodes by nodeSelector or node affinity"
_USE_CURRENT: Final = "use {current}"
_SEVERAL: Final = 2
_WITH_DEFAULTS: Final = frozenset({*API_VERSIONS, "Deployment", "Rollout"})
"""The kinds whose pods get default constraints even without a Service that selects them."""
_ADD_ZONE: Final = (
    f"add a constraint on {ZONE} with ScheduleAnyway to topologySpreadConstraints, which keeps no pod pending"
)
_ADD_ZONE_LATER: Final = (
    f"{_ADD_ZONE}, and the label of revisions to matchLabelKeys of the constraint on {HOSTNAME}: without it a rollout "
    "may leave the nodes uneven, because the constraint counts old pods until they are gone"
)
_LABEL_ZONES: Final = f"label all nodes with {ZONE}, and then {_ADD_ZONE}"


def _daemon_set_spread(rule_input: TermInput) -> Iterator[Evidence]:
    variants = [
        variant
        for variant in rule_input.variants
        if base_kind(variant.holder.kind) == "DaemonSet" and variant.term.spread
    ]
    refusing = [variant for variant in variants if _may_refuse_only_node(variant, rule_input.behaviour)]
    effect = KEEPS_OFF if refusing else NOTHING_TO_SPREAD
    yield from together(
        refusing or variants,
        {"effect": effect},
        Severity.WARNING if refusing else Severity.INFO,
        changed(_REMOVE, _without_constraints(rule_input), rule_input) if variants else None,
    )


def _without_constraints(rule_input: TermInput) -> tuple[Operation, ...]:
    """Return operations that remove all spread constraints; none if the pods do not have the same ones.

    The indices of constraints would change if each were removed by itself.
    """
    holders = [variant.holder for variant in rule_input.variants]
    first, *others = [[term.topology_key for term in holder.terms if term.spread] for holder in holders]
    if any(keys != first for keys in others):
        return ()
    path = rule_input.pod_spec / "topologySpreadConstraints"
    tests = (patches.test(path / index / "topologyKey", key) for index, key in enumerate(first))
    return (*tests, Operation(op="remove", path=path.pointer))


def _may_refuse_only_node(variant: TermVariant, behaviour: Behaviour) -> bool:
    if variant.term.constraint is None:
        return False
    constraint = working_constraint(variant.term.constraint, variant.effective, behaviour)
    counts_all_nodes = constraint.node_affinity_policy is NodeInclusionPolicy.IGNORE
    return constraint.hard and (counts_all_nodes or constraint.min_domains > 1)


def _node_name(rule_input: PodsInput) -> Iterator[Evidence]:
    """Yield pods with a node in their manifest, once for each workload.

    The node of a stored pod is left out: the scheduler may have set it.
    """
    manifests = [
        variant
        for variant in rule_input.variants
        if variant.first and not variant.stored and any(pod.node for pod in variant.pods)
    ]
    nodes = sorted({pod.node for variant in manifests for pod in variant.pods})
    values: Values = {"node": some(nodes), **OF_POD}
    yield from together(manifests, values, fix=_without_node_name(nodes, rule_input))


def _node_name_of_template(rule_input: TemplateInput) -> Iterator[Evidence]:
    if node := rule_input.template.spec.node_name:
        values: Values = {"node": node, **OF_TEMPLATE}
        first = [variant for variant in rule_input.variants if variant.first]
        yield from together(first, values, Severity.WARNING, _without_node_name([node], rule_input))


def _without_node_name(nodes: list[str], rule_input: TermInput) -> Remedy:
    path = rule_input.pod_spec / "nodeName"
    return changed(_REMOVE_NODE_NAME, patches.removed(path, nodes[0]) if len(nodes) == 1 else (), rule_input)


def _unknown_scheduler(rule_input: TermInput) -> Iterator[Evidence]:
    """Yield pods of schedulers that are unknown or do not spread, once for each workload.

    That the default scheduler is one of them is probably a mistake in --scheduler-config.
    """
    variants = [variant for variant in rule_input.variants if variant.first and variant.term.spread]
    for variant in variants:
        scheduler = variant.holder.scheduler_name or DEFAULT_SCHEDULER
        profile = rule_input.audit.snapshot.schedulers.get(scheduler)
        if profile is None or not profile.spreads:
            values: Values = {"scheduler": scheduler, "spreading": _DISABLED if profile else UNKNOWN_SPREADING}
            mistake = profile is not None or scheduler == DEFAULT_SCHEDULER
            fix = _ENABLE if profile else _NAME_DEFAULT
            alike = [each for each in variants if each.holder.scheduler_name == variant.holder.scheduler_name]
            yield from together(alike, values, Severity.WARNING if mistake else None, fix if mistake else None)
            return


def _deprecated_topology_key(rule_input: TermInput) -> Iterator[Evidence]:
    variants = [variant for variant in rule_input.variants if variant.term.topology_key in CURRENT_KEYS]
    if variants:
        term = variants[0].term
        since, current = CURRENT_KEYS[term.topology_key]
        effect = effect_without_label(anti=term.anti, required=term.required)
        values: Values = {"key": term.topology_key, "since": since, "current": current, "effect": effect}
        yield from together(variants, values, fix=_current_key(variants, rule_input))


def effect_without_label(*, anti: bool, required: bool) -> str:
    """Return the effect of a term, such as one of anti-affinity, on nodes that lack its topology key."""
    if anti:
        return "the term keeps no pod away from nodes without it"
    if required:
        return "nodes without it take none of the pods"
    return "nodes without it are not ranked by the term"


def _current_key(variants: Sequence[TermVariant], rule_input: TermInput) -> Remedy:
    """Return the patch with the current key, unless nodes lack it."""
    key = variants[0].term.topology_key
    _, current = CURRENT_KEYS[key]
    return use_key(current, variants, rule_input, patch=not _lacks(current, key, rule_input))


def _lacks(current: str, deprecated: str, rule_input: TermInput) -> bool:
    """Tell whether a node has a deprecated label and not the one that replaces it."""
    labels_of_nodes = [node.metadata.labels for node in rule_input.audit.snapshot.nodes]
    return any(deprecated in labels and current not in labels for labels in labels_of_nodes)


def _zone_default_off(rule_input: WorkloadInput) -> Iterator[Evidence]:
    """Yield workloads whose only spread is by hostname, if the scheduler would prefer other zones without it."""
    replicas = rule_input.replicas
    several = [template for template in replicas.templates if (template.replicas or 0) >= _SEVERAL]
    specs = [template.spec for template in several if template.kind in _WITH_DEFAULTS]
    if not replicas.templates and len(replicas.pods) >= _SEVERAL:
        classes = dict.fromkeys(pod.pod_class for pod in replicas.pods)
        specs = [each.spec for each in classes if each.kind in _WITH_DEFAULTS]
    if not specs or not all(_spreads_by_hostname_alone(spec, rule_input) for spec in specs):
        return
    if not rule_input.audit.snapshot.nodes:
        if not any(_names_a_zone(spec) for spec in specs):
            yield Evidence(names(replicas.pods), {"zones": ""}, fix=_with_zone(rule_input))
        return
    zones = [_zones(spec, rule_input) for spec in specs]
    if all(len(zones_of_spec - {None}) >= _SEVERAL for zones_of_spec in zones):
        zone_names = sorted({zone for zones_of_spec in zones for zone in zones_of_spec if zone is not None})
        values: Values = {"zones": f" The nodes that the pods may use are in {domains(ZONE, zone_names)}."}
        zoned = not any(None in zones_of_spec for zones_of_spec in zones)
        yield Evidence(names(replicas.pods), values, fix=_with_zone(rule_input) if zoned else _LABEL_ZONES)


def _spreads_by_hostname_alone(spec: PodSpec, rule_input: WorkloadInput) -> bool:
    """Tell whether pods have constraints on nodes alone, and nothing else places them by zones, nodes or other pods."""
    keys = {constraint.topology_key for constraint in spec.topology_spread_constraints}
    terms = [("podAntiAffinity" in path, term.topology_key) for path, term, _ in affinity_terms(spec)]
    apart = all(anti and key == HOSTNAME for anti, key in terms)
    return keys == {HOSTNAME} and apart and not spec.node_name and _has_zone_default(spec, rule_input)


def _names_a_zone(spec: PodSpec) -> bool:
    """Tell whether nodeSelector or required node affinity names zones, perhaps one alone."""
    selector = nodeaffinity.required(spec.affinity)
    terms = () if selector is None else selector.node_selector_terms
    keys = (requirement.key for term in terms for requirement in term.match_expressions)
    return ZONE in spec.node_selector or ZONE in keys


def _has_zone_default(spec: PodSpec, rule_input: WorkloadInput) -> bool:
    """Tell whether the pods' scheduler may prefer other zones for pods without constraints."""
    schedulers = rule_input.audit.snapshot.schedulers
    profile = schedulers.get(spec.scheduler_name or DEFAULT_SCHEDULER)
    if schedulers is WITHOUT_DEFAULTS:
        profile = profile and Profile()
    return profile is not None and any(constraint.topology_key == ZONE for constraint in profile.defaults)


def _zones(spec: PodSpec, rule_input: WorkloadInput) -> set[str | None]:
    """Return the zones of the nodes that the pods may use, with None for nodes that have no zone."""
    placement, nodes = Placement(spec.node_selector, spec.affinity, spec.tolerations), rule_input.audit.nodes
    usable = nodes.usable(placement)
    return {node.metadata.labels.get(ZONE) for node in nodes.nodes if usable[node.metadata.name].schedulable}


def _counts_old_pods(constraint: TopologySpreadConstraint) -> bool:
    """Tell whether a hard constraint counts the pods of all revisions, so that new ones may be uneven without them."""
    hard = constraint.when_unsatisfiable == WhenUnsatisfiable.DO_NOT_SCHEDULE
    return hard and set(LABELS).isdisjoint(constraint.match_label_keys)


def _with_zone(rule_input: WorkloadInput) -> Remedy:
    """Return the patch that adds a soft constraint on zones with the selector of the first constraint."""
    path = rule_input.pod_spec / "topologySpreadConstraints"
    constraints = [
        template.spec.topology_spread_constraints
        for template in rule_input.replicas.templates
        if template.holder == rule_input.workload
    ]
    if len(constraints) != 1 or constraints[0][0].label_selector is None:
        return changed(_ADD_ZONE, (), rule_input)
    own = constraints[0]
    if not in_file(rule_input) and any(map(_counts_old_pods, own)):
        return Remedy(_ADD_ZONE_LATER)
    added = patches.soft_constraint(ZONE, own[0].label_selector, rule_input.workload.kind, own[0].match_label_keys)
    tests = (patches.test(path / index / "topologyKey", HOSTNAME) for index in range(len(own)))
    # In front of the others, so that the tests fail if the patch is applied again.
    return changed(_ADD_ZONE, (*tests, Operation(op="add", path=(path / 0).pointer, value=added)), rule_input)


DAEMON_SET_SPREAD: Final = Rule(
    code="SPR210",
    name="daemon-set-spread",
    severity=Severity.INFO,
    summary="A DaemonSet has a spread constraint, although each of its pods is made for one node",
    message="Each pod of a DaemonSet is made for one node, so {effect}.",
    fix=_REMOVE,
    of_pods=_daemon_set_spread,
    of_template=_daemon_set_spread,
)
NODE_NAME: Final = Rule(
    code="SPR211",
    name="node-name",
    severity=Severity.INFO,
    summary="spec.nodeName is set, so the scheduler does not place the pod and ignores its constraints",
    message="spec.nodeName is {node}. {effect}, and the scheduler ignores {whose} constraints.",
    fix=_REMOVE_NODE_NAME,
    of_pods=_node_name,
    of_template=_node_name_of_template,
)
UNKNOWN_SCHEDULER: Final = Rule(
    code="SPR212",
    name="unknown-scheduler",
    severity=Severity.INFO,
    summary="A scheduler that is not known to be kube-scheduler places the pods",
    message=("schedulerName is {scheduler}. The selectors of the pods are evaluated, but {spreading}."),
    fix="nothing to do if that scheduler respects spread constraints. Name profiles of kube-scheduler by "
    "--scheduler-config",
    of_pods=_unknown_scheduler,
    of_template=_unknown_scheduler,
)
DEPRECATED_TOPOLOGY_KEY: Final = Rule(
    code="SPR213",
    name="deprecated-topology-key",
    severity=Severity.WARNING,
    summary="topologyKey is a deprecated node label",
    message="topologyKey {key} is deprecated since Kubernetes {since}, and {effect}.",
    fix=_USE_CURRENT,
    of_pods=_deprecated_topology_key,
    of_template=_deprecated_topology_key,
)
ZONE_DEFAULT_OFF: Final = Rule(
    code="SPR219",
    name="zone-default-off",
    severity=Severity.INFO,
    summary="A constraint on hostname alone switches off the scheduler's default constraint on zones",
    message=(
        "The only constraints of the pods are on kubernetes.io/hostname. They switch off the default constraints of "
        "kube-scheduler, one of which prefers other zones, so nothing spreads the pods over zones.{zones}"
    ),
    fix=_ADD_ZONE,
    reads_nodes=False,
    of_workload=_zone_default_off,
)
