"""The oracle: a Go program that places pods with the whole kube-scheduler of one Kubernetes version.

Source: ``oracle/``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.conformance import oracles
from tests.conformance.oracles import VERSIONS, Process

MINOR: Final = 37
VERSION: Final = VERSIONS[MINOR]

_SOURCE: Final = Path(__file__).parent / "oracle"


def oracle() -> Process:
    """Start the oracle.

    Raises:
        MissingToolError: Go is needed and not on PATH.
    """
    return Process([str(binary())])


def binary() -> Path:
    """Return the oracle; it is built if it is missing.

    Raises:
        MissingToolError: Go is needed and not on PATH.
    """
    return oracles.built("placements-oracle", _SOURCE, MINOR)


if __name__ == "__main__":
    print(binary())
