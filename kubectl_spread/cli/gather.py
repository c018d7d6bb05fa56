"""Gathering: from what is asked, and from files or a cluster, to an audit that can be reported."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import msgspec

from kubectl_spread.audit import report
from kubectl_spread.audit.evaluate import evaluate
from kubectl_spread.audit.snapshot import Snapshot
from kubectl_spread.cli.gathered import Gathered
from kubectl_spread.cli.judging import judge_files_by
from kubectl_spread.cli.question import Question
from kubectl_spread.cli.targets import resource
from kubectl_spread.kube.model import Event, Node, Pod
from kubectl_spread.kube.workloads import Workload


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


def from_files(question: Question) -> Gathered:
    """Audit what the files of ``--filename`` hold, without any cluster.

    Raises:
        UsageError: options contradict each other.
        SourceError: a path cannot be read at all.
    """
    from kubectl_spread.sources import manifests  # noqa: PLC0415 - a live check need not wait for it

    judgement, notes = judge_files_by(question)
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
            case Event():
                snapshot.add_event(loaded.object)
            case Workload():
                snapshot.add_workload(loaded.kind, loaded.object)
    nodes: report.NodesKnown = "listed" if snapshot.nodes else "none"
    audit = evaluate(snapshot, judgement.context(question), nodes=nodes)
    problems = [str(error) for error in reading.errors]
    problems += [f'{resource(target.kind)} "{target.name}" not found in the files' for target in snapshot.unmet()]
    skipped = snapshot.skipped + reading.skipped
    return Gathered(audit, judgement, nodes, question.all_namespaces, skipped=skipped, problems=problems, notes=notes)
