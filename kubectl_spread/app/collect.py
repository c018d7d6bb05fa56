"""Gathering: from what is asked, and from files or a cluster, to an audit that can be reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from kubectl_spread.app import output, placement, schedulers, targets
from kubectl_spread.app.checkrun import CheckRun
from kubectl_spread.app.hints import hints
from kubectl_spread.app.identity import identity
from kubectl_spread.app.options import CheckOptions, refuse_undecodable
from kubectl_spread.app.target import judge_files_by
from kubectl_spread.app.targets import resource
from kubectl_spread.audit.evaluation.evaluate import Audit, evaluate
from kubectl_spread.audit.merge.verdicts import LABEL_MAY_HAVE_CHANGED
from kubectl_spread.audit.snapshot.records import Manifest
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import Event, Namespace, Node, Pod
from kubectl_spread.kube.api.workloads import KINDS, WorkloadObject
from kubectl_spread.kube.scheduler.defaultconstraints import MapSelecting
from kubectl_spread.phrases import plural
from kubectl_spread.report import model

if TYPE_CHECKING:
    from kubectl_spread.sources.files.manifests import ManifestReading

_WITH_PODS: Final = frozenset({"Pod", *(kind for _, kind in KINDS)})
_NO_MANAGED_FIELDS: Final = (
    "no managedFields in what was read: capture with --show-managed-fields to see who changed a label"
)


def collect(asked: Mapping[str, object]) -> tuple[CheckOptions, CheckRun]:
    """Read what a command's options ask for, from files or from a cluster.

    Args:
        asked: The options of ``cli.options`` as click hands them over.

    Raises:
        SpreadError: it cannot be read at all.
    """
    question = asked_in(asked)
    gathered = from_files(question) if question.filename else _from_cluster(question, asked)
    gathered.notes += hints(question, gathered.audit)
    return question, gathered


def asked_in(asked: Mapping[str, object]) -> CheckOptions:
    """Return what a command's options ask for, without those of the connection.

    Raises:
        UsageError: an option or argument that is sent or compared is not UTF-8 text.
    """
    refuse_undecodable(asked)
    return msgspec.convert(
        {name: asked[name] for name in CheckOptions.__struct_fields__ if name in asked}, CheckOptions
    )


def _from_cluster(question: CheckOptions, asked: Mapping[str, object]) -> CheckRun:
    # The kubernetes package takes half a second.
    from kubectl_spread.app.live import Live, flags  # noqa: PLC0415
    from kubectl_spread.sources.apiserver import buffers  # noqa: PLC0415
    from kubectl_spread.sources.apiserver.cluster import LiveCluster  # noqa: PLC0415

    buffers.keep_apart()
    return Live(question, LiveCluster.connect(flags(asked), output.note, output.progress)).gather()


def from_files(question: CheckOptions) -> CheckRun:
    """Audit what the files of ``--filename`` hold, without any cluster.

    Raises:
        UsageError: options contradict each other.
        SourceError: a path cannot be read at all.
    """
    from kubectl_spread.sources.files import inputs, manifests  # noqa: PLC0415 - a live check need not wait for them

    judgement, notes = judge_files_by(question)
    snapshot = Snapshot(question.scope(None), closely=question.explaining, schedulers=schedulers.known(question))
    reading = manifests.read(
        question.filename,
        recursive=question.recursive,
        stdin=inputs.standard_input(),
        detailed=question.explaining,
        services=snapshot.deduction.keeps,
    )
    _fold(reading, snapshot)
    targets.resolve(snapshot)
    unknown = schedulers.apply(snapshot, schedulers.OWNER_KINDS)
    elsewhere = placement.unknown_nodes(snapshot) if snapshot.nodes else ""
    nodes: model.NodesKnown = "listed" if snapshot.nodes and not elsewhere else "none"
    audit = evaluate(snapshot, judgement.context(question), nodes=nodes)
    notes += inputs.unread(question.filename, recursive=question.recursive)
    notes += [*_capture_hint(audit), *schedulers.hints(snapshot)]
    problems = [*(str(error) for error in reading.errors), *unknown, *filter(None, [elsewhere])]
    problems += [f'{resource(target.kind)} "{target.name}" not found in the files' for target in snapshot.unmet()]
    skipped = snapshot.skipped + reading.skipped
    return CheckRun(
        audit,
        judgement,
        nodes,
        question.all_namespaces,
        skipped=skipped,
        problems=problems,
        notes=notes,
        without_pods=_without_pods(reading),
        identity=identity(question.cluster_name),
    )


def _fold(reading: ManifestReading, snapshot: Snapshot) -> None:
    """Add every object that was read to a snapshot; of equal ones the first, and of a conflict too."""
    from kubectl_spread.sources.files.repeats import Repeats  # noqa: PLC0415 - as above

    repeats = Repeats()
    for loaded in reading.objects:
        try:
            copy = repeats.copy_of(loaded)
        except SourceError as error:
            reading.skipped["conflicting"] += 1
            reading.errors.append(error)
            continue
        if copy is None:
            reading.skipped["repeated"] += 1
            continue
        manifest = Manifest(loaded.position, loaded.unknown_fields, copy) if loaded.is_manifest else None
        match loaded.object:
            case Pod():
                snapshot.add_pod(loaded.object, manifest)
            case Node():
                snapshot.add_node(loaded.object)
            case Namespace():
                snapshot.neighbours.add_namespace(loaded.object)
            case Event():
                snapshot.add_event(loaded.object)
            case MapSelecting():
                snapshot.deduction.add_service(loaded.object)
            case WorkloadObject():
                snapshot.add_workload(loaded.kind, loaded.object, manifest)


def _without_pods(reading: ManifestReading) -> str:
    """Return what stands in files in which there are no pods or pod templates; "" where there are, or nothing is."""
    if any(kind in _WITH_PODS for kind in reading.kinds):
        return ""
    others = reading.kinds.total() + reading.skipped["unknownKind"]
    strangers = reading.skipped["notKubernetes"]
    parts = [
        f"{plural(others, 'object')} of {'another kind' if others == 1 else 'other kinds'}" if others else "",
        f"not Kubernetes objects: {plural(strangers, 'document')}" if strangers else "",
    ]
    counted = "; ".join(filter(None, parts))
    return f"no pods or pod templates in {plural(reading.files, 'file')} ({counted})" if counted else ""


def _capture_hint(audit: Audit) -> list[str]:
    """Say that a capture lacks what some verdict needs, if it has it for no pod; a manifest never has it."""
    if audit.snapshot.with_managed_fields:
        return []
    members = (member for row in audit.rows for member in row.members if member.pod.shape.stored)
    if any(key.verdict in LABEL_MAY_HAVE_CHANGED for member in members for key in member.keys):
        return [_NO_MANAGED_FIELDS]
    return []
