"""The report of `simulate`; its JSON form is a contract (docs/json.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import UNSET, UnsetType

from kubectl_spread.report.model import API_VERSION, Cluster, Part, Severity, Workload

AUTOSCALERS: Final = "cluster autoscalers"
"""What is not simulated where pods wait and an autoscaler may add nodes for them."""
NODES_TO_COME: Final = "what autoscalers do with nodes later, such as consolidation"
"""What is not simulated where new nodes are."""

KIND = "SpreadSimulation"


class Range(Part, frozen=True, kw_only=True):
    """The smallest and the largest number of all runs."""

    min: int
    max: int

    @property
    def text(self) -> str:
        """The numbers as the table has them: ``2``, or ``2..3``."""
        return str(self.min) if self.min == self.max else f"{self.min}..{self.max}"

    @property
    def words(self) -> str:
        """The numbers as a sentence has them: ``2``, or ``2 to 3``."""
        return str(self.min) if self.min == self.max else f"{self.min} to {self.max}"

    def of(self, noun: str) -> str:
        """Return the numbers with their noun: ``1 pod``, ``2 to 3 pods``."""
        return f"{self.words} {noun}{'s' * (self.max != 1)}"


def span(numbers: Iterable[int]) -> Range:
    """Return the smallest and the largest of some numbers."""
    values = list(numbers)
    return Range(min=min(values), max=max(values))


class PodNumbers(Part, frozen=True, kw_only=True):
    """The pods of a workload with and without a node, before the events; ``ready`` are some of the running ones.

    A pod whose node does not answer is none of these.
    """

    running: int
    ready: int
    pending: int


class PodRanges(Part, frozen=True, kw_only=True):
    """The pods of a workload with and without a node, after the events.

    ``new`` pods are pending and were not before. No other pods run in the place of ``not_replaced`` pods, which are on
    nodes that do not answer, or were lost and of an index of a Job that fails.
    """

    running: Range
    pending: Range
    new: Range
    not_replaced: Range


class SimulatedDomain(Part, frozen=True, kw_only=True):
    """A domain with running pods of a workload, ``before`` the events or after them."""

    topology_key: str
    value: str
    before: int
    pods: Range


class SimulatedSkew(Part, frozen=True, kw_only=True):
    """The skew of a constraint of a workload's pods after the events."""

    topology_key: str
    skew: Range


class SimulatedReason(Part, frozen=True, kw_only=True):
    """Why pods of a workload would stay pending."""

    text: str
    pods: Range


class SimulatedWorkload(Part, frozen=True, kw_only=True):
    """A workload before and after the events, and the fewest ready pods at any moment, ``least``.

    ``lost`` pods were removed by the events, or are on nodes that these let fail. They may have been replaced.
    """

    namespace: str
    workload: Workload
    before: PodNumbers
    lost: int
    least: Range
    after: PodRanges
    domains: list[SimulatedDomain]
    skews: list[SimulatedSkew]
    reasons: list[SimulatedReason]


class RefusedEviction(Part, frozen=True, kw_only=True):
    """An eviction that PodDisruptionBudgets refuse for good, so that the pod is left on its node."""

    node: str
    namespace: str
    pod: str
    budget: str


class AffectedWorkload(Part, frozen=True, kw_only=True):
    """A workload of a finding, with its pods that would stay pending; ``new`` ones were not pending before."""

    namespace: str
    workload: Workload
    pending: Range
    new: Range


class TriedFix(Part, frozen=True, kw_only=True):
    """Another fix of a finding, with the commands that carry it out."""

    fix: str
    commands: list[str]


class SimulationFinding(Part, frozen=True, kw_only=True):
    """A consequence of the events, for the workloads that have it for the same reason.

    ``fix`` was simulated: with it, none of these pods would stay pending. ``commands`` carry it out. So were the
    ``alternatives``.
    """

    severity: Severity
    message: str
    workloads: list[AffectedWorkload]
    fix: str | UnsetType = UNSET
    commands: list[str] | UnsetType = UNSET
    alternatives: list[TriedFix] | UnsetType = UNSET


class MadeNodes(Part, frozen=True, kw_only=True):
    """The nodes that a NodePool or node group, ``maker``, makes in a zone; "" for nodes without one."""

    maker: str
    zone: str
    nodes: Range


class WithNewNodes(Part, frozen=True, kw_only=True):
    """The same events in a cluster whose autoscalers make nodes for pods that wait, if these can be had.

    ``total`` is the number of new nodes, and ``pending`` and ``new`` are the pods that wait in spite of them. New nodes
    are like those of the same NodePool or group; ``unsized`` ones have none, and make none in the simulation. Nor is
    one made in ``missed`` zones, which a NodePool chooses, because no node there answers.
    """

    runs: int
    total: Range
    nodes: list[MadeNodes]
    pending: Range
    new: Range
    unsized: list[str]
    missed: list[str]


class SimulationSummary(Part, frozen=True, kw_only=True):
    """Totals of the workloads in scope; ``stopped`` workloads had running pods, and would have none.

    ``refused`` evictions are those of all workloads.

    ``interrupted`` ones had ready pods, have running ones at the end, and none that is ready at some moment.
    ``not_simulated`` has what the simulation leaves out and could matter here. ``unknown`` has the parts of it that
    decide about pods, so that more of them may wait than the report says: the exit status is 2.
    """

    workloads: int
    pods: int
    lost: int
    pending: Range
    new: Range
    not_replaced: Range
    refused: Range
    interrupted: Range
    stopped: Range
    nodes_before: int
    nodes_after: int
    unknown: list[str]
    not_simulated: list[str]
    skipped: dict[str, int]


class SpreadSimulation(Part, frozen=True, kw_only=True):
    """The report of ``simulate``; ``with_new_nodes`` is there where pods would wait and autoscalers were read."""

    api_version: str = API_VERSION
    kind: str = KIND
    cluster: Cluster
    events: list[str]
    runs: int
    seed: int
    workloads: list[SimulatedWorkload]
    refused_evictions: list[RefusedEviction]
    findings: list[SimulationFinding]
    with_new_nodes: WithNewNodes | UnsetType = UNSET
    summary: SimulationSummary
