"""The form of a rule: texts for people and one check that yields evidence; and its form in JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import resources
from string import Template
from typing import Final, TypeAlias, TypeVar

import msgspec

from kubectl_spread.audit.evaluation.obstacles import FILTERS
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.audit.snapshot.snapshot import OVERDUE
from kubectl_spread.phrases import did_you_mean, listed
from kubectl_spread.report.model import API_VERSION, ClosedDomains, CommandLine, Operation, Part, Severity
from kubectl_spread.rules.inputs import PodsInput, RuleInput, TemplateInput, TermVariant, WaitingInput, WorkloadInput

_KUBERNETES: Final = "https://github.com/kubernetes/kubernetes/blob/v1.37.1"
Values: TypeAlias = dict[str, str | int]
"""The values of a message, by the names in its template."""


class Remedy(msgspec.Struct, frozen=True):
    """A template of a sentence, with what to type.

    Attributes:
        text: A template of the evidence's values, of ``these`` (its pods in words) and of ``restart`` (see ``Rule``).
        commands: Lines for a shell, to run in this order, without kubectl's flags for the cluster.
        patch: A JSON patch of the finding's object that ends the finding.
        after: Lines to run in this order once the patch is applied.
        begun: Whether the pod template is corrected already.
        change: What the patch changes, as a template; "" where there is no patch of a stored object.
    """

    text: str
    commands: tuple[CommandLine, ...] = ()
    patch: tuple[Operation, ...] = ()
    after: tuple[CommandLine, ...] = ()
    begun: bool = False
    change: str = ""


class Evidence(msgspec.Struct, frozen=True):
    """The names of pods and the values for the message; ``severity`` and ``fix`` are None if they are the rule's.

    A ``fix`` that is a text has nothing to type. ``covers`` are the codes of rules that would repeat this finding.
    ``closed`` are domains that the pods wait for; ``fix`` is then for the case that they stay closed.
    ``exposes`` is the topology key of the domain with which it says that the workload is lost; "" where it does not.
    ``explains`` are the topology keys of domains of which it says why all pods may be in one.
    """

    pods: tuple[str, ...]
    values: Mapping[str, str | int] = msgspec.field(default_factory=dict)
    severity: Severity | None = None
    fix: Remedy | str | None = None
    covers: tuple[str, ...] = ()
    closed: ClosedDomains | None = None
    exposes: str = ""
    explains: tuple[str, ...] = ()


AnyInput = TypeVar("AnyInput", PodsInput, TemplateInput, WorkloadInput, WaitingInput)
Check: TypeAlias = Callable[[AnyInput], Iterator[Evidence]]
"""What a rule finds in an input of one type."""


class Documentation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The documentation of a rule, whatever its findings are.

    Attributes:
        why: Why it matters, and how Kubernetes behaves.
        source: The address of what proves that.
        cases: The cases of a rule that has several severities, by severity; the worst first.
        no_remedy: Why some findings, or all, have no command and no patch; "" where each has one.
    """

    why: str
    source: str
    cases: dict[Severity, str] = {}
    no_remedy: str = ""


@cache
def _documented() -> Mapping[str, Documentation]:
    """Return what catalogue.toml says about each rule, by code."""
    text = (resources.files(__package__) / "catalogue.toml").read_text(encoding="utf-8")
    filters = listed([each.plural for each in FILTERS.values()], len(FILTERS))
    values = {"filters": filters, "minutes": OVERDUE.seconds // 60, "kubernetes": _KUBERNETES}
    return msgspec.toml.decode(Template(text).substitute(values), type=dict[str, Documentation])


class Rule(msgspec.Struct, frozen=True):
    """A rule, with the texts of its findings.

    Attributes:
        message: A template of the evidence's values.
        fix: A template of these values and of ``restart``, the safe way to replace the pods of the workload.
        reads_nodes: Whether the rule reads nodes; None if it does so for counts of domains, workloads and waiting pods.
        compares: Whether the rule is about what another Kubernetes does differently (``--to``).
        removes_pods: Whether a fix may delete or evict pods, which depends on disruption budgets.
        reads_node_pools: Whether the check reads the NodePools of Karpenter.
        explains_exposure: Whether a finding says why the pods are in one domain of the topology key.
        recommends: Whether ``recommend`` tries changes that may end a finding.
        of_pods: The check of the pods of a workload.
        of_members: The check of pods some of whose stored selectors differ from the merged ones.
        of_counts: The check of pods for which domains were counted.
        of_template: The check of a template.
        of_workload: The check of a workload with replicas.
        of_waiting: The check of pods without a node that no other finding calls an error.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    message: str
    fix: str
    reads_nodes: bool | None = None
    compares: bool = False
    removes_pods: bool = False
    reads_node_pools: bool = False
    explains_exposure: bool = False
    recommends: bool = False
    of_pods: Check[PodsInput] | None = None
    of_members: Check[PodsInput] | None = None
    of_counts: Check[PodsInput] | None = None
    of_template: Check[TemplateInput] | None = None
    of_workload: Check[WorkloadInput] | None = None
    of_waiting: Check[WaitingInput] | None = None

    def check(self, rule_input: RuleInput) -> Callable[[], Iterator[Evidence]] | None:
        """Return the check of an input, which yields the evidence; None where the rule has none for it."""
        match rule_input:
            case PodsInput():
                of_members = self.of_members if rule_input.has_members else None
                of_counts = self.of_counts if rule_input.has_counts else None
                return _bound(self.of_pods or of_members or of_counts, rule_input)
            case TemplateInput():
                return _bound(self.of_template, rule_input)
            case WorkloadInput():
                return _bound(self.of_workload, rule_input)
            case WaitingInput():
                return _bound(self.of_waiting, rule_input)

    @property
    def needs_nodes(self) -> bool:
        """Whether the rule reads the nodes of the pods, or the nodes that they may use."""
        of_nodes = any((self.of_counts, self.of_workload, self.of_waiting))
        return of_nodes if self.reads_nodes is None else self.reads_nodes

    @property
    def needs_workloads(self) -> bool:
        """Whether the rule has an answer about pod templates or whole workloads, and not only about pods.

        Rules on stored selectors and on placement read templates as well, but what they are about is pods.
        """
        return any((self.of_template, self.of_workload)) and not any((self.of_members, self.of_counts, self.of_waiting))

    @property
    def documentation(self) -> Documentation:
        """The documentation of the rule, whatever its findings are."""
        return _documented()[self.code]

    @property
    def severities(self) -> tuple[Severity, ...]:
        """The severities that findings of the rule may have, the worst first."""
        return tuple(self.documentation.cases) or (self.severity,)

    def is_named(self, words: Iterable[str]) -> bool:
        """Tell whether one of the words is the code, a prefix of it, or the name, in any letter case."""
        return any(self.code.startswith(word.upper()) or self.name == word.lower() for word in words)

    @property
    def general_fix(self) -> str:
        """The fix for any workload."""
        return self.fix.replace("{restart}", "restart the workload")


def _bound(check: Check[AnyInput] | None, rule_input: AnyInput) -> Callable[[], Iterator[Evidence]] | None:
    return None if check is None else partial(check, rule_input)


def names(pods: Iterable[PodRecord]) -> tuple[str, ...]:
    """Return the names of pods, in order."""
    return tuple(sorted(pod.name for pod in pods))


def together(
    variants: Sequence[TermVariant], values: Values, severity: Severity | None = None, fix: Remedy | str | None = None
) -> Iterator[Evidence]:
    """Yield one piece of evidence about the pods of all variants; none for no variant."""
    if variants:
        pod_names = {pod.name for variant in variants for pod in variant.pods}
        yield Evidence(tuple(sorted(pod_names)), values, severity, fix)


class RuleEntry(Part, frozen=True, kw_only=True):
    """A rule; ``message`` is a template of a finding's values."""

    code: str
    name: str
    severity: Severity
    severities: list[Severity]
    summary: str
    message: str
    why: str
    fix: str
    source: str
    needs_nodes: bool


class RuleList(Part, frozen=True, kw_only=True):
    """Rules, in the order of the catalogue."""

    api_version: str = API_VERSION
    kind: str = "RuleList"
    rules: list[RuleEntry]


def listing(rules: Iterable[Rule]) -> RuleList:
    """Return rules as a document."""
    return RuleList(rules=[_entry(rule) for rule in rules])


def _entry(rule: Rule) -> RuleEntry:
    return RuleEntry(
        code=rule.code,
        name=rule.name,
        severity=rule.severity,
        severities=list(rule.severities),
        summary=rule.summary,
        message=rule.message,
        why=rule.documentation.why,
        fix=rule.general_fix,
        source=rule.documentation.source,
        needs_nodes=rule.needs_nodes,
    )


class Selection(msgspec.Struct, frozen=True):
    """The rules to run and to silence, by code, prefix of a code or name; an empty ``select`` runs all.

    Findings below the severity ``least`` are silenced too.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    least: Severity = Severity.INFO

    def selected(self, rules: Iterable[Rule]) -> tuple[Rule, ...]:
        """Return the rules to run."""
        return tuple(rule for rule in rules if not self.select or rule.is_named(self.select))


class SelectedRules:
    """The rules of a selection, which one audit or many run.

    Attributes:
        selection: The selection.
        rules: Its rules.
        compare: Whether all rules about another Kubernetes are among them.
    """

    def __init__(self, rules: Iterable[Rule], selection: Selection) -> None:
        """Select from ``rules``."""
        self.selection = selection
        rules = tuple(rules)
        self.rules = selection.selected(rules)
        self.compare = all(rule in self.rules for rule in rules if rule.compares)


def unknown(word: str, rules: Iterable[Rule]) -> str:
    """Return the error about a word that names no rule, with the nearest name, or the codes that begin as it does."""
    rules, code = tuple(rules), word.upper()
    longer = [rule.code for rule in rules if rule.code.startswith(code)]
    nearest = did_you_mean(word, (rule.name for rule in rules)) or _nearest_code(code, rules)
    question = f"; did you mean one of {', '.join(longer)}?" if longer[1:] else nearest
    return f'no rule has the code or name "{word}"{question or " (kubectl spread rules lists them)"}'


def _nearest_code(word: str, rules: Iterable[Rule]) -> str:
    """Return the end of an error that suggests the code in the word, or the one with two of its letters transposed."""
    codes = [rule.code for rule in rules]
    return did_you_mean(next((code for code in codes if code in word), word), codes, close=1)
