"""Judging: by which Kubernetes pods are judged, and how that is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kubectl_spread.audit import report
from kubectl_spread.audit.verdicts import Context
from kubectl_spread.cli.question import Question
from kubectl_spread.errors import UsageError
from kubectl_spread.kube import features
from kubectl_spread.kube.features import NEWEST_MINOR, OLDEST_MINOR, Behaviour

VersionSource = Literal["live", "flag", "default"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """By which Kubernetes pods are judged, and how that is known."""

    server_minor: int | None
    minor: int
    version_source: VersionSource
    gates: Mapping[str, bool]
    gates_source: report.GatesSource

    @property
    def behaviour(self) -> Behaviour:
        """How that Kubernetes behaves."""
        return features.behaviour(self.minor, self.gates)

    def context(self, question: Question) -> Context:
        """Return what verdicts may rely on."""
        known = self.gates_source != "version"
        return Context(self.behaviour, gates_known=known, merge_since=question.merging_since)


@dataclass(frozen=True, slots=True)
class ServerMinor:
    """The minor that a server is, and the one that it behaves like."""

    actual: int
    emulated: int


def judge_by(
    question: Question, server: ServerMinor | None, served_gates: Mapping[str, bool] | None = None
) -> tuple[Judgement, list[str]]:
    """Return by which Kubernetes to judge, and warnings.

    Args:
        question: What the user asks for.
        server: What the server is; None without one.
        served_gates: The gates as the server's metrics show them; None where they were not read.

    Raises:
        UsageError: the version or a gate is not known.
    """
    asked = question.minor
    source: VersionSource = "flag" if asked is not None else "default" if server is None else "live"
    served = None if server is None else server.emulated
    wanted = next(minor for minor in (asked, served, NEWEST_MINOR) if minor is not None)
    minor, warning = _judged_minor(wanted)
    overrides = question.gate_overrides
    try:
        gates = features.gates(minor, overrides)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if served_gates is not None and asked is None:
        gates |= {name: served_gates[name] for name in gates if name in served_gates and name not in overrides}
    gates_source: report.GatesSource = "flag" if overrides else "version" if served_gates is None else "metrics"
    return Judgement(None if server is None else server.actual, minor, source, gates, gates_source), [
        warning
    ] if warning else []


def judge_files_by(question: Question) -> tuple[Judgement, list[str]]:
    """Return by which Kubernetes to judge files, and what to say about that.

    Raises:
        UsageError: the version or a gate is not known.
    """
    judgement, notes = judge_by(question, None)
    if judgement.version_source == "default":
        notes.append(f"judged as Kubernetes 1.{judgement.minor}, the newest known (--server-version chooses another)")
    return judgement, notes


def _judged_minor(minor: int) -> tuple[int, str]:
    """Return the minor that is judged by, and a warning where it is not the one that was asked for.

    Raises:
        UsageError: the minor is older than any that is known.
    """
    if minor < OLDEST_MINOR:
        raise UsageError(f"Kubernetes 1.{minor} is too old: 1.{OLDEST_MINOR} to 1.{NEWEST_MINOR} are known")
    if minor > NEWEST_MINOR:
        return (
            NEWEST_MINOR,
            f"Kubernetes 1.{minor} is newer than any that is known, judged as 1.{NEWEST_MINOR}",
        )
    return minor, ""
