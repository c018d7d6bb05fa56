"""The result of one run: an audit, with notes and errors, and the report made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.snapshot.records import Manifest
from kubectl_spread.audit.snapshot.scope import Scope, Target
from kubectl_spread.diagnosis.exposure import RunningPods, running_pods
from kubectl_spread.errors import Position
from kubectl_spread.kube.api.field import POD_SPEC, FieldPath
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.api.workloads import template_path
from kubectl_spread.phrases import plural
from kubectl_spread.render import figures
from kubectl_spread.report import model, projections
from kubectl_spread.report.model import Finding, Report, Source, unset_none
from kubectl_spread.rules import RULES, engine
from kubectl_spread.rules.selection import SelectedRules
from kubectl_spread.run.identity import ClusterIdentity
from kubectl_spread.run.options import CheckOptions
from kubectl_spread.run.target_version import TargetVersion


def _with_positions(report: Report, manifests: Mapping[ObjectRef, Manifest]) -> Report:
    """Return a report with the position of each finding on a manifest.

    Args:
        report: The report.
        manifests: The manifests that were read.
    """
    by_position: dict[Position, dict[ObjectRef, Manifest]] = {}
    first_copies: dict[ObjectRef, Manifest] = {}
    for copy, manifest in manifests.items():
        by_position.setdefault(manifest.position, {})[copy.first_copy] = manifest
        first_copies.setdefault(copy.first_copy, manifest)
    findings = [_located(finding, by_position, first_copies) for finding in report.findings]
    return msgspec.structs.replace(report, findings=findings)


def _located(
    finding: Finding,
    by_position: Mapping[Position, Mapping[ObjectRef, Manifest]],
    first_copies: Mapping[ObjectRef, Manifest],
) -> Finding:
    """Return a finding with the position of its field in a manifest; a finding on no manifest has none.

    A line of JSON may hold several objects. The object of a finding may be the owner of the object with the template.
    """
    if isinstance(finding.source, Source):
        on_line = by_position[Position(finding.source.file, finding.source.line)]
        manifest = on_line.get(finding.ref) or (next(iter(on_line.values())) if len(on_line) == 1 else None)
        if manifest:
            return _with_source(finding, manifest, FieldPath.parse(finding.path))
    for ref, path in _fields(finding):
        if ref in first_copies:
            return _with_source(finding, first_copies[ref], path)
    return finding


def _with_source(finding: Finding, manifest: Manifest, path: FieldPath) -> Finding:
    return msgspec.structs.replace(finding, source=_source(manifest.position_of(path)))


def _fields(finding: Finding) -> Iterator[tuple[ObjectRef, FieldPath]]:
    """Yield the fields that a finding may be about: the field at its path, or else the same field of the template."""
    ref, path = finding.ref, FieldPath.parse(finding.path)
    template = template_path(ref.kind)
    if ref.kind == "Pod" or path.is_inside(template):
        yield ref, path
        return
    for pod in finding.pods:
        yield ObjectRef(ref.namespace, "Pod", pod), path
    yield ref, path.moved(POD_SPEC, template)


def _source(position: Position) -> Source:
    # No format can hold a file name that is not UTF-8 text.
    file = Path(position.source).as_posix().encode(errors="surrogateescape").decode(errors="backslashreplace")
    return Source(file=file, line=position.line or 1, column=unset_none(position.column))


_SKIPPED_PODS: Final = ("finished", "mirror")
"""Reasons why pods in scope are not evaluated."""


class CheckRun(msgspec.Struct):
    """An audit, with notes and errors.

    Attributes:
        audit: The evaluated pods and templates.
        target_version: The Kubernetes whose rules decide.
        nodes: Whether nodes were listed, were inferred from pods, or are unknown.
        all_namespaces: Whether the user chose all namespaces.
        resource_versions: The resourceVersion of each list that was read.
        skipped: The number of objects that were not evaluated, by reason.
        unchecked: The objects of files, and the parts of their templates, that could not be checked.
        problems: Errors that make the exit status 2.
        notes: Messages that do not change the exit status.
        without_pods: A message about files that have neither pods nor pod templates.
        identity: The cluster that was read.
    """

    audit: Audit
    target_version: TargetVersion
    nodes: model.NodesKnown
    all_namespaces: bool
    resource_versions: dict[str, str] = msgspec.field(default_factory=dict)
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    unchecked: list[model.Unchecked] = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    without_pods: str = ""
    identity: ClusterIdentity = ClusterIdentity()

    @property
    def scope(self) -> Scope:
        """The pods and templates that are evaluated."""
        return self.audit.snapshot.scope

    @property
    def empty(self) -> bool:
        """Whether there are neither pods nor pod templates in scope."""
        return not (self.audit.pods or self.audit.templates)

    @property
    def silent(self) -> bool:
        """Whether tables and names have nothing to show: no pods, no pod templates, and no object with a fault."""
        return self.empty and not any(unchecked.ref for unchecked in self.unchecked)

    @property
    def useful_notes(self) -> list[str]:
        """The notes; none where errors explain why there is nothing in scope."""
        return [] if self.empty and self.problems else self.notes

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces of the evaluated pods and templates."""
        pods = (pod.namespace for pod in self.audit.pods)
        return frozenset((*pods, *(template.namespace for template in self.audit.templates)))

    @property
    def several_namespaces(self) -> bool:
        """Whether the evaluated pods are in more than one namespace, or the user chose all namespaces."""
        return len(self.namespaces) > 1 or self.all_namespaces

    def nothing_found(self) -> str:
        """Return the reason why there is nothing to report; in an empty namespace it is the message of kubectl."""
        skipped = [plural(number, f"{kind} pod") for kind in _SKIPPED_PODS if (number := self.skipped[kind])]
        if skipped:
            return f"nothing to check: {' and '.join(skipped)} skipped"
        if self.without_pods:
            return self.without_pods
        if unanswered := list(figures.unanswered(self.skipped)):
            return " ".join([*unanswered, "There are no pods and no pod templates in what was read."])
        namespace = self.scope.namespace
        return "No resources found" if namespace is None else f"No resources found in {namespace} namespace."

    def report(self, options: CheckOptions, baseline: engine.Baseline | None = None) -> model.Report:
        """Return the report, with the findings of the selected rules that the baseline does not have."""
        cluster, flags = self._cluster(options.cluster_name), options.kubectl_flags
        selected = SelectedRules(RULES, options.selection)
        report = engine.complete(self.audit, cluster, selected, self.skipped, baseline=baseline, flags=flags)
        return msgspec.structs.replace(report, unchecked=sorted(self.unchecked, key=_unchecked_order) or UNSET)

    def running_pods(self) -> Iterable[RunningPods]:
        """Return the running pods of each workload with replicas."""
        return running_pods(self.audit)

    def positions(self, namespace: str, target: Target) -> list[str]:
        """Return the positions of the manifests of one object, if it has several."""
        positions = [
            str(manifest.position)
            for ref, manifest in self.audit.snapshot.manifests.items()
            if ref.namespace == namespace and target.includes(ref)
        ]
        return positions if len(positions) > 1 else []

    def located(self, report: model.Report) -> model.Report:
        """Return the report with the line and column of each finding on a manifest."""
        manifests = self.audit.snapshot.manifests
        if not (manifests and report.findings):
            return report
        return _with_positions(report, manifests)

    def _cluster(self, flag_name: str) -> model.Cluster:
        snapshot = self.audit.snapshot
        return cluster_header(
            self.target_version,
            self.identity,
            Nodes(snapshot.nodes, self.nodes, Counter(pod.node for pod in snapshot.pods).__getitem__),
            flag_name=flag_name,
            namespace=self.scope.namespace,
            resource_versions=self.resource_versions,
        )


def _unchecked_order(unchecked: model.Unchecked) -> tuple[object, ...]:
    path = FieldPath.parse(unchecked.path or "")
    return unchecked.ref or ObjectRef("", "", ""), path.order, unchecked.message


class Nodes(NamedTuple):
    """The nodes of a report.

    Attributes:
        listed: The nodes that were read.
        known: Whether they were listed, were inferred from pods, or are unknown.
        pods_on: Returns the number of evaluated pods on a node.
    """

    listed: Sequence[Node]
    known: model.NodesKnown
    pods_on: Callable[[str], int]


def cluster_header(
    target_version: TargetVersion,
    identity: ClusterIdentity,
    nodes: Nodes,
    *,
    flag_name: str,
    namespace: str | None,
    resource_versions: Mapping[str, str],
) -> model.Cluster:
    """Return the cluster of a report."""
    upgrade = target_version.upgrade
    zones = projections.zones(nodes.listed, nodes.pods_on) if nodes.known == "listed" else UNSET
    return model.Cluster(
        **identity.fields(flag_name, namespace),
        evaluated_as=f"1.{target_version.minor}",
        judged_as=f"1.{target_version.minor}",
        compared_with=f"1.{upgrade[-1].minor}" if upgrade else UNSET,
        version_source=target_version.version_source,
        gates=dict(target_version.gates),
        gates_source=target_version.gates_source,
        nodes=nodes.known,
        node_count=len(nodes.listed) if nodes.known == "listed" else UNSET,
        zone_count=UNSET if isinstance(zones, UnsetType) else len(zones),
        zones=zones,
        resource_versions=dict(resource_versions),
        warnings=[*target_version.problems, *target_version.warnings] or UNSET,
    )
