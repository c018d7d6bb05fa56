"""The result of one run: what was read, with notes and errors; for ``check`` an audit and its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.snapshot.records import Manifest
from kubectl_spread.audit.snapshot.scope import Scope, Target
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.diagnosis.exposure import RunningPods, running_pods
from kubectl_spread.engine.engine import Engine
from kubectl_spread.errors import Faults, Position
from kubectl_spread.kube.api.field import POD_SPEC, FieldPath, steps_of
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.workloads import template_path
from kubectl_spread.phrases import plural
from kubectl_spread.render import figures
from kubectl_spread.report import model, projections
from kubectl_spread.report.model import Finding, ManifestLines, Operation, Report, Source, unset_none
from kubectl_spread.rules import RULES
from kubectl_spread.rules.engine import Baseline, complete
from kubectl_spread.rules.model import SelectedRules
from kubectl_spread.run.options import CheckOptions, TargetVersion
from kubectl_spread.sources.paths import without_secrets


class Console(Protocol):
    """Prints the messages of a run."""

    def note(self, text: str, /) -> None:
        """Print a message on a line of its own."""

    def progress(self, text: str, /) -> None:
        """Show the progress of the run until other text is printed."""


class ClusterIdentity(msgspec.Struct, frozen=True):
    """The identity of a cluster; "" and None mean unknown.

    Attributes:
        context: The kubeconfig context that leads to it.
        name: Its name in the kubeconfig.
        uid: The UID of its namespace ``kube-system``.
        read_at: When its pods were read, by the API server's clock.
        server_version: The API server's version.
    """

    context: str = ""
    name: str = ""
    uid: str = ""
    read_at: datetime | None = None
    server_version: str = ""

    def fields(self, flag_name: str, namespace: str) -> dict[str, Any]:
        """Return the fields of a report's cluster, which ``--cluster-name`` names, or else the kubeconfig.

        Some tools make these names from a server's address. Its user and password are left out, because everybody who
        reads the report sees the names.
        """
        name = without_secrets(flag_name or self.name)
        return {
            "context": without_secrets(self.context) or UNSET,
            "name": name or UNSET,
            "name_source": ("flag" if flag_name else "kubeconfig") if name else UNSET,
            "uid": self.uid or UNSET,
            "read_at": UNSET if self.read_at is None else projections.timestamp(self.read_at),
            "server_version": self.server_version or UNSET,
            "namespace": namespace or UNSET,
        }


_SKIPPED_PODS: Final = ("finished", "mirror")
"""Reasons why pods in scope are not evaluated."""


class Run(msgspec.Struct, kw_only=True):
    """What was read, with notes and errors.

    Attributes:
        options: The options of the command.
        snapshot: The pods, nodes and workloads.
        identity: The cluster that was read.
        resource_versions: The resourceVersion of each list that was read.
        skipped: The number of objects that were left out, by reason.
        problems: Errors that make the exit status 2.
        notes: Messages that do not change the exit status.
    """

    options: CheckOptions
    snapshot: Snapshot
    identity: ClusterIdentity = ClusterIdentity()
    resource_versions: dict[str, str] = msgspec.field(default_factory=dict)
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    problems: list[str] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)

    @property
    def scope(self) -> Scope:
        """The pods and templates that are evaluated."""
        return self.snapshot.scope


def no_resources(namespace: str) -> str:
    """Return the message of kubectl about a namespace, or about all of them, with nothing in scope."""
    return f"No resources found in {namespace} namespace." if namespace else "No resources found"


class CheckRun(Run, kw_only=True, dict=True):
    """A run whose pods and templates are evaluated.

    Attributes:
        audit: The evaluated pods and templates.
        target_version: The Kubernetes whose rules decide.
        nodes: Whether nodes were listed, were inferred from pods, or are unknown.
        unchecked: The objects of files, and the parts of their templates, that could not be checked.
        without_pods: A message about files that have neither pods nor pod templates.
        unknown: The quantities that cannot be read and decide where pods fit, each with the effect.
        faults: The unexpected errors of rules in the report.
    """

    audit: Audit
    target_version: TargetVersion
    nodes: model.NodesKnown
    unchecked: list[model.Unchecked] = msgspec.field(default_factory=list)
    without_pods: str = ""
    unknown: list[str] = msgspec.field(default_factory=list)
    faults: Faults = msgspec.field(default_factory=Faults)

    @cached_property
    def engine(self) -> Engine:
        """The model of the cluster."""
        return Engine(self.audit.snapshot, self.audit.context.behaviour)

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
        return len(self.namespaces) > 1 or self.options.all_namespaces

    def nothing_found(self) -> str:
        """Return the reason why there is nothing to report; in an empty namespace it is the message of kubectl."""
        skipped = [plural(number, f"{kind} pod") for kind in _SKIPPED_PODS if (number := self.skipped[kind])]
        if skipped:
            return f"nothing to check: {' and '.join(skipped)} skipped"
        if self.without_pods:
            return self.without_pods
        if unanswered := list(figures.unanswered(self.skipped)):
            return " ".join([*unanswered, "There are no pods and no pod templates in what was read."])
        return no_resources(self.scope.namespace)

    def report(self, baseline: Baseline | None = None) -> model.Report:
        """Return the report, with the findings of the selected rules that the baseline does not have.

        An unexpected error of a rule becomes a problem of this run, and costs its findings on one workload.
        """
        selected, flags = SelectedRules(RULES, self.options.selection), self.options.command_flags
        cluster = cluster_header(self, self.target_version, self.nodes, self.scope.namespace)
        if self.unknown:
            cluster = msgspec.structs.replace(cluster, warnings=[*(cluster.warnings or ()), *self.unknown])
        report = complete(
            self.audit,
            cluster,
            selected,
            self.skipped,
            engine=self.engine,
            baseline=baseline,
            flags=flags,
            faults=self.faults,
        )
        self.problems += map(str, self.faults)
        unchecked = sorted((*self.unchecked, *(report.unchecked or ())), key=_unchecked_order)
        return msgspec.structs.replace(report, unchecked=unchecked or UNSET)

    def running_pods(self) -> Iterable[RunningPods]:
        """Return the running pods of each workload with replicas."""
        return running_pods(self.audit)

    def positions(self, namespace: str, target: Target) -> list[str]:
        """Return the positions of the manifests of one object, if it has several."""
        positions = [
            str(manifest.position)
            for ref, manifest in self.snapshot.manifests.items()
            if ref.namespace == namespace and target.includes(ref)
        ]
        return positions if len(positions) > 1 else []

    def located(self, report: model.Report) -> model.Report:
        """Return the report with the line and column of each finding on a manifest."""
        manifests = self.snapshot.manifests
        return _with_positions(report, manifests) if manifests and report.findings else report


def _unchecked_order(unchecked: model.Unchecked) -> tuple[object, ...]:
    path = FieldPath.parse(unchecked.path or "")
    return unchecked.ref or ObjectRef("", "", ""), path.order, unchecked.message


def cluster_header(run: Run, target_version: TargetVersion, nodes: model.NodesKnown, namespace: str) -> model.Cluster:
    """Return the cluster of a report; ``namespace`` is that of the report, or ``ALL_NAMESPACES``."""
    upgrade, listed = target_version.upgrade, run.snapshot.nodes
    pods_on = Counter(pod.node for pod in run.snapshot.pods)
    zones = projections.zones(listed, pods_on.__getitem__) if nodes == "listed" else UNSET
    return model.Cluster(
        **run.identity.fields(run.options.cluster_name, namespace),
        evaluated_as=f"1.{target_version.minor}",
        compared_with=f"1.{upgrade[-1].minor}" if upgrade else UNSET,
        version_source=target_version.version_source,
        gates=dict(target_version.gates),
        gates_source=target_version.gates_source,
        nodes=nodes,
        node_count=len(listed) if nodes == "listed" else UNSET,
        zone_count=UNSET if isinstance(zones, UnsetType) else len(zones),
        zones=zones,
        resource_versions=dict(run.resource_versions),
        warnings=[*target_version.problems, *target_version.warnings] or UNSET,
    )


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
            return _with_source(finding, manifest, FieldPath.parse(finding.path), on_line.get(finding.ref))
    for ref, path in _fields(finding):
        if ref in first_copies:
            return _with_source(finding, first_copies[ref], path, first_copies.get(finding.ref))
    return finding


def _with_source(finding: Finding, manifest: Manifest, path: FieldPath, own: Manifest | None) -> Finding:
    """Return a finding with its position in a manifest; ``own`` is that of its object, in which its patch has lines."""
    located = msgspec.structs.replace(finding, source=_source(manifest.position_of(path)))
    if own is None or isinstance(finding.patch, UnsetType) or finding.own_commands or _is_json(own):
        return located
    return msgspec.structs.replace(located, lines=changed_lines(own.position_of, finding.patch.operations))


def _is_json(manifest: Manifest) -> bool:
    """Tell whether lines of YAML would be of no use in the file of a manifest."""
    return manifest.position.source.endswith(".json")


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
    return Source(file=file_name(position.source), line=position.line or 1, column=unset_none(position.column))


def changed_lines(
    position_of: Callable[[tuple[str | int, ...]], Position], operations: Sequence[Operation]
) -> list[ManifestLines]:
    """Return the lines that a patch changes in a manifest, each with its place."""
    return [_changed_lines(position_of, operation) for operation in operations if operation.op != "test"]


def _changed_lines(position_of: Callable[[tuple[str | int, ...]], Position], operation: Operation) -> ManifestLines:
    from kubectl_spread.render import yaml_text  # noqa: PLC0415 - only manifests with a patch need YAML

    path = FieldPath(int(step) if step.isdecimal() else step for step in steps_of(operation.path))
    field, parent = str(path[-1]), FieldPath(path[:-1])
    in_list = isinstance(path[-1], int)
    # The place of a missing field is that of the innermost one around it.
    is_there = not in_list and position_of(path) != position_of(parent)
    place = position_of(path if is_there or operation.op != "add" else parent)
    value: Any = [operation.value] if in_list else {field: operation.value}
    target = str(path) if in_list else f"{field} in {parent}"
    match operation.op:
        case "remove":
            action, text = f"remove {target}", ""
        case _ if operation.op == "replace" or is_there:
            action, text = f"change {target} to", yaml_text.dump(value)
        case _:
            action, text = f"add in {parent}", yaml_text.dump(value)
    return ManifestLines(file=file_name(place.source), line=place.line or 1, action=action, yaml=text)


def file_name(source: str) -> str:
    """Return a path with slashes, as text: no format can hold a file name that is not UTF-8."""
    return Path(source).as_posix().encode(errors="surrogateescape").decode(errors="backslashreplace")
