"""A check that the input has nodes of the pods; without them, placement is not evaluated."""

from __future__ import annotations

from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.phrases import plural, some


def unknown_nodes(snapshot: Snapshot) -> str:
    """Return an error where the input has bound pods and none of their nodes, else ""."""
    pods = snapshot.pods_on_nodes()
    listed = {node.metadata.name for node in snapshot.nodes}
    if not pods or not listed.isdisjoint(pods):
        return ""
    run = "pod runs on a node" if pods.total() == 1 else "pods run on nodes"
    where = f"not among the {plural(len(listed), 'node')} that were read ({some(list(pods))})"
    return f"{pods.total()} bound {run} {where}: placement is not evaluated"
