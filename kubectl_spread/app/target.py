"""Judging: by which Kubernetes pods are judged, and how that is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from kubectl_spread.app.options import CheckOptions
from kubectl_spread.audit.merge.extra_checks import ExtraChecks
from kubectl_spread.audit.merge.verdicts import ServerFacts
from kubectl_spread.errors import UsageError
from kubectl_spread.kube import features
from kubectl_spread.kube.features import NEWEST_MINOR, NEWEST_RELEASED_MINOR, OLDEST_MINOR, PRE_RELEASES, Behaviour
from kubectl_spread.report import model

VersionSource = Literal["live", "flag", "default"]


class TargetVersion(msgspec.Struct, frozen=True):
    """By which Kubernetes pods are judged, how that is known, and what it is compared with, if that is asked.

    ``warnings`` say why the answer may not hold for the server that was read, or for a version that is asked about.
    """

    minor: int
    version_source: VersionSource
    gates: Mapping[str, bool]
    gates_source: model.GatesSource
    upgrade: Behaviour | None = None
    warnings: tuple[str, ...] = ()

    @property
    def behaviour(self) -> Behaviour:
        """How that Kubernetes behaves."""
        return features.behaviour(self.minor, self.gates)

    def context(self, question: CheckOptions) -> ServerFacts:
        """Return what verdicts may rely on."""
        known = self.gates_source != "version"
        inquiry = ExtraChecks(
            recreate=question.recreate, upgrade=self.upgrade, expected_domains=question.expected_domains
        )
        return ServerFacts(self.behaviour, gates_known=known, merge_since=question.merging_since, inquiry=inquiry)


def judge_by(
    question: CheckOptions, server: int | None, served_gates: Mapping[str, bool] | None = None
) -> tuple[TargetVersion, list[str]]:
    """Return by which Kubernetes to judge, and warnings.

    Args:
        question: What the user asks for.
        server: The minor that the server behaves like; None without one.
        served_gates: The gates as the server's metrics show them; None where they were not read.

    Raises:
        UsageError: the version or a gate is not known.
    """
    asked = question.minor
    source: VersionSource = "flag" if asked is not None else "default" if server is None else "live"
    minor, warnings = _evaluated_minor(question, server)
    other = question.other_minor
    if other is not None:
        _confirm_known("--to", other)
    warnings += tuple(
        f"Kubernetes 1.{unreleased} is evaluated as its pre-release {known}: a later 1.{unreleased} may differ"
        for unreleased, known in PRE_RELEASES.items()
        if unreleased in (minor, other)
    )
    overrides = question.gate_overrides
    gates = _gates(minor, overrides, other)
    if served_gates is not None and asked is None:
        gates |= {name: served_gates[name] for name in gates if name in served_gates and name not in overrides}
    return TargetVersion(
        minor=minor,
        version_source=source,
        gates=gates,
        gates_source="flag" if overrides else "version" if served_gates is None else "metrics",
        upgrade=None if other is None else _upgrade(other, minor, gates, overrides),
        warnings=warnings,
    ), list(warnings)


def judge_files_by(question: CheckOptions) -> tuple[TargetVersion, list[str]]:
    """Return by which Kubernetes to judge files, and what to say about that.

    Raises:
        UsageError: the version or a gate is not known.
    """
    judgement, notes = judge_by(question, None)
    if judgement.version_source == "default":
        release = f"Kubernetes 1.{judgement.minor}, the newest release known"
        notes.insert(0, f"judged as {release} (--server-version chooses another)")
    return judgement, notes


def _evaluated_minor(question: CheckOptions, server: int | None) -> tuple[int, tuple[str, ...]]:
    """Return the minor to judge by, and a warning where a server is newer than every minor that is known.

    Raises:
        UsageError: the minor that the user names is not known, or the server is older than any that is.
    """
    if question.minor is not None:
        _confirm_known("--from" if question.from_version else "--server-version", question.minor)
        return question.minor, ()
    if server is None:
        return NEWEST_RELEASED_MINOR, ()
    if server > NEWEST_MINOR:
        text = f"Kubernetes 1.{server} is newer than 1.{NEWEST_MINOR}, the newest that is known"
        return NEWEST_MINOR, (f"{text}: evaluated as 1.{NEWEST_MINOR}",)
    _confirm_known("the server's version", server)
    return server, ()


def _confirm_known(origin: str, minor: int) -> None:
    """Do nothing for a minor that is known.

    Raises:
        UsageError: it is not; the text begins with ``origin``, which named it.
    """
    if not OLDEST_MINOR <= minor <= NEWEST_MINOR:
        known = f"1.{OLDEST_MINOR} to 1.{NEWEST_MINOR} are known"
        raise UsageError(f"{origin}: Kubernetes 1.{minor} is not known ({known})")


def _gates(minor: int, overrides: Mapping[str, bool], other: int | None) -> dict[str, bool]:
    """Return the gates of the minor that is judged by; an override that only ``other`` takes is left to that.

    Raises:
        UsageError: no minor that is asked about takes a gate, or the gates contradict each other.
    """

    def is_of_other(name: str, *, value: bool) -> bool:
        here = features.takes(minor, name, value=value)
        return other is not None and not here and features.takes(other, name, value=value)

    own = {name: value for name, value in overrides.items() if not is_of_other(name, value=value)}
    try:
        return features.gates(minor, own)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _upgrade(minor: int, judged: int, gates: Mapping[str, bool], overrides: Mapping[str, bool]) -> Behaviour:
    """Return how the minor that is compared with behaves, given the same gates where it takes them.

    A gate that has the default of the minor that is judged by is not given: the other one may have another default.

    Raises:
        UsageError: no server of that minor would start with these gates.
    """
    usual = features.gates(judged, {})
    given = {name: value for name, value in gates.items() if value != usual[name]} | dict(overrides)
    taken = {name: value for name, value in given.items() if features.takes(minor, name, value=value)}
    try:
        return features.behaviour(minor, features.gates(minor, taken))
    except ValueError as error:
        raise UsageError(f"--to: no server of 1.{minor} would start with these feature gates: {error}") from None
