"""The patches of kustomizations in directories: parts of manifests, which Kustomize applies to other files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_objects import MalformedFieldError
from kubectl_spread.sources.files import inputs
from kubectl_spread.sources.files.inputs import File

_NAMES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""The names of a kustomization's file.

Source: kubernetes-sigs/kustomize api/konfig/general.go, RecognizedKustomizationFileNames.
"""
_PATCHES: Final = ("patches", "patchesStrategicMerge", "patchesJson6902")
_OBJECTS: Final = ("resources", "bases")


def patches(paths: Sequence[str], files: Sequence[File]) -> list[File]:
    """Return the files of directories that a kustomization there lists as patches, and none as resources.

    Args:
        paths: The files and directories that the user names.
        files: All files that are read.
    """
    in_directories = [file for file in files if not file.named]
    listed: dict[str, set[str]] = {_PATCHES[0]: set(), _OBJECTS[0]: set()}
    for path in _kustomizations(paths, in_directories):
        for kind, fields in ((_PATCHES[0], _PATCHES), (_OBJECTS[0], _OBJECTS)):
            listed[kind].update(os.path.normpath(path.parent / name) for name in _names(path, fields))
    only_patches = listed[_PATCHES[0]] - listed[_OBJECTS[0]]
    return [file for file in in_directories if os.path.normpath(file.path) in only_patches]


def _kustomizations(paths: Sequence[str], files: Sequence[File]) -> Iterator[Path]:
    """Yield the kustomizations in the directories of files, and in those around them up to the ones that are named."""
    roots = {Path(path) for path in paths}
    directories: dict[Path, None] = {}
    for file in files:
        for directory in Path(file.path).parents:
            if directory in directories:
                break
            directories[directory] = None
            if directory in roots:
                break
    for directory in directories:
        yield from (
            path
            for name in _NAMES
            if os.path.isfile(path := directory / name)  # noqa: PTH113 - is_file may raise
        )


def _names(path: Path, fields: Sequence[str]) -> Iterator[str]:
    """Yield the files that some fields of a kustomization list; a text may be a patch itself."""
    try:
        values = [json_objects.values(record.content) for record in inputs.records(str(path))]
    except (SourceError, MalformedFieldError, ValueError, RecursionError):
        # Kustomize cannot read it either; where it is read as a manifest, that is an error.
        return
    for value in values:
        for field in fields:
            entries: Any = value.get(field) if isinstance(value, dict) else None
            for entry in entries if isinstance(entries, list) else ():
                name = entry.get("path") if isinstance(entry, dict) else entry
                if isinstance(name, str) and "\n" not in name:
                    yield name
