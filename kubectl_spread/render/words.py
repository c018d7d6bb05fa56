"""Words that every text format shares: short kind names, safe strings, plurals."""

from __future__ import annotations

import unicodedata
from typing import Final

from kubectl_spread.audit.report import Cluster, Row, Workload

_SHORT_KINDS: Final = {
    "Deployment": "deploy",
    "ReplicaSet": "rs",
    "StatefulSet": "sts",
    "DaemonSet": "ds",
    "Job": "job",
    "CronJob": "cj",
    "ReplicationController": "rc",
    "Pod": "po",
}
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def safe(text: str) -> str:
    """Return text from an object with everything that could move a cursor or hide text written as an escape."""
    return "".join(_escape(char) if unicodedata.category(char) in _UNSAFE else char for char in text)


def _escape(char: str) -> str:
    """Return the escape that Python would write for a character."""
    return char.encode("unicode_escape", errors="surrogatepass").decode("ascii")


def workload(found: Workload) -> str:
    """Return a workload as kubectl users write it: ``deploy/web``."""
    return safe(f"{_SHORT_KINDS.get(found.kind, found.kind.lower())}/{found.name}")


def value(text: str) -> str:
    """Return a label value; an empty one is shown as ``""``."""
    return safe(text) or '""'


def plural(number: int, noun: str) -> str:
    """Return ``1 pod``, ``2 pods``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def short_path(path: str) -> str:
    """Return a field path without the parts every clause shares."""
    short = path.removeprefix("spec.").removeprefix("affinity.").removesuffix(".podAffinityTerm")
    return short.replace("DuringSchedulingIgnoredDuringExecution", "")


def clause(row: Row, *, short: bool = False) -> str:
    """Return what a row's clause asks for: ``topology.kubernetes.io/zone DoNotSchedule``; short: ``zone …``."""
    key = row.topology_key.rpartition("/")[2] if short else row.topology_key
    if isinstance(row.when_unsatisfiable, str):
        return safe(f"{key} {row.when_unsatisfiable}")
    kind, _, rest = short_path(row.path).partition(".")
    return safe(f"{key} {kind} {rest.partition('[')[0]}")


def judged_as(cluster: Cluster, pods: int) -> str:
    """Return the line that says what the report was judged by."""
    gates = {"metrics": "gates from metrics", "version": "gates assumed", "flag": "gates from flags"}
    parts = [f"judged as {cluster.judged_as} ({cluster.version_source})", gates[cluster.gates_source]]
    match cluster.nodes:
        case "listed":
            parts.append(plural(cluster.node_count if isinstance(cluster.node_count, int) else 0, "node"))
        case "inferred":
            parts.append("domains inferred from pods' labels")
        case "none":
            parts.append("no nodes")
    parts.append(plural(pods, "pod"))
    if version := cluster.resource_versions.get("pods"):
        parts.append(f"resourceVersion {version}")
    return ", ".join(parts)
