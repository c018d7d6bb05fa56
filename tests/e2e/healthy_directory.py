"""The directory of healthy manifests, and the findings that some of them deserve."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.builders import Json

DIRECTORY: Final = Path(__file__).parent / "healthy"
Place = tuple[str, str]
"""The code of a finding and the workload, written ``namespace/Kind/name``."""

DESERVED: Final[dict[Place, str]] = {
    ("SPR204", "databases/StatefulSet/cockroachdb"): (
        "its constraint has no labelSelector, so it selects no pod and spreads nothing"
    ),
}
"""Maps each warning and error that the directory deserves to the reason."""


def serious(findings: Iterable[Json]) -> set[Place]:
    """Return the places of the findings above info."""
    return {place(finding) for finding in findings if finding["severity"] != "info"}


def place(manifest: Json) -> Place:
    """Return the code and the workload of a finding."""
    owner = manifest["object"]
    return manifest["code"], f"{manifest['namespace']}/{owner['kind']}/{owner['name']}"
