"""What was gathered: an audit, and what is said beside it."""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec
from msgspec import UNSET

from kubectl_spread.app import output
from kubectl_spread.app.identity import UNKNOWN, Identity
from kubectl_spread.app.options import CheckOptions
from kubectl_spread.app.target import TargetVersion
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.snapshot.scope import Scope, Target
from kubectl_spread.phrases import plural
from kubectl_spread.report import model
from kubectl_spread.rules import RULES, engine

_PASSED_OVER: Final = ("finished", "mirror")
"""Reasons why pods that are asked for are not judged."""


class CheckRun(msgspec.Struct):
    """An audit and what the report says beside it.

    ``problems`` are questions that could not be answered: they go to stderr and make the exit status 2.
    ``notes`` only go to stderr. ``without_pods`` says what is in files instead of pods and templates. ``identity`` says
    which cluster was read.
    """

    audit: Audit
    judgement: TargetVersion
    nodes: model.NodesKnown
    all_namespaces: bool
    resource_versions: dict[str, str] = msgspec.field(default_factory=dict)
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    problems: list[str] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    without_pods: str = ""
    identity: Identity = UNKNOWN

    @property
    def scope(self) -> Scope:
        """What is judged."""
        return self.audit.snapshot.scope

    @property
    def empty(self) -> bool:
        """Whether nothing that was read in scope has pods, or fails to have them."""
        return not (self.audit.pods or self.audit.templates)

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces of the judged pods and templates."""
        pods = (pod.namespace for pod in self.audit.pods)
        return frozenset((*pods, *(template.namespace for template in self.audit.templates)))

    @property
    def several_namespaces(self) -> bool:
        """Whether the judged pods are in more than one namespace, or all namespaces were asked for."""
        return len(self.namespaces) > 1 or self.all_namespaces

    def say(self) -> None:
        """Print what goes to stderr; by which Kubernetes nothing was judged is of no interest."""
        if not (self.empty and self.problems):
            for text in self.notes:
                output.note(text)
        for text in self.problems:
            output.error(text)

    def nothing_found(self) -> str:
        """Return why there is an empty answer: pods that are not judged, or else kubectl's own words."""
        passed_over = [plural(number, f"{kind} pod") for kind in _PASSED_OVER if (number := self.skipped[kind])]
        if passed_over:
            return f"nothing to judge: {' and '.join(passed_over)} skipped"
        if self.without_pods:
            return self.without_pods
        namespace = self.scope.namespace
        return "No resources found" if namespace is None else f"No resources found in {namespace} namespace."

    def completed(self, question: CheckOptions, baseline: engine.Baseline | None = None) -> model.Report:
        """Return the report, with the findings of the selected rules that no baseline has."""
        cluster, selection = self._cluster(), question.selection
        return engine.complete(self.audit, cluster, RULES, selection, self.skipped, baseline=baseline)

    def places(self, namespace: str, target: Target) -> list[str]:
        """Return where the manifests of one name are, if there are several."""
        found = [
            str(manifest.position)
            for ref, manifest in self.audit.snapshot.manifests.items()
            if ref.namespace == namespace and target.includes(ref)
        ]
        return found if len(found) > 1 else []

    def located(self, found: model.Report) -> model.Report:
        """Return a report whose findings on manifests say where these are; for that the files are read again."""
        manifests = self.audit.snapshot.manifests
        if not (manifests and found.findings):
            return found
        from kubectl_spread.app import located  # noqa: PLC0415 - tables do not wait for it

        return located.located(found, manifests)

    def _cluster(self) -> model.Cluster:
        judgement, identity, snapshot = self.judgement, self.identity, self.audit.snapshot
        return model.Cluster(
            context=identity.context or UNSET,
            name=identity.name or UNSET,
            name_source=identity.name_source,
            uid=identity.uid or UNSET,
            read_at=identity.read_at_text or UNSET,
            server_version=identity.server_version or UNSET,
            judged_as=f"1.{judgement.minor}",
            compared_with=UNSET if judgement.upgrade is None else f"1.{judgement.upgrade.minor}",
            version_source=judgement.version_source,
            gates=dict(judgement.gates),
            gates_source=judgement.gates_source,
            namespace=model.unset_none(self.scope.namespace),
            nodes=self.nodes,
            node_count=len(snapshot.nodes) if self.nodes == "listed" else UNSET,
            zone_count=snapshot.zones if self.nodes == "listed" else UNSET,
            resource_versions=self.resource_versions,
            warnings=list(judgement.warnings) or UNSET,
        )
