"""The files that ``-f`` names, and the manifests that ``kubectl kustomize`` renders for ``-k``.

The patches of kustomizations in directories are left out: parts of manifests, which Kustomize applies to other files.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from kubectl_spread import errors
from kubectl_spread.errors import SourceError
from kubectl_spread.sources.decode import json_documents, json_objects
from kubectl_spread.sources.decode.json_objects import MalformedFieldError
from kubectl_spread.sources.files import inputs
from kubectl_spread.sources.files.inputs import STDIN
from kubectl_spread.sources.paths import reason

_EXTENSIONS: Final = (".json", ".yaml", ".yml")
_LOCAL: Final = "-k takes a local directory; for a URL, pipe the output of kubectl kustomize to -f -"
PROGRAM: Final = "kubectl"
LONGEST: Final = 300.0
"""The seconds until kubectl is stopped; it gives up each ``git fetch`` of a remote base after 27."""
_ERROR: Final = "error: "
_WARNING: Final = "# Warning: "
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""The names of a kustomization's file.

Source: kubernetes-sigs/kustomize api/konfig/general.go, RecognizedKustomizationFileNames.
"""
_PATCHES: Final = ("patches", "patchesStrategicMerge", "patchesJson6902")
_OBJECTS: Final = ("resources", "bases")


class File(NamedTuple):
    """A file to read.

    Attributes:
        path: Its path, or ``-``.
        named: Whether the user named the file itself and not its directory.
        source: Its name in messages.
    """

    path: str
    named: bool
    source: str


class ChosenFiles(NamedTuple):
    """The files that ``-f`` names, or the manifests that kubectl renders for ``-k``.

    Attributes:
        paths: Files, directories and ``-``.
        recursive: Whether directories inside directories are read.
        stdin: The stream that ``-`` names; None where it is closed.
        stdin_name: The name of that stream in messages.
        notes: kubectl's warnings.
    """

    paths: Sequence[str]
    recursive: bool
    stdin: BinaryIO | None
    stdin_name: str = errors.STDIN
    notes: Sequence[str] = ()

    def expand(self) -> list[File]:
        """Return the files, each once, in the order of ``paths``; files of a directory by name.

        As kubectl does: a file that is named itself may have any extension, symlinks to directories are not followed
        inside a directory, ``-`` is standard input. Manifests in a directory may be gzipped, too.

        Raises:
            SourceError: A path does not exist, or a directory has no manifests.
        """
        files: dict[str, File] = {}
        for path in self.paths:
            if path == STDIN or not _is_directory(path):
                files[path] = File(path, named=True, source=self.stdin_name if path == STDIN else path)
                continue
            manifests = list(_manifests(path, recursive=self.recursive))
            if not manifests:
                extensions = " ".join(_EXTENSIONS)
                raise SourceError(f"error reading [{path}]: recognized file extensions are [{extensions}]")
            for file in manifests:
                files.setdefault(file, File(file, named=False, source=file))
        return list(files.values())

    def content(self, file: File) -> memoryview:
        """Return the content of a file, as ``inputs.content`` does.

        Raises:
            SourceError: It cannot be read, or the user named a file that is blank.
        """
        body = inputs.content(file.path, self.stdin)
        if file.named and json_documents.is_blank(body):
            problem = "empty, so there is nothing to check (did the command that wrote it fail?)"
            raise SourceError(f"{file.source}: {problem}")
        return body


def choose(filename: tuple[str, ...], *, recursive: bool, kustomize: str = "") -> ChosenFiles:
    """Return the files that options choose.

    Args:
        filename: The values of ``-f``.
        recursive: Whether there is ``-R``.
        kustomize: The value of ``-k``; "" for none.

    Raises:
        SourceError: ``kustomize`` is not a local directory, or kubectl cannot render it.
    """
    if not kustomize:
        return ChosenFiles(filename, recursive, inputs.standard_input())
    try:
        is_local = _is_directory(kustomize)
    except SourceError as error:
        raise SourceError(f"{error} ({_LOCAL})") from error
    if not is_local:
        raise SourceError(f'the path "{kustomize}" is not a directory ({_LOCAL})')
    manifests, warnings = render(kustomize)
    return ChosenFiles((STDIN,), recursive=False, stdin=manifests, stdin_name=kustomize, notes=warnings)


def _is_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(Path(path).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceError(f'the path "{path}" does not exist') from error
    except (OSError, ValueError) as error:
        raise SourceError(f'the path "{path}" cannot be accessed: {reason(error)}') from error


def _manifests(directory: str, *, recursive: bool) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError as error:
        raise SourceError(f"error reading {directory}: {error.strerror}") from error
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if recursive:
                yield from _manifests(entry.path, recursive=True)
        elif entry.name.removesuffix(".gz").endswith(_EXTENSIONS) and not os.path.isdir(entry.path):  # noqa: PTH112 - is_dir may raise
            yield entry.path


def render(directory: str, *, longest: float = LONGEST) -> tuple[BinaryIO, list[str]]:
    """Return the manifests that ``kubectl kustomize`` prints for a local directory, and its warnings.

    Args:
        directory: The directory of a kustomization; kubectl would fetch a URL.
        longest: The seconds until kubectl is stopped.

    Raises:
        SourceError: There is no kubectl, or it does not end or prints nothing, or it fails; the words are then its own.
    """
    import subprocess  # noqa: PLC0415 - only -k runs a program

    call, program = f"{PROGRAM} kustomize {directory}", _kubectl()
    try:
        # In a session of its own it has no terminal, so git cannot ask for a password.
        completed = subprocess.run(  # noqa: S603 - the first kubectl on PATH, as a shell would run it
            [program, "kustomize", "--", directory],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=longest,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise SourceError(f"{call} did not end within {longest:g} seconds") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot run {program}: {reason(error)}") from error
    status, messages = completed.returncode, completed.stderr.decode(errors="backslashreplace")
    lines = [line for line in messages.splitlines() if line.strip()]
    if status:
        ending = f"was ended by signal {-status}" if status < 0 else f"failed with exit status {status}"
        words = " ".join(line for line in lines if not line.startswith(_WARNING)).split()
        raise SourceError(" ".join(words).removeprefix(_ERROR) or f"{call} {ending}")
    if not completed.stdout.strip():
        raise SourceError(f"{call} printed nothing, so there is nothing to check")
    return BytesIO(completed.stdout), lines


def _kubectl() -> str:
    program = shutil.which(PROGRAM)
    if program is None:
        raise SourceError(f"-k needs {PROGRAM} on PATH: {PROGRAM} kustomize renders the manifests")
    # The working directory may be a repository that somebody else wrote.
    if not os.path.isabs(program):  # noqa: PTH117 - the answer for a path as it is written
        raise SourceError(f"-k: {program} is not run: PATH names its directory relative to the working directory")
    return program


def patches(paths: Sequence[str], files: Sequence[File]) -> list[File]:
    """Return the files of directories that a kustomization there lists as patches, and none as resources.

    Args:
        paths: The files and directories that the user names.
        files: All files that are read.
    """
    in_directories = [file for file in files if not file.named]
    kustomizations = list(_kustomizations(paths, in_directories))

    def listed(fields: Sequence[str]) -> set[str]:
        return {os.path.normpath(path.parent / name) for path in kustomizations for name in _names(path, fields)}

    only_patches = listed(_PATCHES) - listed(_OBJECTS)
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
            for name in _KUSTOMIZATIONS
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
