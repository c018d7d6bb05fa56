"""SPR504: several replicas, and nothing that asks the scheduler to keep them apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.default_constraints import may_have_defaults
from kubectl_spread.audit.snapshot.templates import Template
from kubectl_spread.diagnosis.exposure import Replicas
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.types import LabelSelector, PodAffinity, PodSpec, WhenUnsatisfiable
from kubectl_spread.kube.scheduler import configuration
from kubectl_spread.report.model import Operation, Severity
from kubectl_spread.rules import patches
from kubectl_spread.rules.model import Evidence, Rule, names
from kubectl_spread.rules.remedy import Remedy, changed, in_file
from kubectl_spread.rules.rule_input import InputPart, RuleInput

_SEVERAL: Final = 2
_ADD: Final = "add topologySpreadConstraints with ScheduleAnyway for the zone and the node, which keep no pod pending"
_ADD_NODE: Final = _ADD.replace("the zone and the node", "the node")
_FIELDS: Final = ("affinity", "podAntiAffinity", "topologySpreadConstraints")
UNKNOWN_DEFAULTS: Final = " Only default constraints of the scheduler, which were not evaluated, may spread them."
_NONE: Final = " The scheduler has no default constraints either."


def _no_spread(rule_input: RuleInput) -> Iterator[Evidence]:
    replicas = rule_input.replicas
    if replicas is not None and is_unspread(replicas, rule_input):
        is_known = rule_input.audit.snapshot.schedulers is not configuration.WITHOUT_DEFAULTS
        values = {"defaults": _NONE if is_known else UNKNOWN_DEFAULTS}
        yield Evidence(names(replicas.pods), values, fix=soft_constraints(rule_input))


def is_unspread(replicas: Replicas, rule_input: RuleInput) -> bool:
    """Tell whether nothing known spreads several replicas; templates decide, or pods where no template was read."""
    if _has_misplaced_field(rule_input):
        return False
    if replicas.templates:
        several = [template for template in replicas.templates if (template.replicas or 0) >= _SEVERAL]
        return bool(several) and not any(_is_spread(template, rule_input) for template in several)
    classes = {pod.pod_class for pod in replicas.pods}
    return len(replicas.pods) >= _SEVERAL and not any(
        _spreads(pod_class.spec) or may_have_defaults(pod_class) for pod_class in classes
    )


def _has_misplaced_field(rule_input: RuleInput) -> bool:
    """Tell whether the manifest has constraints or affinity in a wrong place, which SPR215 reports."""
    fields = () if rule_input.manifest is None else rule_input.manifest.unknown_fields
    return any(field.path[-1] in _FIELDS for field in fields)


def _is_spread(template: Template, rule_input: RuleInput) -> bool:
    profile = rule_input.audit.snapshot.schedulers.get(template.spec.scheduler_name)
    return _spreads(template.spec) or (profile is not None and bool(profile.defaults))


def _spreads(spec: PodSpec) -> bool:
    """Tell whether pods ask to be spread, or to be kept away from other pods."""
    anti_affinity = None if spec.affinity is None else spec.affinity.pod_anti_affinity
    return bool(spec.topology_spread_constraints) or (anti_affinity is not None and anti_affinity != PodAffinity())


def soft_constraints(rule_input: RuleInput) -> Remedy:
    """Return the patch that adds soft constraints, with the selector of the workload itself."""
    path = patches.pod_spec(rule_input) / "topologySpreadConstraints"
    templates = () if rule_input.replicas is None else rule_input.replicas.templates
    selectors = [template.selector for template in templates if template.holder == rule_input.workload]
    keys = rule_input.answers.remember(_keys, lambda: _keys(rule_input))
    text = _ADD if ZONE in keys else _ADD_NODE
    if (
        len(selectors) != 1
        or labelselectors.is_empty(selectors[0] or LabelSelector())
        or any(template.spec.node_name for template in templates)
    ):
        return changed(text, (), rule_input)
    selector = msgspec.to_builtins(selectors[0])
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": str(WhenUnsatisfiable.SCHEDULE_ANYWAY),
            "labelSelector": selector,
        }
        for key in keys
    ]
    # kube-apiserver reads a test for null as a test for an absent field; the standard has no such test.
    absent = () if in_file(rule_input) else (patches.test(path, None),)
    return changed(text, (*absent, Operation(op="add", path=path.pointer, value=constraints)), rule_input)


def _keys(rule_input: RuleInput) -> tuple[str, ...]:
    """Return the topology keys to spread by: the scheduler does not rank nodes that lack any key of soft constraints.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/scoring.go, initPreScoreState.
    """
    zoned = all(ZONE in node.metadata.labels for node in rule_input.audit.snapshot.nodes)
    return (ZONE, HOSTNAME) if zoned else (HOSTNAME,)


NO_SPREAD: Final = Rule(
    code="SPR504",
    name="no-spread",
    severity=Severity.INFO,
    summary="A workload has several replicas, and neither spread constraints nor pod anti-affinity",
    message=(
        "The workload has several replicas, and neither topologySpreadConstraints nor podAntiAffinity keeps them from "
        "sharing a node or a zone.{defaults}"
    ),
    why=(
        "kube-scheduler spreads such pods by its default constraints, which prefer other zones and nodes, unless its "
        "configuration changes them or another score outweighs them. With --defaults or --scheduler-config they are "
        "evaluated, and a workload that has them is not reported. Where all pods are in one place already, SPR501 or "
        "SPR502 says so instead."
    ),
    fix=_ADD,
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/",
    remedies=("command", "patch"),
    no_remedy=(
        "The pod template was not read, is owned by an object of another kind, names its node, or the workload has no "
        "selector of its own."
    ),
    parts=InputPart.WORKLOAD,
    check=_no_spread,
)
