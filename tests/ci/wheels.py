"""Wheels of the plugin's dependencies, packed from the installed files, and a lock file with their hashes.

The action and the jobs install with ``--require-hashes``. With these, tests run their commands without a network.
"""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path, PurePosixPath
from typing import Final

from packaging.tags import parse_tag, sys_tags

from tests.generated import ROOT

LOCK: Final = ROOT / "release" / "locks" / "archive.txt"
_LIVE: Final = frozenset(
    (
        "aiohappyeyeballs",
        "aiohttp",
        "aiohttp-retry",
        "aiosignal",
        "annotated-types",
        "attrs",
        "charset-normalizer",
        "durationpy",
        "frozenlist",
        "idna",
        "kubernetes",
        "multidict",
        "oauthlib",
        "propcache",
        "pydantic",
        "pydantic-core",
        "python-dateutil",
        "requests",
        "requests-oauthlib",
        "typing-inspection",
        "tzdata",
        "websocket-client",
        "yarl",
    )
)
"""Dependencies of the login to a cluster alone: 4,000 files that checks of manifests do not need."""
_PIN: Final = re.compile(r"^([\w.-]+)(?:\[[\w,]+\])?==(\S+)", flags=re.MULTILINE)


def packed(directory: Path, *, live: bool = False) -> str:
    """Fill a new directory with wheels of the packages in the lock file, and return a lock file for the wheels.

    Args:
        directory: The new directory.
        live: Whether the dependencies of the login to a cluster are included.
    """
    directory.mkdir()
    pins = [pin for pin in _PIN.findall(LOCK.read_text(encoding="utf-8")) if live or pin[0] not in _LIVE]
    return "".join(pinned(name, version, _pack(distribution(name), directory)) for name, version in pins)


def pinned(name: str, version: str, wheel: Path) -> str:
    """Return the entry of a lock file for one wheel."""
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def of_the_plugin(directory: Path) -> Path:
    """Build the plugin's own wheel into ``directory`` and return it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = directory.glob("kubectl_spread-*.whl")
    return wheel


def _pack(installed: Distribution, directory: Path) -> Path:
    files = [PurePosixPath(file.as_posix()) for file in installed.files or ()]
    remaining = [file for file in files if ".." not in file.parts and "__pycache__" not in file.parts]
    (record,) = (file for file in remaining if file.name == "RECORD")
    remaining.remove(record)
    wheel = directory / f"{record.parent.name.removesuffix('.dist-info')}-{_tag(installed)}.whl"
    contents = {str(file): Path(str(installed.locate_file(str(file)))).read_bytes() for file in remaining}
    lines = [f"{name},{_digest(content)},{len(content)}\n" for name, content in contents.items()]
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
        archive.writestr(str(record), "".join([*lines, f"{record},,\n"]))
    return wheel


def _tag(installed: Distribution) -> str:
    """Return the first tag of an installed wheel that this interpreter supports."""
    tags: list[str] = re.findall(r"^Tag: (\S+)", installed.read_text("WHEEL") or "", flags=re.MULTILINE)
    taken = set(sys_tags())
    return next(tag for tag in tags if parse_tag(tag) & taken)


def _digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
