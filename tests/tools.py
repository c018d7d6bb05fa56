"""Build the programs that tests run, from their Go modules: ``python -m tests.tools [--all]`` (``make tools``).

Each is kept by version and content (``binaries.cache_directory``), so that only a missing one is built. CI needs some
of them; ``--all`` builds what a longer run needs too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tests.conformance import oracles
from tests.conformance.newnodes import oracles as newnodes
from tests.conformance.placements import oracles as placements
from tests.conformance.settings import CI_MINORS
from tests.controlplane import binaries
from tests.e2e import go_programs
from tests.install import programs
from tests.mixin import rendering

_APISERVER = ("kube-apiserver",)


def builders(*, everything: bool) -> list[Callable[[], Path]]:
    """Return what builds each program, the slow and much used ones first."""
    minors = tuple(oracles.VERSIONS) if everything else CI_MINORS
    modules: list[tuple[str, ...]] = [go_programs.HELM, go_programs.KUBE_RBAC_PROXY, rendering.JSONNET]
    if everything:
        modules.append(go_programs.THANOS)
    return [
        binaries.etcd,
        binaries.kubernetes,
        *(partial(binaries.kubernetes, version, _APISERVER) for version in binaries.OLDER_APISERVERS),
        binaries.kubectl,
        *(partial(oracles.binary, minor) for minor in minors),
        placements.binary,
        *([newnodes.binary, newnodes.kwok] if everything else []),
        *(partial(go_programs.binary, *module) for module in modules),
        *(partial(programs.program, name) for name in programs.PACKAGES),
    ]


def main(arguments: Sequence[str]) -> None:
    """Build what is missing; print the path of each program, and the seconds that it took."""
    for build in builders(everything="--all" in arguments):
        began = time.monotonic()
        path = build()
        print(f"{time.monotonic() - began:6.0f} s  {path}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
