"""The lock file of a release, with the hashes of the wheel and of its dependencies."""

from __future__ import annotations

import hashlib
from pathlib import Path
from string import Template
from typing import Final

from kubectl_spread import __version__
from release.environments import ROOT

_LOCK: Final = ROOT / "release" / "locks" / "archive.txt"
_HEAD: Final = Template("""\
# kubectl-spread $version and all that it needs, each with its hash. Install it with
# python -I -m pip install --only-binary :all: --require-hashes -r requirements.txt
kubectl-spread==$version --hash=sha256:$digest
""")


def text(wheel: bytes, locked: str, version: str = __version__) -> str:
    """Return the lock file of a wheel; ``locked`` is the lock file of its dependencies."""
    return _HEAD.substitute(version=version, digest=hashlib.sha256(wheel).hexdigest()) + locked


def write(target: Path, wheel: Path) -> None:
    """Write the lock file of a wheel that was built."""
    target.write_text(text(wheel.read_bytes(), _LOCK.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
