"""Gathering: from what is asked, and from files or a cluster, to an audit that can be reported."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec import UNSET

from kubectl_spread.audit import report
from kubectl_spread.audit.evaluate import Audit, evaluate
from kubectl_spread.audit.scope import Scope
from kubectl_spread.audit.snapshot import Snapshot
from kubectl_spread.audit.verdicts import Context
from kubectl_spread.cli import output
from kubectl_spread.cli.question import Question, VersionSource, judged_minor
from kubectl_spread.cli.targets import resource
from kubectl_spread.errors import UsageError
from kubectl_spread.kube import features
from kubectl_spread.kube.features import NEWEST_MINOR, Behaviour
from kubectl_spread.kube.model import Node, Pod
from kubectl_spread.kube.workloads import Workload
from kubectl_spread.rules import RULES, engine


@dataclass(frozen=True, slots=True)
class Judgement:
    """By which Kubernetes pods are judged, and how that is known."""

    server_minor: int | None
    minor: int
    version_source: VersionSource
    gates: Mapping[str, bool]
    gates_source: report.GatesSource

    @property
    def behaviour(self) -> Behaviour:
        """How that Kubernetes behaves."""
        return features.behaviour(self.minor, self.gates)

    def context(self, question: Question) -> Context:
        """Return what verdicts may rely on."""
        known = self.gates_source != "version"
        return Context(self.behaviour, gates_known=known, merge_since=question.merging_since)


@dataclass(slots=True)
class Gathered:
    """An audit and what the report says beside it.

    ``problems`` are questions that could not be answered: they go to stderr and make the exit status 2.
    ``notes`` only go to stderr.
    """

    audit: Audit
    judgement: Judgement
    nodes: report.NodesKnown
    all_namespaces: bool
    resource_versions: dict[str, str] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def scope(self) -> Scope:
        """What is judged."""
        return self.audit.snapshot.scope

    @property
    def empty(self) -> bool:
        """Whether nothing that was read in scope has pods, or fails to have them."""
        return not (self.audit.pods or self.audit.snapshot.workloads_in_scope)

    @property
    def several_namespaces(self) -> bool:
        """Whether the judged pods are in more than one namespace, or all namespaces were asked for."""
        return len({pod.shape.namespace for pod in self.audit.pods}) > 1 or self.all_namespaces

    def say(self) -> None:
        """Print what goes to stderr; by which Kubernetes nothing was judged is of no interest."""
        if not (self.empty and self.problems):
            for text in self.notes:
                output.note(text)
        for text in self.problems:
            output.error(text)

    def nothing_found(self) -> str:
        """Return kubectl's own words for an empty answer."""
        namespace = self.scope.namespace
        return "No resources found" if namespace is None else f"No resources found in {namespace} namespace."

    def completed(self, question: Question) -> report.Report:
        """Return the report, with the findings of the selected rules."""
        return engine.complete(self.audit, self._cluster(), RULES, question.selection, self.skipped)

    def _cluster(self) -> report.Cluster:
        judgement = self.judgement
        server = judgement.server_minor
        return report.Cluster(
            server_version=UNSET if server is None else f"1.{server}",
            judged_as=f"1.{judgement.minor}",
            version_source=judgement.version_source,
            gates=dict(judgement.gates),
            gates_source=judgement.gates_source,
            nodes=self.nodes,
            node_count=len(self.audit.snapshot.nodes) if self.nodes == "listed" else UNSET,
            resource_versions=self.resource_versions,
        )


def gather(asked: Mapping[str, object]) -> tuple[Question, Gathered]:
    """Read what a command's options ask for, from files or from a cluster.

    Args:
        asked: The options of ``cli.options`` as click hands them over.

    Raises:
        SpreadError: it cannot be read at all.
    """
    question = msgspec.convert({name: asked[name] for name in Question.__struct_fields__ if name in asked}, Question)
    if question.filename:
        return question, from_files(question)
    from kubectl_spread.cli.live import Live, flags  # noqa: PLC0415 - the kubernetes package takes half a second

    return question, Live(question, flags(asked)).gather()


@dataclass(frozen=True, slots=True)
class ServerMinor:
    """The minor that a server is, and the one that it behaves like."""

    actual: int
    emulated: int


def judge_by(
    question: Question, server: ServerMinor | None, served_gates: Mapping[str, bool] | None = None
) -> tuple[Judgement, list[str]]:
    """Return by which Kubernetes to judge, and warnings.

    Args:
        question: What the user asks for.
        server: What the server is; None without one.
        served_gates: The gates as the server's metrics show them; None where they were not read.

    Raises:
        UsageError: the version or a gate is not known.
    """
    asked = question.minor
    source: VersionSource = "flag" if asked is not None else "default" if server is None else "live"
    served = None if server is None else server.emulated
    wanted = next(minor for minor in (asked, served, NEWEST_MINOR) if minor is not None)
    minor, warning = judged_minor(wanted)
    overrides = question.gate_overrides
    try:
        gates = features.gates(minor, overrides)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if served_gates is not None and asked is None:
        gates |= {name: served_gates[name] for name in gates if name in served_gates and name not in overrides}
    gates_source: report.GatesSource = "flag" if overrides else "version" if served_gates is None else "metrics"
    return Judgement(None if server is None else server.actual, minor, source, gates, gates_source), [
        warning
    ] if warning else []


def from_files(question: Question) -> Gathered:
    """Audit what the files of ``--filename`` hold, without any cluster.

    Raises:
        UsageError: options contradict each other.
        SourceError: a path cannot be read at all.
    """
    from kubectl_spread.sources import manifests  # noqa: PLC0415 - a live check need not wait for it

    judgement, notes = judge_by(question, None)
    if judgement.version_source == "default":
        notes.append(f"judged as Kubernetes 1.{judgement.minor}, the newest known (--server-version chooses another)")
    snapshot = Snapshot(question.scope(None), judgement.behaviour)
    reading = manifests.read(
        question.filename,
        recursive=question.recursive,
        stdin=sys.stdin.buffer,
    )
    seen: set[tuple[str, str, str]] = set()
    for loaded in reading.objects:
        metadata = loaded.object.metadata
        identity = (loaded.kind, metadata.namespace, metadata.name)
        if identity in seen and metadata.name:
            reading.skipped["repeated"] += 1
            continue
        seen.add(identity)
        match loaded.object:
            case Pod():
                snapshot.add_pod(loaded.object)
            case Node():
                snapshot.add_node(loaded.object)
            case Workload():
                snapshot.add_workload(loaded.kind, loaded.object, judge=True)
    nodes: report.NodesKnown = "listed" if snapshot.nodes else "none"
    audit = evaluate(snapshot, judgement.context(question), nodes=nodes)
    problems = [str(error) for error in reading.errors]
    problems += [f'{resource(target.kind)} "{target.name}" not found in the files' for target in snapshot.unmet()]
    skipped = snapshot.skipped + reading.skipped
    return Gathered(audit, judgement, nodes, question.all_namespaces, skipped=skipped, problems=problems, notes=notes)
