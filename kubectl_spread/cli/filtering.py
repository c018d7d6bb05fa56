"""The common part of ``merge`` and ``unmerge``, which read manifests and write manifests or a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec
from msgspec import UNSET

from kubectl_spread.audit.merge import merging
from kubectl_spread.audit.merge.merging import Outcome
from kubectl_spread.cli import output
from kubectl_spread.errors import DecodeError, Position, SourceError, UsageError
from kubectl_spread.kube.api.types import Pod
from kubectl_spread.kube.api.workloads import WorkloadObject
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.phrases import plural
from kubectl_spread.render import structured
from kubectl_spread.report import mergereport
from kubectl_spread.run.options import CheckOptions, options_of, target_for
from kubectl_spread.sources import edit
from kubectl_spread.sources.decode.json_objects import Path
from kubectl_spread.sources.edit import Chunk
from kubectl_spread.sources.files import chosen, manifests, rawobjects
from kubectl_spread.sources.files.chosen import ChosenFiles, File
from kubectl_spread.sources.files.manifests import Loaded, Repeats
from kubectl_spread.sources.files.rawobjects import RawObject

Treatment: TypeAlias = Callable[[Pod, Behaviour], Outcome]


class FilterRun(msgspec.Struct):
    """One run over all files.

    Attributes:
        treat: The function that merges or unmerges a pod.
        form: The format of the report; None to write manifests.
        leaves_out: Whether refused objects are left out of the output.
        refused: Whether the API would refuse an object, or the pods of a workload.
        failed: Whether an object or a file could not be read.
        documents: The number of documents that were read.
        repeats: Recognizes objects that were read before.
        passed_over: The number of skipped documents in directories, which are not Kubernetes objects.
        items: The items of the report.
    """

    treat: Treatment
    form: str | None
    leaves_out: bool
    refused: bool = False
    failed: bool = False
    documents: int = 0
    repeats: Repeats = msgspec.field(default_factory=Repeats)
    passed_over: int = 0
    items: list[mergereport.Item] = msgspec.field(default_factory=list)
    _stream: edit.Stream = msgspec.field(default_factory=edit.Stream)

    def read(self, arguments: dict[str, object]) -> None:
        """Merge or unmerge the files that the options name, and write them or the report.

        Raises:
            UsageError: The options name no files, or contradict each other.
        """
        options = options_of(arguments, CheckOptions)
        if not options.reads_files:
            raise UsageError("must specify one of -f and -k")
        target_version = target_for(options, None)
        if target_version.assumption:
            output.note(target_version.assumption)
        files = chosen.choose(options.filename, recursive=options.recursive, kustomize=options.kustomize)
        for note in (*target_version.warnings, *files.notes):
            output.note(note)
        for file in files.expand():
            try:
                self._file(file, files, target_version.behaviour)
            except SourceError as error:
                self._fail(error)
        if self.documents == self.passed_over and not self.failed:
            self._fail(manifests.without_objects(files.paths))
        if self.passed_over:
            output.note(f"left out, as not Kubernetes objects: {plural(self.passed_over, 'document')}")
        if self.form:
            report = mergereport.MergeReport(items=tuple(self.items))
            output.data(structured.document(report, self.form))

    def _file(self, file: File, files: ChosenFiles, behaviour: Behaviour) -> None:
        for chunk in edit.read(bytes(files.content(file)), file.source):
            self.documents += not chunk.empty
            self._chunk(chunk, file, behaviour)

    def _chunk(self, chunk: Chunk, file: File, behaviour: Behaviour) -> None:
        source = file.source
        if chunk.fault is not None:
            self._fail(chunk.fault)
            return
        members = list(rawobjects.members(chunk.record, takes_pages=True)) if chunk.record else []
        if members and not file.named and not members[0].is_kubernetes:
            self.passed_over += 1
            return
        try:
            changes = dict(self._changes(members, chunk, source, behaviour))
        except SourceError as error:
            self._fail(SourceError(f"{Position(source, members[0].record.line_of())}: {error}"))
            return
        if self.form or (members and all(changes.get(member.record.path) is UNSET for member in members)):
            return
        try:
            text = chunk.edited(changes) if changes else chunk.text
        except DecodeError as error:
            self._fail(error)
            return
        output.data(edit.encoded(self._stream.add(chunk, text)))

    def _changes(
        self, members: list[RawObject], chunk: Chunk, source: str, behaviour: Behaviour
    ) -> Iterator[tuple[Path, object]]:
        """Yield the new values of the members of a chunk that change."""
        for member in members:
            if not _is_evaluated(member):
                continue
            path = member.record.path
            try:
                loaded = manifests.load(member, source)
                if loaded is None:
                    continue
                self.repeats.copy_of(loaded)
            except (DecodeError, SourceError) as error:
                self._fail(error)
                yield path, UNSET
                continue
            outcome = self._treated(loaded, behaviour)
            document = chunk.at(path)
            if self.form:
                metadata = loaded.object.metadata
                self.items.append(mergereport.item(loaded.kind, metadata.namespace, metadata.name, document, outcome))
            if outcome.errors and self.leaves_out:
                yield path, UNSET
            elif outcome.changes:
                yield path, merging.applied(document, outcome.changes)

    def _treated(self, loaded: Loaded, behaviour: Behaviour) -> Outcome:
        """Evaluate one object, and report it on stderr."""
        match loaded.object:
            case Pod():
                outcome = self.treat(loaded.object, behaviour)
            case WorkloadObject():
                outcome = merging.judge_workload(loaded.kind, loaded.object, behaviour)
            case _:
                return Outcome(())
        metadata = loaded.object.metadata
        pod_errors = outcome.pods.errors if outcome.pods and not outcome.errors else ()
        self.refused = self.refused or bool(outcome.errors or pod_errors)
        prefix = "" if self.leaves_out else "a re-creation would be refused: "
        subject = f"{loaded.position}: {loaded.kind} {metadata.namespace}/{metadata.name}"
        for text in (
            *(f"{prefix}{error.message}" for error in outcome.errors),
            *(f"every pod would be refused: {error.message}" for error in pod_errors),
            *(f"Warning: {warning}" for warning in outcome.warnings),
            *outcome.notes,
        ):
            output.note(f"{subject}: {text}")
        return outcome

    def _fail(self, error: SourceError | DecodeError) -> None:
        self.failed = True
        output.error(str(error))


def _is_evaluated(member: RawObject) -> bool:
    """Tell whether a member has a pod spec, or a fault; other members stay as they are."""
    if member.type is None:
        return member.fault is not None
    return issubclass(member.type, Pod | WorkloadObject)
