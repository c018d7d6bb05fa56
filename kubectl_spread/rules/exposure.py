"""SPR5xx: all running pods, or most of them, in one domain, and workloads that nothing spreads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.snapshot.default_constraints import may_have_defaults
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.templates import Template
from kubectl_spread.diagnosis.exposure import Exposure, Exposures
from kubectl_spread.diagnosis.siblings import Siblings
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.scheduler import configuration
from kubectl_spread.memoization import memoized
from kubectl_spread.phrases import domains, listed, named, noun, value
from kubectl_spread.report.model import Operation, Severity
from kubectl_spread.rules import patches
from kubectl_spread.rules.inputs import WorkloadInput, variants_of
from kubectl_spread.rules.model import Evidence, Remedy, Rule, Values, names
from kubectl_spread.rules.remedy import changed, corrected, in_file
from kubectl_spread.rules.topology import keeps_own_apart

_SEVERAL: Final = 2
_ADD_SOFT: Final = (
    "add topologySpreadConstraints with ScheduleAnyway for the zone and the node, which keep no pod pending"
)
_ADD_NODE: Final = _ADD_SOFT.replace("the zone and the node", "the node")
_FIELDS: Final = ("affinity", "podAntiAffinity", "topologySpreadConstraints")
UNKNOWN_DEFAULTS: Final = " Only default constraints of the scheduler, which were not evaluated, may spread them."
_BETWEEN_REVISIONS: Final = " {} only keeps pods of a new revision from nodes that have pods of the stable one."
_NONE: Final = " The scheduler has no default constraints either."


def _no_spread(rule_input: WorkloadInput) -> Iterator[Evidence]:
    replicas = rule_input.replicas
    if is_unspread(rule_input):
        is_known = rule_input.audit.snapshot.schedulers is not configuration.WITHOUT_DEFAULTS
        fields = dict.fromkeys(str(template.revision_anti_affinity) for template in replicas.templates)
        values: Values = {
            "defaults": _NONE if is_known else UNKNOWN_DEFAULTS,
            "revisions": "".join(_BETWEEN_REVISIONS.format(field) for field in fields if field),
        }
        yield Evidence(names(replicas.pods), values, fix=soft_constraints(rule_input))


def is_unspread(rule_input: WorkloadInput) -> bool:
    """Tell whether nothing known spreads several replicas; templates decide, or pods where no template was read."""
    replicas = rule_input.replicas
    if _has_misplaced_field(rule_input):
        return False
    if replicas.templates:
        several = [template for template in replicas.templates if (template.replicas or 0) >= _SEVERAL]
        return bool(several) and not any(_is_spread(template, rule_input) for template in several)
    classes = {pod.pod_class for pod in replicas.pods}
    return len(replicas.pods) >= _SEVERAL and not any(
        _spreads(pod_class, rule_input) or may_have_defaults(pod_class) for pod_class in classes
    )


def _has_misplaced_field(rule_input: WorkloadInput) -> bool:
    """Tell whether the manifest has constraints or affinity in a wrong place, which SPR215 reports."""
    fields = () if rule_input.manifest is None else rule_input.manifest.unknown_fields
    return any(field.path[-1] in _FIELDS for field in fields)


def _is_spread(template: Template, rule_input: WorkloadInput) -> bool:
    profile = rule_input.audit.snapshot.schedulers.get(template.spec.scheduler_name)
    return (
        template.unevaluated is not None
        or _spreads(template, rule_input)
        or (profile is not None and bool(profile.defaults))
    )


def _spreads(holder: Template | PodClass, rule_input: WorkloadInput) -> bool:
    """Tell whether pods have spread constraints, or an anti-affinity term that keeps them apart from each other."""
    return bool(holder.spec.topology_spread_constraints) or any(
        keeps_own_apart(variant, rule_input) for variant in variants_of(holder, rule_input.behaviour)
    )


def soft_constraints(rule_input: WorkloadInput) -> Remedy:
    """Return the patch that adds soft constraints, with the selector of the workload itself."""
    path = rule_input.pod_spec / "topologySpreadConstraints"
    templates = rule_input.replicas.templates
    selectors = [template.selector for template in templates if template.holder == rule_input.workload]
    keys = _keys(rule_input.audit)
    text = _ADD_SOFT if ZONE in keys else _ADD_NODE
    if (
        len(selectors) != 1
        or labelselectors.is_empty(selectors[0] or LabelSelector())
        or any(template.spec.node_name for template in templates)
    ):
        return changed(text, (), rule_input)
    constraints = [patches.soft_constraint(key, selectors[0], rule_input.workload.kind) for key in keys]
    # kube-apiserver reads a test for null as a test for an absent field; the standard has no such test.
    absent = () if in_file(rule_input) else (patches.test(path, None),)
    return changed(text, (*absent, Operation(op="add", path=path.pointer, value=constraints)), rule_input)


@memoized
def _keys(audit: Audit) -> tuple[str, ...]:
    """Return the topology keys to spread by: the scheduler does not rank nodes that lack any key of soft constraints.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/scoring.go, initPreScoreState.
    """
    zoned = all(ZONE in node.metadata.labels for node in audit.snapshot.nodes)
    return (ZONE, HOSTNAME) if zoned else (HOSTNAME,)


NO_SPREAD: Final = Rule(
    code="SPR504",
    name="no-spread",
    severity=Severity.INFO,
    summary="A workload has several replicas, and neither spread constraints nor anti-affinity to each other",
    message=(
        "The workload has several replicas, and neither topologySpreadConstraints nor podAntiAffinity keeps them from "
        "sharing a node or a zone.{revisions}{defaults}"
    ),
    fix=_ADD_SOFT,
    reads_nodes=False,
    recommends=True,
    of_workload=_no_spread,
)


_BOTH: Final = 2
_KEYS_OF: Final = {"SPR501": HOSTNAME, "SPR502": ZONE}
"""Maps the rules about one topology key to it."""
_OF_OTHER_KEYS: Final = "SPR505"
_IN_ZONES: Final = ("SPR503", "SPR504")
"""The rules that say less than that all pods are in one domain."""
_WAIT: Final = "nothing to do until a node of another {noun} can take a pod"
_WAIT_FOR_NODE: Final = "nothing to do until another node can take a pod"
_NOTHING_WITH_SIBLINGS: Final = "nothing to do if these workloads stand in for each other: they run in several zones"
_UNPIN: Final = "let {pinned_by} in the pod template match another {noun}, or remove it, and restart the pods"
_ADD: Final = (
    "add a constraint on {topology_key} to topologySpreadConstraints in the pod template, and restart the pods. "
    "ScheduleAnyway prefers a spread. DoNotSchedule insists on it, and leaves pods pending where there is no room"
)
_CORRECT: Final = (
    "correct the constraint on {topology_key} in the pod template, which allows this by its selector, maxSkew or "
    "whenUnsatisfiable, and restart the pods"
)


_exposures: Final = memoized(Exposures)
_siblings_in: Final = memoized(Siblings)


def _exposure(rule_input: WorkloadInput, code: str) -> Exposure | None:
    """Return the exposure that a rule reports: of SPR505, to a domain of the first further key of ``--by``."""
    replicas, exposures = rule_input.replicas, _exposures(rule_input.audit)
    keys = (_KEYS_OF[code],) if code in _KEYS_OF else (key for key in exposures.keys if key not in _KEYS_OF.values())
    return next((exposure for key in keys if (exposure := exposures.of(replicas, key)) is not None), None)


def _in_one_domain(rule_input: WorkloadInput, code: str) -> Iterator[Evidence]:
    """Yield the exposure that a rule reports, which covers those to larger domains."""
    exposure = _exposure(rule_input, code)
    if exposure is not None:
        position = _exposures(rule_input.audit).keys.index
        others = {other: _exposure(rule_input, other) for other in (*_KEYS_OF, _OF_OTHER_KEYS) if other != code}
        larger = (
            other
            for other, of_other in others.items()
            if of_other is not None and position(of_other.topology_key) > position(exposure.topology_key)
        )
        zone = others.get("SPR502") if code == "SPR501" else None
        yield _evidence(exposure, rule_input, (*larger, *_IN_ZONES), zone)


def _evidence(
    exposure: Exposure, rule_input: WorkloadInput, covers: tuple[str, ...], zone: Exposure | None = None
) -> Evidence:
    """Return the evidence for an exposure; ``zone`` is that of the same pods, on one node, to their zone."""
    key = exposure.topology_key
    if zone is not None and (not (zone.node or zone.kept_away) or _siblings(zone, rule_input)):
        # The cluster has one zone, or the workload others like it in other zones.
        zone = None
    siblings = _siblings(exposure, rule_input)
    values: Values = {
        "topology_key": key,
        "domain": value(exposure.domain),
        "place": domains(key, [exposure.domain]),
        "in_zone": "" if zone is None else f" in {domains(ZONE, [zone.domain])}",
        "or_zone": "" if zone is None else " or zone",
        "noun": noun(key),
        "running": exposure.running,
        "pods": _all_pods(exposure),
        "elsewhere": _elsewhere(exposure, rule_input),
        "pinned_by": exposure.pinned_by,
        "siblings": siblings,
    }
    needless = exposure.node or (exposure.pinned_by and not siblings)
    severity = Severity.WARNING if needless else Severity.INFO
    fix = _NOTHING_WITH_SIBLINGS if siblings else _of_both(_soft_or_text(exposure, rule_input), zone, rule_input)
    return Evidence(names(exposure.pods), values, severity, fix, covers, exposes=key)


def _siblings(exposure: Exposure, rule_input: WorkloadInput) -> str:
    """Return the workloads that run in other zones for one that its template keeps in one, as a sentence."""
    if not exposure.pinned_by or exposure.topology_key not in (HOSTNAME, ZONE):
        return ""
    siblings = _siblings_in(rule_input.audit).of(rule_input.workload)
    if not siblings:
        return ""
    workloads = listed([named(sibling.workload.kind, sibling.workload.name) for sibling in siblings])
    zones = sorted({zone for sibling in siblings for zone in sibling.zones})
    return f" {workloads} {'runs' if len(siblings) == 1 else 'run'} in {domains(ZONE, zones)}."


def _of_both(fix: Remedy | str, zone: Exposure | None, rule_input: WorkloadInput) -> Remedy | str:
    """Return the fix for a node, and for its zone where that needs another action and a node of another zone helps.

    The patch is for both, and a rollout that corrects the template comes first.
    """
    if zone is None or not (zone.node or zone.pinned_by) or isinstance(fix, Remedy):
        return fix
    of_zone = _soft_or_text(zone, rule_input)
    if isinstance(of_zone, Remedy) or _is_uneven(zone, rule_input):
        return fix
    if fix is _ADD and of_zone is _ADD:
        return _ADD.replace("a constraint on {topology_key}", f"constraints on {ZONE} and {HOSTNAME}")
    return f"{fix}. For the zone, {of_zone.format(topology_key=ZONE, noun=noun(ZONE), pinned_by=zone.pinned_by)}"


def _is_uneven(exposure: Exposure, rule_input: WorkloadInput) -> bool:
    """Tell whether a constraint on the topology key is above maxSkew, which other rules report with what to do."""
    evaluator = rule_input.audit.evaluator
    spreads = (spread for pod in exposure.pods for spread in evaluator.of(pod.pod_class).spreads if spread is not None)
    return any(spread.exceeds_max_skew for spread in spreads if spread.constraint.topology_key == exposure.topology_key)


def _all_pods(exposure: Exposure) -> str:
    """Return the pods in words; without their number where the reason is one of the cluster, the same for all."""
    if not exposure.node and not exposure.kept_away:
        return "All running pods"
    return "Both running pods" if exposure.running == _BOTH else f"All {exposure.running} running pods"


def _elsewhere(exposure: Exposure, rule_input: WorkloadInput) -> str:
    """Return the node of another domain that could take one of the pods, or why none does, as a sentence."""
    key = exposure.topology_key
    if exposure.node:
        node = f"Node {exposure.node}"
        if key != HOSTNAME:
            labels = rule_input.audit.nodes.labels_of(exposure.node)
            node += f" in {domains(key, [labels[key]])}"
        return f" {node} could take one."
    if not exposure.kept_away:
        return f" No other {noun(key)} has nodes."
    if exposure.pinned_by:
        return f" It is the only {noun(key)} that {exposure.pinned_by} in the pod template allows."
    where = "No other node" if key == HOSTNAME else f"No node of another {noun(key)}"
    return f" {where} is known to take one ({exposure.kept_away})."


def _soft_or_text(exposure: Exposure, rule_input: WorkloadInput) -> Remedy | str:
    """Return the patch that adds soft constraints to a workload without any, or else what to do in words."""
    replicas, text = rule_input.replicas, _fix(exposure)
    templates = (template for template in replicas.templates if template.holder == replicas.workload)
    added = (term for template in templates for term in template.terms if term.spread)
    if text is _ADD and any(term.topology_key == exposure.topology_key for term in added):
        return corrected(rule_input)
    if text is not _ADD or exposure.topology_key not in (HOSTNAME, ZONE):
        return text
    remedy = soft_constraints(rule_input) if is_unspread(rule_input) else Remedy(text)
    return remedy if remedy.patch else text


def _fix(exposure: Exposure) -> str:
    if exposure.pinned_by:
        return _UNPIN
    if not exposure.node:
        return _WAIT_FOR_NODE if exposure.topology_key == HOSTNAME else _WAIT
    terms = (term for pod in exposure.pods for term in pod.pod_class.terms if term.spread and not term.default)
    return _CORRECT if any(term.topology_key == exposure.topology_key for term in terms) else _ADD


def _majority(rule_input: WorkloadInput) -> Iterator[Evidence]:
    exposure = _exposures(rule_input.audit).majority(rule_input.replicas)
    if exposure is not None:
        values: Values = {
            "topology_key": ZONE,
            "domain": value(exposure.domain),
            "pods": len(exposure.pods),
            "running": exposure.running,
            "elsewhere": _elsewhere(exposure, rule_input),
        }
        yield Evidence(names(exposure.pods), values, fix=_fix(exposure), covers=("SPR504",), exposes=ZONE)


ALL_ON_ONE_NODE: Final = Rule(
    code="SPR501",
    name="all-on-one-node",
    severity=Severity.WARNING,
    summary="All running pods of a workload are on one node",
    message=(
        "{pods} are on node {domain}{in_zone}, so the loss of this node{or_zone} stops them all.{elsewhere}{siblings}"
    ),
    fix=_ADD,
    recommends=True,
    of_workload=partial(_in_one_domain, code="SPR501"),
)
ALL_IN_ONE_ZONE: Final = Rule(
    code="SPR502",
    name="all-in-one-zone",
    severity=Severity.WARNING,
    summary="All running pods of a workload are in one zone",
    message="{pods} are in zone {domain}, so the loss of this zone stops them all.{elsewhere}{siblings}",
    fix=_ADD,
    recommends=True,
    of_workload=partial(_in_one_domain, code="SPR502"),
)
ALL_IN_ONE_DOMAIN: Final = Rule(
    code=_OF_OTHER_KEYS,
    name="all-in-one-domain",
    severity=Severity.WARNING,
    summary="All running pods of a workload are in one domain of a key of --by",
    message="{pods} are in {place}, so its loss stops them all.{elsewhere}{siblings}",
    fix=_ADD,
    of_workload=partial(_in_one_domain, code=_OF_OTHER_KEYS),
)

MAJORITY_IN_ONE_ZONE: Final = Rule(
    code="SPR503",
    name="majority-in-one-zone",
    severity=Severity.INFO,
    summary="More than half of the running replicas of a StatefulSet are in one zone",
    message=(
        "{pods} of {running} running pods are in zone {domain}, so the StatefulSet loses its majority with this zone."
        "{elsewhere}"
    ),
    fix=_ADD,
    recommends=True,
    of_workload=_majority,
)
