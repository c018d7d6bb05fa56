"""The report of `check`, as one value; its JSON form is a contract (docs/json.md).

A field that is UNSET is not applicable and is left out of the JSON; 0, "", false and [] are never left out.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import total_ordering
from typing import Any, Final, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector


@total_ordering
class Severity(Enum):
    """How much a finding affects the user's pods, from the least to the most."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    def __lt__(self, other: Severity) -> bool:
        """Tell whether this severity is lower."""
        return _RANKS[self] < _RANKS[other]

    def __str__(self) -> str:
        """Return the word that users see."""
        return self.value


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}
SEVEREST_FIRST = tuple(reversed(Severity))


API_VERSION: Final = "kubectl-spread/v1"
KIND: Final = "SpreadReport"
NodesKnown = Literal["listed", "inferred", "none"]
GatesSource = Literal["metrics", "version", "flag"]
PIPES: Final = (">", "|", "&&")
"""Words of a command that the shell reads."""
FAILED: Final = "failed"
"""The reason in ``Summary.skipped`` for a rule that failed on one place of one workload: a bug."""
CORDONED: Final = "cordoned"
Closed = Literal["cordoned", "tainted"]
"""How all nodes of a domain keep pods away: all by a cordon, or some by taints."""
_T = TypeVar("_T")


class Part(msgspec.Struct, frozen=True, rename="camel"):
    """The base of the parts of a report: frozen, with JSON names in camel case."""


class CommandLine:
    """A line for a shell; in JSON it is its text.

    Attributes:
        words: Its words, without quotes.
        pods: The names of the pods that it removes.
    """

    __slots__ = ("pods", "words")

    def __init__(self, words: Iterable[str], pods: Sequence[str] = ()) -> None:
        self.words, self.pods = tuple(words), tuple(pods)

    def __str__(self) -> str:
        """Return the line, which is safe to paste into a shell."""
        return " ".join(word if word in PIPES else shlex.quote(word) for word in self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CommandLine) and self.words == other.words

    def __hash__(self) -> int:
        return hash(self.words)


class Zone(Part, frozen=True, kw_only=True):
    """A zone of the listed nodes, with the number of its nodes and of the evaluated pods on them.

    ``closed`` is set where every node is cordoned or has a taint that keeps pods away.
    """

    zone: str
    nodes: int
    pods: int
    closed: Closed | UnsetType = UNSET


class NamedCluster(Part, frozen=True, kw_only=True):
    """The cluster that was read; a report of files has only what the user says about it."""

    context: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    name_source: Literal["kubeconfig", "flag"] | UnsetType = UNSET
    uid: str | UnsetType = UNSET
    read_at: str | UnsetType = UNSET
    server_version: str | UnsetType = UNSET


class Cluster(NamedCluster, frozen=True, kw_only=True):
    """The cluster that was read, and the Kubernetes whose rules decide; minors are written ``1.37``.

    ``warnings`` say why the report may not hold for this cluster.
    """

    evaluated_as: str
    compared_with: str | UnsetType = UNSET
    version_source: Literal["live", "flag", "default"]
    gates: dict[str, bool]
    gates_source: GatesSource
    namespace: str | UnsetType = UNSET
    nodes: NodesKnown
    node_count: int | UnsetType = UNSET
    zone_count: int | UnsetType = UNSET
    zones: list[Zone] | UnsetType = UNSET
    resource_versions: dict[str, str]
    warnings: list[str] | UnsetType = UNSET


class Workload(Part, frozen=True, kw_only=True):
    """The root owner of pods; a bare pod is its own workload."""

    kind: str
    name: str


class FieldRef(NamedTuple):
    """A field of an object: the place of a constraint, and of a finding."""

    object: ObjectRef
    path: str


class Selectors(Part, frozen=True, kw_only=True):
    """The four selectors of a term; None is a labelSelector that is not set."""

    authored: LabelSelector | None
    merged: LabelSelector | UnsetType | None = UNSET
    stored: LabelSelector | None
    effective: LabelSelector | None


class Domain(Part, frozen=True, kw_only=True, gc=False):
    """An eligible domain: its topology value, its nodes, its matching pods, and its skew."""

    value: str
    nodes: int
    match_num: int
    skew: int


class Next(Part, frozen=True, kw_only=True):
    """The domains where this constraint allows one more such pod, and the other domains; numbers if there are many."""

    allowed: list[str] | int
    blocked: list[str] | int


class Row(Part, frozen=True, kw_only=True):
    """Pods of one workload that are alike in one constraint or affinity term; counts are in pods."""

    namespace: str
    workload: Workload
    pod_count: int
    pending: int
    terminating: int | UnsetType = UNSET
    path: str
    default: bool | UnsetType = UNSET
    topology_key: str
    when_unsatisfiable: str | UnsetType = UNSET
    max_skew: int | UnsetType = UNSET
    min_domains: int | UnsetType = UNSET
    node_affinity_policy: str | UnsetType = UNSET
    node_taints_policy: str | UnsetType = UNSET
    selector: Selectors
    diff: list[str] | UnsetType = UNSET
    verdicts: dict[str, int]
    domains: list[Domain] | UnsetType = UNSET
    empty_domains: int | UnsetType = UNSET
    min_match_num: int | UnsetType = UNSET
    self_match_num: int | UnsetType = UNSET
    skew: int | UnsetType = UNSET
    lower_bound: bool | UnsetType = UNSET
    next: Next | UnsetType = UNSET

    @property
    def place(self) -> FieldRef:
        """The workload and the path."""
        return FieldRef(ObjectRef(self.namespace, self.workload.kind, self.workload.name), self.path)

    @property
    def excess(self) -> int | None:
        """The skew minus maxSkew, negative within it; None where pods are not counted."""
        if isinstance(self.skew, UnsetType) or isinstance(self.max_skew, UnsetType):
            return None
        return self.skew - self.max_skew

    @property
    def exceeds_max_skew(self) -> bool:
        """Whether the skew is above maxSkew."""
        return self.excess is not None and self.excess > 0


class NodeAnswer(Part, frozen=True, kw_only=True):
    """The Filter's answer for all hard constraints together, in nodes."""

    total: int
    feasible: int
    not_matching: int
    missing_label: int


class Group(Part, frozen=True, kw_only=True):
    """Pods that are alike in everything the scheduler's spread plugin reads."""

    namespace: str
    workload: Workload
    pods: list[str]
    pending: int
    nodes: NodeAnswer | UnsetType = UNSET


class ChangedBy(Part, frozen=True, kw_only=True):
    """The last writer of a label; ``bound`` says that ``time`` is an upper bound."""

    manager: str
    time: str
    bound: Literal["atOrBefore"] = "atOrBefore"


class Key(Part, frozen=True, kw_only=True):
    """The verdict on one key of one term of one pod."""

    key: str
    operator: str
    verdict: str
    confidence: str
    stored: str | UnsetType = UNSET
    label: str | UnsetType = UNSET
    evidence: list[str]
    changed_by: ChangedBy | UnsetType = UNSET


class PodVerdict(Part, frozen=True, kw_only=True):
    """One pod and path whose verdict is not ``merged``."""

    namespace: str
    name: str
    node: str | UnsetType = UNSET
    terminating: bool | UnsetType = UNSET
    workload: Workload
    path: str
    verdict: str
    confidence: str
    keys: list[Key]


class Source(Part, frozen=True, kw_only=True):
    """The position of a finding's field in a manifest: a file, and a line and column from 1.

    ``file`` has slashes, and is ``STDIN`` for standard input. ``column`` is counted in characters; without it ``line``
    is the line in which the object begins.
    """

    file: str
    line: int
    column: int | UnsetType = UNSET


class Operation(Part, frozen=True, kw_only=True):
    """One operation of a JSON patch, as in RFC 6902; ``path`` is a JSON pointer."""

    op: Literal["add", "remove", "replace", "test"]
    path: str
    value: Any | UnsetType = UNSET


class Patch(Part, frozen=True, kw_only=True):
    """A patch of a finding's object, for ``kubectl patch --type=json``."""

    type: Literal["json"] = "json"
    operations: list[Operation]


class ManifestLines(Part, frozen=True, kw_only=True):
    """Lines of YAML to write at a place of a manifest."""

    file: str
    line: int
    action: str
    yaml: str


class ClosedDomains(Part, frozen=True, kw_only=True):
    """Domains that take no pod, because their nodes are cordoned or tainted, and how to open them.

    ``state`` continues a sentence about the domains. ``commands`` are absent where taints have to be removed.
    ``lasting`` tells whether a taint that is usually meant to stay closes any of the nodes.
    """

    topology_key: str
    domains: list[str]
    nodes: list[str]
    state: str
    lasting: bool
    fix: str
    commands: list[str] | UnsetType = UNSET

    @property
    def condition(self) -> str:
        """The beginning of the second fix: to open domains that are meant to stay closed, or not to open others."""
        if self.lasting:
            return "Or"
        return "If it stays closed" if len(self.domains) == 1 else "If they stay closed"


class Finding(Part, frozen=True, kw_only=True):
    """A finding of one rule for one workload and path, with its pods; ``source`` is set if these come from a manifest.

    ``pending`` of the pods have no node.
    ``group`` is equal for findings with the same cause: the same ``closed`` domains, or one rule, severity and message.
    ``commands`` are lines for a shell; unless the object is in a file, one of them applies the ``patch``, which for a
    manifest changes ``lines``. If pods wait for ``closed`` domains, ``fix``, ``commands`` and ``patch`` are for the
    case that these stay closed. ``rows`` are the indices of the constraints that have any of these pods.
    """

    code: str
    name: str
    severity: Severity
    namespace: str
    object: Workload
    path: str
    pods: list[str]
    pod_count: int
    pending: int | UnsetType = UNSET
    message: str
    values: dict[str, str | int]
    fix: str
    commands: list[CommandLine] | UnsetType = UNSET
    patch: Patch | UnsetType = UNSET
    lines: list[ManifestLines] | UnsetType = UNSET
    group: str
    closed: ClosedDomains | UnsetType = UNSET
    rows: list[int] | UnsetType = UNSET
    source: Source | UnsetType = UNSET

    @property
    def own_commands(self) -> list[str]:
        """The commands as text, if there are any."""
        return [str(command) for command in self.commands or ()]

    @property
    def has_alternative(self) -> bool:
        """Whether there is something to do if the closed domains stay closed."""
        return not isinstance(self.closed, UnsetType) and self.fix != self.closed.fix

    @property
    def ref(self) -> ObjectRef:
        """The object."""
        return ObjectRef(self.namespace, self.object.kind, self.object.name)

    @property
    def place(self) -> FieldRef:
        """The object and the path."""
        return FieldRef(self.ref, self.path)


class Unchecked(Part, frozen=True, kw_only=True):
    """An object of a file, a part of its pod template, or a place that a rule failed on, that could not be checked.

    ``reason`` is that of ``Summary.skipped`` in which it is counted. ``namespace``, ``object`` and ``path`` are set as
    far as they can be read; ``message`` has the file and the line, too, or the code of the rule and its error.
    """

    reason: str
    namespace: str | UnsetType = UNSET
    object: Workload | UnsetType = UNSET
    path: str | UnsetType = UNSET
    message: str

    @property
    def ref(self) -> ObjectRef | None:
        """The object, if its name can be read."""
        if isinstance(self.object, UnsetType):
            return None
        return ObjectRef(self.namespace or "", self.object.kind, self.object.name)


class FindingCounts(Part, frozen=True, kw_only=True):
    """Findings by severity."""

    error: int = 0
    warning: int = 0
    info: int = 0

    def of(self, severity: Severity) -> int:
        """Return the number of findings of one severity."""
        number: int = getattr(self, severity.value)
        return number


class Upgrade(Part, frozen=True, kw_only=True):
    """The changes that a change to another Kubernetes makes; absent if not all rules about that ran.

    ``minors`` are all on the way, without the first. ``codes`` are the rules with findings about them, on ``workloads``
    workloads. Findings that the baseline has are counted, and ``silenced`` ones are not.
    """

    minors: list[str]
    workloads: int
    codes: list[str]
    silenced: int


class Summary(Part, frozen=True, kw_only=True):
    """Totals; ``workloads`` have pods, and ``without_pods`` only templates.

    ``templates`` are pod templates, and ``template_constraints`` are in them. ``pending`` pods have no node.
    ``skipped`` maps a reason to a number of objects or lists. ``known`` findings are in the baseline and left out;
    ``gone`` findings are in the baseline and no longer occur. ``selected`` are the rules of ``--select``, as
    written there. ``plan`` is the command that orders the evictions if skews need several.
    """

    pods: int
    pending: int | UnsetType = UNSET
    workloads: int
    without_pods: int | UnsetType = UNSET
    templates: int | UnsetType = UNSET
    template_constraints: int | UnsetType = UNSET
    constraints: int
    findings: FindingCounts
    selected: list[str] | UnsetType = UNSET
    silenced: int
    known: int | UnsetType = UNSET
    gone: int | UnsetType = UNSET
    upgrade: Upgrade | UnsetType = UNSET
    plan: str | UnsetType = UNSET
    skipped: dict[str, int]


class Report(Part, frozen=True, kw_only=True):
    """The report of ``check``."""

    api_version: str = API_VERSION
    kind: str = KIND
    cluster: Cluster
    constraints: list[Row]
    groups: list[Group]
    pods: list[PodVerdict]
    findings: list[Finding]
    unchecked: list[Unchecked] | UnsetType = UNSET
    summary: Summary


def severest_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with the highest severity first, and of one severity those with the most pending pods."""
    return sorted(findings, key=lambda finding: (finding.severity, finding.pending or 0), reverse=True)


def unset_none(value: _T | None) -> _T | UnsetType:
    """Return UNSET for None, and any other value as it is."""
    return UNSET if value is None else value
