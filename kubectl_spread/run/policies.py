"""One run of ``policy``: options in, the text of the policies out."""

from __future__ import annotations

import msgspec

from kubectl_spread.errors import UsageError
from kubectl_spread.kube import features
from kubectl_spread.kube.api import content, labels
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.features import NEWEST_RELEASED_MINOR
from kubectl_spread.policy.documents import CARRIED, OLDEST_MINOR, OLDEST_MUTATION, Action, Policies
from kubectl_spread.report.model import Severity
from kubectl_spread.rules.model import Rule, Selection
from kubectl_spread.run.options import CheckOptions, confirm_supported, minor_of, pre_release_warnings, split

_EXCLUDED: tuple[str, ...] = ("kube-system",)


class PolicyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``policy``, as click passes them."""

    for_version: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: str | None = None
    action: str = Action.WARN.value
    namespace_selector: str = ""
    exclude_namespace: tuple[str, ...] = ()
    exempt_user: tuple[str, ...] = ()
    mutate: bool = False

    @property
    def policies(self) -> Policies:
        """The policies that the options ask for.

        Raises:
            UsageError: An option is wrong, or no policy can do what is asked.
        """
        minor = self._minor
        oldest = OLDEST_MUTATION if self.mutate else OLDEST_MINOR
        if minor < oldest:
            kind = "MutatingAdmissionPolicy" if self.mutate else "ValidatingAdmissionPolicy"
            raise UsageError(f"--for: Kubernetes 1.{minor} has no {kind} (1.{oldest} and newer have it)")
        policies = Policies(
            rules=self._rules,
            behaviour=features.behaviour(minor, features.gates(minor, {})),
            action=Action(self.action),
            namespaces=self._namespaces,
            excluded=self._excluded,
            exempt=self.exempt_user,
            mutates=self.mutate,
        )
        if not policies.effective_rules:
            raise UsageError(f"--for: none of the selected rules finds anything in Kubernetes 1.{minor}")
        return policies

    @property
    def notes(self) -> tuple[str, ...]:
        """What the policies may get wrong, for standard error."""
        return pre_release_warnings([self._minor])

    @property
    def _minor(self) -> int:
        """The Kubernetes minor of the policies.

        Raises:
            UsageError: The version is not of the form 1.N, or not known.
        """
        minor = minor_of("--for", self.for_version)
        if minor is None:
            return NEWEST_RELEASED_MINOR
        confirm_supported("--for", minor)
        return minor

    @property
    def _rules(self) -> tuple[Rule, ...]:
        """The rules to carry: by default warnings and errors, and of those that are selected all.

        Raises:
            UsageError: A word names no rule, or only rules that no policy can carry.
        """
        default = Severity.INFO if self.select else Severity.WARNING
        selection = CheckOptions(
            select=self.select, ignore=self.ignore, severity=self.severity or default.value
        ).selection
        for word in selection.select:
            if not any(rule.is_named([word]) for rule in CARRIED):
                raise UsageError(f"--select: no policy can have {word}, because it sees one object (docs/policy.md)")
        return _chosen(selection)

    @property
    def _namespaces(self) -> LabelSelector | None:
        try:
            requirements = labels.parse_labels(self.namespace_selector)
        except ValueError as error:
            raise UsageError(f"--namespace-selector: {error}") from None
        return LabelSelector(match_expressions=requirements) if requirements else None

    @property
    def _excluded(self) -> tuple[str, ...]:
        excluded = split(self.exclude_namespace) if self.exclude_namespace else _EXCLUDED
        for name in excluded:
            if any(content.dns_label_problems(name)):
                raise UsageError(f'--exclude-namespace: "{name}" is not the name of a namespace')
        return excluded


def _chosen(selection: Selection) -> tuple[Rule, ...]:
    """Return the rules that policies carry.

    Raises:
        UsageError: There are none.
    """
    rules = tuple(
        rule
        for rule in selection.selected(CARRIED)
        if rule.severity >= selection.least and not rule.is_named(selection.ignore)
    )
    if not rules:
        raise UsageError("no rule is left: change --select, --ignore or --severity")
    return rules
