"""What a rule is: text that people read, and one check that yields evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, IntEnum, auto
from typing import Final

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint, EvaluatedGroup, EvaluatedPod
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import Manifest
from kubectl_spread.audit.snapshot.templates import Refusal, Template
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api.fieldpath import POD_SPEC, FieldPath
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.unknownfields import UnknownField
from kubectl_spread.kube.scheduler.podtopologyspread import Spread
from kubectl_spread.report.model import SeverityWord


class Severity(IntEnum):
    """What a finding does to the user; ordered, so that ``--fail-on`` is one comparison."""

    INFO = 1
    WARNING = 2
    ERROR = 3

    @classmethod
    def of(cls, word: str) -> Severity:
        """Return the severity that a word names."""
        return cls[word.upper()]

    @property
    def word(self) -> SeverityWord:
        """The word that users see."""
        match self:
            case Severity.ERROR:
                return "error"
            case Severity.WARNING:
                return "warning"
            case Severity.INFO:
                return "info"

    def __str__(self) -> str:
        """Return the word that users see."""
        return self.word


class SubjectPart(Enum):
    """What there may be in a subject for a rule to speak of.

    Attributes:
        TEMPLATE: A template.
        PODS: Pods, whatever they are.
        MEMBERS: Pods whose selector is not what the merge makes of it.
        COUNTS: A count of domains.
    """

    TEMPLATE = auto()
    PODS = auto()
    MEMBERS = auto()
    COUNTS = auto()


_OF_TEMPLATE: Final = frozenset((SubjectPart.TEMPLATE,))
_OF_PODS: Final = {
    (members, counts): frozenset(
        (SubjectPart.PODS, *((SubjectPart.MEMBERS,) if members else ()), *((SubjectPart.COUNTS,) if counts else ()))
    )
    for members in (False, True)
    for counts in (False, True)
}
"""Maps whether there are members and counts to the parts of a subject of pods."""


class Subject(msgspec.Struct, frozen=True, eq=False):
    """One workload in one clause: all of its rows, which differ in what is stored; and its groups.

    A subject is made of the pods, or of the ``template``, which has neither; ``refusals`` and ``unknown_fields`` go
    with the pods they are about. ``beside_pods`` tells of a template whether stored pods of its workload are judged as
    well. ``manifest`` is that of the template or of a pod without owner, where it is not stored.
    """

    workload: ObjectRef
    path: FieldPath
    audit: Audit
    rows: tuple[EvaluatedConstraint, ...] = ()
    groups: tuple[EvaluatedGroup, ...] = ()
    template: Template | None = None
    refusals: tuple[tuple[Refusal, tuple[str, ...]], ...] = ()
    beside_pods: bool = False
    unknown_fields: tuple[tuple[UnknownField, tuple[str, ...]], ...] = ()
    manifest: Manifest | None = None

    @property
    def namespace(self) -> str:
        """The namespace of the workload."""
        return self.workload.namespace

    @property
    def parts(self) -> frozenset[SubjectPart]:
        """What there is to speak of."""
        if self.template is not None:
            return _OF_TEMPLATE
        members = any(row.members for row in self.rows)
        counts = any(row.clause.spread and row.spread is not None for row in self.rows)
        return _OF_PODS[members, counts]

    @property
    def clause_path(self) -> FieldPath:
        """The path of the clause as a pod has it, for a template too."""
        return self.path if self.template is None else self.path.moved(self.template.path, POD_SPEC)

    @property
    def clauses(self) -> tuple[TopologyTerm, ...]:
        """The distinct clauses at the path: those of the pods, or the template's."""
        if self.template is not None:
            return tuple(clause for clause in self.template.clauses if clause.path == self.path)
        return tuple({id(member_clause): member_clause for member_clause in self._clauses_of_pods()}.values())

    def _clauses_of_pods(self) -> Iterator[TopologyTerm]:
        return (view.shape.clauses[row.index] for row in self.rows for view, _ in row.views)

    @property
    def spreads(self) -> Iterator[tuple[EvaluatedConstraint, Spread]]:
        """The rows that were counted, each with its count."""
        return ((row, spread) for row in self.rows if (spread := row.spread) is not None)

    @property
    def taken(self) -> Iterator[EvaluatedPod]:
        """The members of all rows, without manifests that the API would refuse: those are never stored."""
        refusals = self.audit.acceptance.manifests
        return (member for row in self.rows for member in row.members if not refusals(member.pod.shape))

    def members(self, verdict: Verdict) -> list[EvaluatedPod]:
        """Return the pods with a verdict, by name; of manifests only those that the API would take."""
        if not any(verdict in row.verdicts for row in self.rows):
            return []
        found = [member for member in self.taken if member.verdict is verdict]
        return sorted(found, key=lambda member: member.pod.name)


def literal(text: str) -> str:
    """Return a text from an object as it stands in a template, where braces have a meaning."""
    return text.replace("{", "{{").replace("}", "}}")


class Evidence(msgspec.Struct, frozen=True):
    """What a check found: pods, named values for the message, severity and fix where not the rule's own."""

    pods: tuple[str, ...]
    values: Mapping[str, str | int] = msgspec.field(default_factory=dict)
    severity: Severity | None = None
    fix: str | None = None


Check = Callable[[Subject], Iterator[Evidence]]


class Rule(msgspec.Struct, frozen=True):
    """A rule: everything that output, catalogue and documentation say about it stands here.

    ``message`` and ``fix`` are templates of the evidence's values; ``fix`` may also use ``restart``, the
    safe way to replace the pods of the workload. ``needs_nodes`` tells whether the check asks where pods
    are or may go, ``of`` the parts of a subject it speaks of: it is only asked where one of them is there.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    message: str
    why: str
    fix: str
    source: str
    needs_nodes: bool
    check: Check
    of: frozenset[SubjectPart] = frozenset((SubjectPart.TEMPLATE, SubjectPart.PODS))

    @property
    def general_fix(self) -> str:
        """The fix, whatever the workload."""
        return self.fix.replace("{restart}", "restart the pods by their owner")
