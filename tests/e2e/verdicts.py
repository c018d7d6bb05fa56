"""The verdicts of a report on single pods, and edits of many pods at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.builders import Json
from tests.controlplane.cluster import ControlPlane
from tests.e2e.spread import Report, Spread

FIRST_CONSTRAINT = "spec.topologySpreadConstraints[0]"


class PodVerdict(NamedTuple):
    """The verdict on one pod, its confidence, and the managers that changed its labels."""

    verdict: str
    confidence: str = "certain"
    changed_by: tuple[str, ...] = ()


MERGED = PodVerdict("merged")
ABSENT = PodVerdict("absent-key")
BY_SCHEDULER = PodVerdict("scheduler-merged")
PRE_UPGRADE = PodVerdict("pre-upgrade", "likely")
# No cause is claimed; the last manager of the label is named where managedFields has it.
UNMERGED = PodVerdict("unmerged", "unknown")
UNMERGED_EDITED = PodVerdict("unmerged", "unknown", ("kubectl-label",))
STALE = PodVerdict("stale-label", "certain", ("kubectl-label",))
STALE_UNTRACKED = PodVerdict("stale-label")
REMOVED = PodVerdict("removed-label", "likely")


def look(spread: Spread, namespace: str, *arguments: str) -> Report:
    """Return the report on a namespace, without that pods wait: some clusters have no scheduler, some pods have gates.

    Exit status 1 is expected, since pending pods have stale selectors.
    """
    answer = spread("check", "-n", namespace, "-o", "json", "--ignore", "SPR315", *arguments)
    assert answer.status in (0, 1), answer.stderr
    return answer.report


def pod_verdicts(report: Report, path: str = FIRST_CONSTRAINT) -> dict[str, PodVerdict]:
    """Map every pod with a constraint or term at ``path`` to its verdict.

    A report lists only pods that are not merged, so its rows must count the others as merged.
    """
    listed = {entry["name"]: _pod_verdict(entry) for entry in report["pods"] if entry["path"] == path}
    rows = [row for row in report["constraints"] if row["path"] == path]
    in_rows = sum(sum(row["verdicts"].values()) for row in rows)
    merged = sum(row["verdicts"].get("merged", 0) for row in rows)
    assert len(listed) == in_rows - merged
    workloads = {(row["workload"]["kind"], row["workload"]["name"]) for row in rows}
    # Groups contain only pods with spread constraints; the row of a bare pod names the pod.
    names = {name for kind, name in workloads if kind == "Pod"} | {
        name
        for group in report["groups"]
        if (group["workload"]["kind"], group["workload"]["name"]) in workloads
        for name in group["pods"]
    }
    assert len(names) == in_rows
    return {name: listed.get(name, MERGED) for name in names}


def evidence(report: Report, pod: str, path: str = FIRST_CONSTRAINT) -> list[str]:
    """Return the evidence for the verdict on the first key of a pod at ``path``."""
    (entry,) = (entry for entry in report["pods"] if (entry["name"], entry["path"]) == (pod, path))
    words: list[str] = entry["keys"][0]["evidence"]
    return words


def _pod_verdict(entry: Json) -> PodVerdict:
    changed = tuple(key["changedBy"]["manager"] for key in entry["keys"] if "changedBy" in key)
    return PodVerdict(entry["verdict"], entry["confidence"], changed)


def edit(cluster: ControlPlane, namespace: str, edits: Mapping[str, Sequence[str]]) -> None:
    """Edit labels as users do, several pods with one command: ``{"rev=r2": ["a", "b"], "rev-": ["c"]}``."""
    for change, pods in edits.items():
        if pods:
            cluster.kubectl("label", "pod", *pods, "-n", namespace, "--overwrite", change)


def forget_managers(cluster: ControlPlane, namespace: str, *pods: str) -> None:
    """Empty managedFields, as the API allows anyone who may edit a pod to do."""
    for pod in pods:
        cluster.api.patch(f"/api/v1/namespaces/{namespace}/pods/{pod}", {"metadata": {"managedFields": [{}]}})
