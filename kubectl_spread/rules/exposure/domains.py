"""SPR501, SPR502, SPR503 and SPR505: all running pods, or most of them, in one domain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.diagnosis.exposure import Exposure
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.phrases import domains, value
from kubectl_spread.report.model import Severity
from kubectl_spread.rules.exposure.no_spread import is_unspread, soft_constraints
from kubectl_spread.rules.model import KUBERNETES, Evidence, Rule, Values, names
from kubectl_spread.rules.remedy import Remedy, corrected
from kubectl_spread.rules.rule_input import InputPart, RuleInput

_BOTH: Final = 2
_PLUGIN: Final = f"{KUBERNETES}/pkg/scheduler/framework/plugins/podtopologyspread"
_IN_ZONES: Final = ("SPR503", "SPR504")
"""The rules that say less than that all pods are in one domain."""
_OTHERS: Final = (
    "A patch is given for a workload without constraints and anti-affinity whose pod template and selector were read. "
    "In other cases the owner of the workload decides whether a constraint is a preference or insists."
)
_NO_REMEDY: Final = (
    "ScheduleAnyway is a preference, so that a patch with it might change nothing, and with DoNotSchedule pods stay "
    "pending where no node is left. Which of them is meant is for the owner of the workload to decide."
)
_WAIT: Final = "nothing to do until a node of another {noun} can take a pod"
_WAIT_FOR_NODE: Final = "nothing to do until another node can take a pod"
_UNPIN: Final = "let {pinned_by} in the pod template match another {noun}, or remove it, and restart the pods"
_ADD: Final = (
    "add a constraint on {topology_key} to topologySpreadConstraints in the pod template, and restart the pods. "
    "ScheduleAnyway prefers a spread. DoNotSchedule insists on it, and leaves pods pending where there is no room"
)
_CORRECT: Final = (
    "correct the constraint on {topology_key} in the pod template, which allows this by its selector, maxSkew or "
    "whenUnsatisfiable, and restart the pods"
)


def _on_one_node(rule_input: RuleInput) -> Iterator[Evidence]:
    exposure = _exposure(rule_input, HOSTNAME)
    if exposure is not None:
        yield _evidence(exposure, rule_input, ("SPR502", "SPR505", *_IN_ZONES))


def _in_one_zone(rule_input: RuleInput) -> Iterator[Evidence]:
    exposure = _exposure(rule_input, ZONE)
    if exposure is not None:
        other = _other(rule_input)
        keys = rule_input.exposures.keys
        coarser = other is None or keys.index(other.topology_key) > keys.index(ZONE)
        yield _evidence(exposure, rule_input, ("SPR505", *_IN_ZONES) if coarser else _IN_ZONES)


def _in_one_domain(rule_input: RuleInput) -> Iterator[Evidence]:
    exposure = _other(rule_input)
    if exposure is not None:
        keys = rule_input.exposures.keys
        coarser = ZONE in keys and keys.index(ZONE) > keys.index(exposure.topology_key)
        yield _evidence(exposure, rule_input, ("SPR502", *_IN_ZONES) if coarser else _IN_ZONES)


def _other(rule_input: RuleInput) -> Exposure | None:
    """Return the exposure to a domain of the first further key of ``--by``."""
    others = (key for key in rule_input.exposures.keys if key not in (HOSTNAME, ZONE))
    exposures = (_exposure(rule_input, key) for key in others)
    return next((exposure for exposure in exposures if exposure is not None), None)


def _exposure(rule_input: RuleInput, key: str) -> Exposure | None:
    return None if rule_input.replicas is None else rule_input.exposures.of(rule_input.replicas, key)


def _evidence(exposure: Exposure, rule_input: RuleInput, covers: tuple[str, ...]) -> Evidence:
    key = exposure.topology_key
    values: Values = {
        "topology_key": key,
        "domain": value(exposure.domain),
        "place": domains(key, [exposure.domain]),
        "noun": _noun(key),
        "running": exposure.running,
        "pods": _all_pods(exposure),
        "elsewhere": _elsewhere(exposure, rule_input),
        "pinned_by": exposure.pinned_by,
    }
    severity = Severity.WARNING if exposure.node or exposure.pinned_by else Severity.INFO
    return Evidence(names(exposure.pods), values, severity, _soft_or_text(exposure, rule_input), covers, exposes=key)


def _all_pods(exposure: Exposure) -> str:
    """Return the pods in words; without their number where the reason is one of the cluster, the same for all."""
    if not exposure.node and not exposure.kept_away:
        return "All running pods"
    return "Both running pods" if exposure.running == _BOTH else f"All {exposure.running} running pods"


def _elsewhere(exposure: Exposure, rule_input: RuleInput) -> str:
    """Return the node of another domain that could take one of the pods, or why none does, as a sentence."""
    key = exposure.topology_key
    if exposure.node:
        node = f"Node {exposure.node}"
        if key != HOSTNAME:
            labels = rule_input.audit.nodes.labels_of(exposure.node)
            node += f" in {domains(key, [labels[key]])}"
        return f" {node} could take one."
    if not exposure.kept_away:
        return f" No other {_noun(key)} has nodes."
    if exposure.pinned_by:
        return f" It is the only {_noun(key)} that {exposure.pinned_by} in the pod template allows."
    where = "No other node" if key == HOSTNAME else f"No node of another {_noun(key)}"
    return f" {where} is known to take one ({exposure.kept_away})."


def _noun(key: str) -> str:
    return domains(key, [""]).partition(" ")[0]


def _soft_or_text(exposure: Exposure, rule_input: RuleInput) -> Remedy | str:
    """Return the patch that adds soft constraints to a workload without any, or else what to do in words."""
    replicas = rule_input.replicas
    if replicas is None:
        return _fix(exposure)
    text = _fix(exposure)
    templates = (template for template in replicas.templates if template.holder == replicas.workload)
    added = (term for template in templates for term in template.terms if term.spread)
    if text is _ADD and any(term.topology_key == exposure.topology_key for term in added):
        return corrected(rule_input)
    if text is not _ADD or exposure.topology_key not in (HOSTNAME, ZONE):
        return text
    remedy = soft_constraints(rule_input) if is_unspread(replicas, rule_input) else Remedy(text)
    return remedy if remedy.patch else text


def _fix(exposure: Exposure) -> str:
    if exposure.pinned_by:
        return _UNPIN
    if not exposure.node:
        return _WAIT_FOR_NODE if exposure.topology_key == HOSTNAME else _WAIT
    terms = (term for pod in exposure.pods for term in pod.pod_class.terms if term.spread and not term.default)
    return _CORRECT if any(term.topology_key == exposure.topology_key for term in terms) else _ADD


def _majority(rule_input: RuleInput) -> Iterator[Evidence]:
    exposure = None if rule_input.replicas is None else rule_input.exposures.majority(rule_input.replicas)
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
    message="{pods} are on node {domain}, so the loss of this node stops them all.{elsewhere}",
    why=(
        "Nothing moves a pod that runs, and without a constraint the scheduler's scores decide, which prefer nodes "
        "with room and images. Several replicas on one node end together when it fails, is drained or is scaled away."
    ),
    fix=_ADD,
    source=f"{_PLUGIN}/scoring.go",
    cases=(
        (Severity.WARNING, "Another node could take one of the pods, or only the pod template excludes the others."),
        (
            Severity.INFO,
            "No other node is known to take one. Nothing can be done now. A cluster of one node has no finding.",
        ),
    ),
    remedies=("command", "patch"),
    no_remedy=_OTHERS,
    needs_nodes=True,
    parts=InputPart.WORKLOAD,
    check=_on_one_node,
)

ALL_IN_ONE_ZONE: Final = Rule(
    code="SPR502",
    name="all-in-one-zone",
    severity=Severity.WARNING,
    summary="All running pods of a workload are in one zone",
    message="{pods} are in zone {domain}, so the loss of this zone stops them all.{elsewhere}",
    why=(
        "Replicas protect against the loss of a zone only if another zone has some of them. A workload on one node is "
        "reported by SPR501 alone."
    ),
    fix=_ADD,
    source=f"{_PLUGIN}/scoring.go",
    cases=(
        (
            Severity.WARNING,
            "A node of another zone could take one of the pods, or only the pod template excludes the others.",
        ),
        (
            Severity.INFO,
            "No node of another zone is known to take one, or no other zone has nodes. Nothing can be done now.",
        ),
    ),
    remedies=("command", "patch"),
    no_remedy=_OTHERS,
    needs_nodes=True,
    parts=InputPart.WORKLOAD,
    check=_in_one_zone,
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
    why=(
        "Databases and queues that decide by majority stop when more than half of their members are gone. The finding "
        "is reported only where pods could move so that no zone has more than half of them: with two zones and three "
        "replicas, one zone always has the majority."
    ),
    fix=_ADD,
    source="https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/",
    no_remedy=_NO_REMEDY,
    needs_nodes=True,
    parts=InputPart.WORKLOAD,
    check=_majority,
)

ALL_IN_ONE_DOMAIN: Final = Rule(
    code="SPR505",
    name="all-in-one-domain",
    severity=Severity.WARNING,
    summary="All running pods of a workload are in one domain of a key of --by",
    message="{pods} are in {place}, so its loss stops them all.{elsewhere}",
    why=(
        "check --by KEY names domains that fail together, such as regions or racks. Nodes without the label are in no "
        "domain, and a workload with a pod on such a node has no finding."
    ),
    fix=_ADD,
    source=f"{_PLUGIN}/scoring.go",
    cases=(
        (
            Severity.WARNING,
            "A node of another domain could take one of the pods, or only the pod template excludes the others.",
        ),
        (
            Severity.INFO,
            "No node of another domain is known to take one, or no other domain has nodes. Nothing can be done now.",
        ),
    ),
    no_remedy=_NO_REMEDY,
    needs_nodes=True,
    parts=InputPart.WORKLOAD,
    check=_in_one_domain,
)
