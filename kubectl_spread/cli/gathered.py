"""What was gathered: an audit, and what is said beside it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from msgspec import UNSET

from kubectl_spread.audit import report
from kubectl_spread.audit.evaluate import Audit
from kubectl_spread.audit.scope import Scope
from kubectl_spread.cli import output
from kubectl_spread.cli.judging import Judgement
from kubectl_spread.cli.question import Question
from kubectl_spread.rules import RULES, engine


@dataclass(slots=True)
class Gathered:
    """An audit and what the report says beside it.

    ``problems`` are questions that could not be answered: they go to stderr and make the exit status 2.
    ``notes`` only go to stderr.
    """

    audit: Audit
    judgement: Judgement
    nodes: report.NodesKnown
    all_namespaces: bool
    resource_versions: dict[str, str] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def scope(self) -> Scope:
        """What is judged."""
        return self.audit.snapshot.scope

    @property
    def empty(self) -> bool:
        """Whether nothing that was read in scope has pods, or fails to have them."""
        return not (self.audit.pods or self.audit.templates)

    @property
    def several_namespaces(self) -> bool:
        """Whether the judged pods are in more than one namespace, or all namespaces were asked for."""
        return len({pod.shape.namespace for pod in self.audit.pods}) > 1 or self.all_namespaces

    def say(self) -> None:
        """Print what goes to stderr; by which Kubernetes nothing was judged is of no interest."""
        if not (self.empty and self.problems):
            for text in self.notes:
                output.note(text)
        for text in self.problems:
            output.error(text)

    def nothing_found(self) -> str:
        """Return kubectl's own words for an empty answer."""
        namespace = self.scope.namespace
        return "No resources found" if namespace is None else f"No resources found in {namespace} namespace."

    def completed(self, question: Question) -> report.Report:
        """Return the report, with the findings of the selected rules."""
        return engine.complete(self.audit, self._cluster(), RULES, question.selection, self.skipped)

    def _cluster(self) -> report.Cluster:
        judgement = self.judgement
        server = judgement.server_minor
        return report.Cluster(
            server_version=UNSET if server is None else f"1.{server}",
            judged_as=f"1.{judgement.minor}",
            version_source=judgement.version_source,
            gates=dict(judgement.gates),
            gates_source=judgement.gates_source,
            nodes=self.nodes,
            node_count=len(self.audit.snapshot.nodes) if self.nodes == "listed" else UNSET,
            resource_versions=self.resource_versions,
        )
