"""The directory of healthy manifests, and the findings that some of them deserve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from ruamel.yaml import YAML

from tests.builders import ZONE, Json

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


@cache
def by_chance() -> frozenset[Place]:
    """Return the places of SPR501 and SPR502 where only a preference of the scheduler keeps the pods apart."""
    return frozenset(_by_chance())


def _by_chance() -> Iterator[Place]:
    for path in DIRECTORY.glob("*.yaml"):
        for manifest in YAML(typ="safe").load_all(path.read_text(encoding="utf-8")):
            # Autoscalers set the number that a manifest lacks.
            if manifest["kind"] in ("Deployment", "StatefulSet") and manifest["spec"].get("replicas", 2) > 1:
                keys = set(_required_keys(manifest["spec"]["template"]["spec"]))
                metadata = manifest["metadata"]
                workload = f"{metadata['namespace']}/{manifest['kind']}/{metadata['name']}"
                if ZONE not in keys:
                    yield "SPR502", workload
                if not keys:
                    yield "SPR501", workload


def _required_keys(spec: Json) -> Iterator[str]:
    """Yield the topology keys that pods must not share, or must be spread over."""
    for constraint in spec.get("topologySpreadConstraints", ()):
        if constraint["whenUnsatisfiable"] == "DoNotSchedule" and "labelSelector" in constraint:
            yield constraint["topologyKey"]
    anti_affinity = spec.get("affinity", {}).get("podAntiAffinity", {})
    for term in anti_affinity.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
        yield term["topologyKey"]


def place(manifest: Json) -> Place:
    """Return the code and the workload of a finding."""
    owner = manifest["object"]
    return manifest["code"], f"{manifest['namespace']}/{owner['kind']}/{owner['name']}"
