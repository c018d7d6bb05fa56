"""The root file system of the container image: the program, the system libraries that it loads, and no shell.

``deploy/Containerfile`` runs this module as a script in an image of Python on Debian, so it imports only the standard
library. The system libraries are those of the machine that runs it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

PROGRAM: Final = PurePosixPath("/opt/kubectl-spread/kubectl-spread")
USER: Final = 65532
"""The user and group of the program; ``nonroot`` in the images of the distroless project, too."""
_CONTENTS: Final = ("LICENSE", "THIRD-PARTY-NOTICES.txt", "_internal", "kubectl-spread")
"""The files of the archive that the image needs: neither manual pages nor completion."""
_LICENCES: Final = (Path("/usr/share/doc/libc6/copyright"), Path("/usr/share/doc/zlib1g/copyright"))
_LIBRARY: Final = re.compile(r"(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_MISSING: Final = re.compile(r"(\S+) => not found")
_FILES: Final = {
    "etc/passwd": f"nonroot:x:{USER}:{USER}:nonroot:/:/sbin/nologin\n",
    "etc/group": f"nonroot:x:{USER}:\n",
    # Without this file the C library asks DNS before /etc/hosts.
    "etc/nsswitch.conf": "hosts: files dns\n",
}


def write(archive: Path, root: Path) -> None:
    """Write the root file system to ``root``, which must not exist.

    Args:
        archive: The archive for Linux that ``make dist`` writes, of the processor of this machine.
        root: The directory to write.

    Raises:
        FileNotFoundError: A library or its licence is missing on this machine.
    """
    program = root / PROGRAM.relative_to("/")
    with tarfile.open(archive) as opened:
        opened.extractall(program.parent.parent, _wanted(opened), filter="data")
    for file in {*_libraries(program), *_LICENCES}:
        _copy(file, root)
    for name, text in _FILES.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in (root, *root.rglob("*")):
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


def _wanted(archive: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """Return the entries of the archive that the image needs."""
    wanted = {(), *((name,) for name in _CONTENTS)}
    return [entry for entry in archive.getmembers() if PurePosixPath(entry.name).parts[1:2] in wanted]


def _libraries(program: Path) -> Iterator[Path]:
    """Yield the libraries of this machine that the program and its own libraries load, and the loader itself."""
    contents = program.parent / "_internal"
    yield from _loaded([program], os.environ)
    # The program adds this directory to the variable before it loads anything from there.
    own = (path for path in contents.rglob("*") if path.is_file() and _is_binary(path))
    for library in _loaded(own, {**os.environ, "LD_LIBRARY_PATH": str(contents)}):
        if not library.is_relative_to(contents):
            yield library


def _loaded(binaries: Iterable[Path], variables: Mapping[str, str]) -> Iterator[Path]:
    command = ["ldd", *map(str, binaries)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=variables).stdout
    missing = sorted(set(_MISSING.findall(output)))
    if missing:
        raise FileNotFoundError(f"libraries are missing on this machine: {', '.join(missing)}")
    yield from map(Path, _LIBRARY.findall(output))


def _is_binary(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _copy(file: Path, root: Path) -> None:
    target = root / file.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)
    shutil.copymode(file, target)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("root", type=Path)
    arguments = parser.parse_args()
    write(arguments.archive.absolute(), arguments.root.absolute())
