"""Archives that have the same bytes for the same files: sorted, with one time, and without owners and links."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PROGRAM: Final = 0o755
_FILE: Final = 0o644
_UNIX: Final = 3
"""The system that made a zip; only a zip of Unix has file modes."""


def write(target: Path, directory: Path, programs: frozenset[str], moment: int) -> None:
    """Write all files of ``directory`` to a ``.tar.gz`` or ``.zip``, below the directory's name.

    Args:
        target: The archive to write.
        directory: The directory to archive; links are followed.
        programs: The names of the executable files in ``directory``.
        moment: The modification time of all files, in seconds since 1970.
    """
    entries = [
        (path, path.relative_to(directory.parent).as_posix(), _mode(path, directory, programs))
        for path in _all(directory)
    ]
    if target.suffix == ".zip":
        target.write_bytes(_zip(entries, moment))
    else:
        # gzip would write the present time into its header.
        target.write_bytes(gzip.compress(_tar(entries, moment), mtime=0))


def _all(directory: Path) -> Iterator[Path]:
    for parent, directories, files in os.walk(directory, followlinks=True):
        directories.sort()
        yield Path(parent)
        yield from (Path(parent, name) for name in sorted(files))


def _mode(path: Path, directory: Path, programs: frozenset[str]) -> int:
    runs = path.is_dir() or (path.parent == directory and path.name in programs)
    return _PROGRAM if runs else _FILE


def _tar(entries: list[tuple[Path, str, int]], moment: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, name, mode in entries:
            entry = tarfile.TarInfo(name)
            entry.mode, entry.mtime = mode, moment
            if path.is_dir():
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
            else:
                content = path.read_bytes()
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _zip(entries: list[tuple[Path, str, int]], moment: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, name, mode in entries:
            if path.is_dir():
                continue
            entry = zipfile.ZipInfo(name, time.gmtime(moment)[:6])
            entry.create_system, entry.external_attr = _UNIX, mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    return buffer.getvalue()
