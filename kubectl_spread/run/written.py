"""A recommended change in a manifest: the lines to write, with their places, and the whole manifest with them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from kubectl_spread.errors import UsageError
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.recommend import candidates
from kubectl_spread.recommend.candidates import Draft
from kubectl_spread.render import yaml_text
from kubectl_spread.report.model import Operation
from kubectl_spread.rules import patches

if TYPE_CHECKING:
    from kubectl_spread.run.options import CheckOptions
    from kubectl_spread.sources.decode.json_objects import Path
    from kubectl_spread.sources.edit import Chunk

_STDIN: Final = "-"
_OF_SERVER: Final = frozenset(
    {"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid", "ownerReferences"}
)
"""The fields of metadata that the API server writes."""
_OF_CONTROLLERS: Final = frozenset(
    {"deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration"}
)
"""The annotations that no manifest has."""


def manifest(
    options: CheckOptions, namespace: str, ref: ObjectRef, draft: Draft, operations: Sequence[Operation]
) -> str:
    """Return the file with the manifest of a workload after a change; of a stored object in a capture only that object.

    A new budget follows as a document of its own.

    Args:
        options: The options of the command.
        namespace: The namespace of manifests that name none; "" for the default.
        ref: The workload.
        draft: The change.
        operations: The same as a JSON patch of the workload.

    Raises:
        UsageError: No file has the workload, or none can be read again.
        SourceError: A file cannot be read.
    """
    if _STDIN in options.filename:
        raise UsageError("-o yaml reads the manifest again, which standard input does not allow: name a file")
    from kubectl_spread.sources import edit  # noqa: PLC0415 - only this format edits
    from kubectl_spread.sources.files import chosen  # noqa: PLC0415 - likewise

    files = chosen.choose(options.filename, recursive=options.recursive)
    for file in files.expand():
        read = list(edit.read(bytes(files.content(file)), file.source))
        for chunk in read:
            path = _place(chunk, ref, namespace)
            if path is None:
                continue
            changed = _changed(chunk.at(path), draft, operations)
            if path or "uid" in changed["metadata"]:
                text = yaml_text.dump(_own(changed))
            else:
                text = "".join(each.text if each is not chunk else chunk.edited({(): changed}) for each in read)
            return _with_budget(text, draft)
    raise UsageError("-o yaml needs the manifest (-f web.yaml). For a workload of the cluster use the patch")


def _place(chunk: Chunk, ref: ObjectRef, namespace: str) -> Path | None:
    """Return the path of a workload in a document; None where that does not have it."""
    from kubectl_spread.sources.files import manifests, rawobjects  # noqa: PLC0415 - only this format reads again

    for member in rawobjects.members(chunk.record, takes_pages=True) if chunk.record else ():
        metadata = chunk.at(member.record.path).get("metadata", {}) if member.kind == ref.kind else {}
        place = metadata.get("namespace") or namespace or manifests.NAMESPACE
        if (metadata.get("name"), place) == (ref.name, ref.namespace):
            return member.record.path
    return None


def _changed(document: Any, draft: Draft, operations: Sequence[Operation]) -> Any:
    """Return a manifest after a patch; it may leave out the strategy, which the patch is in."""
    changed = deepcopy(document)
    if draft.makes_room:
        changed["spec"].setdefault("strategy", {}).setdefault("rollingUpdate", {})
    patches.change(changed, [operation for operation in operations if operation.op != "test"])
    return changed


def _own(stored: dict[str, Any]) -> dict[str, Any]:
    """Return a stored object without what the API server has written."""
    metadata = {key: value for key, value in stored["metadata"].items() if key not in _OF_SERVER}
    annotations = {key: value for key, value in metadata.pop("annotations", {}).items() if key not in _OF_CONTROLLERS}
    metadata |= {"annotations": annotations} if annotations else {}
    return {"apiVersion": stored["apiVersion"], "kind": stored["kind"], "metadata": metadata, "spec": stored["spec"]}


def _with_budget(text: str, draft: Draft) -> str:
    if draft.budget is None:
        return text
    end = "" if text.endswith("\n") else "\n"
    return f"{text}{end}---\n{yaml_text.dump(candidates.budget_manifest(draft.budget))}"
