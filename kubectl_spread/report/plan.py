"""The report of `plan`; its JSON form is a contract (docs/json.md)."""

from __future__ import annotations

from kubectl_spread.report.model import API_VERSION, Cluster, Part, Workload

KIND = "SpreadPlan"


class PlannedDomain(Part, frozen=True, kw_only=True):
    """A domain that a pod leaves."""

    topology_key: str
    value: str


class PlannedEviction(Part, frozen=True, kw_only=True):
    """The eviction of one pod; ``owner`` replaces it, and has ``replicas`` pods.

    ``to`` has the values of the topology key of ``domain`` to which the replacement may go.
    """

    namespace: str
    pod: str
    uid: str
    node: str
    workload: Workload
    owner: Workload
    replicas: int
    domain: PlannedDomain
    to: list[str]
    why: str


class PlannedWave(Part, frozen=True, kw_only=True):
    """Evictions that disruption budgets allow together; the next wave waits for their replacements."""

    evictions: list[PlannedEviction]


class NotCorrectable(Part, frozen=True, kw_only=True):
    """A workload that has a skew above maxSkew or a stale pod after all waves."""

    namespace: str
    workload: Workload
    why: str


class PlanSummary(Part, frozen=True, kw_only=True):
    """Totals; ``uneven`` workloads have a skew above maxSkew or a stale pod, ``corrected`` ones only before the plan.

    ``not_simulated`` has what the simulation leaves out and could matter here. ``unknown`` has the parts of it that
    decide about pods: the exit status is 2.
    """

    evictions: int
    waves: int
    uneven: int
    corrected: int
    runs: int
    seed: int
    unknown: list[str]
    not_simulated: list[str]
    skipped: dict[str, int]


class SpreadPlan(Part, frozen=True, kw_only=True):
    """The report of ``plan``."""

    api_version: str = API_VERSION
    kind: str = KIND
    cluster: Cluster
    waves: list[PlannedWave]
    not_correctable: list[NotCorrectable]
    summary: PlanSummary
