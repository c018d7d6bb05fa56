"""The Kubernetes version whose rules decide: its minor and feature gates, and where both come from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Literal

import msgspec

from kubectl_spread.audit.merge.verdicts import ExtraChecks, ServerFacts
from kubectl_spread.errors import UsageError
from kubectl_spread.kube import features
from kubectl_spread.kube.features import NEWEST_MINOR, NEWEST_RELEASED_MINOR, OLDEST_MINOR, PRE_RELEASES, Behaviour
from kubectl_spread.report import model
from kubectl_spread.run.options import CheckOptions

VersionSource = Literal["live", "flag", "default"]
_MAJOR: Final = 1
_KNOWN: Final = f"1.{OLDEST_MINOR} to 1.{NEWEST_MINOR} are known"


class TargetVersion(msgspec.Struct, frozen=True):
    """A Kubernetes minor with its feature gates, where both come from, and the minors up to the one to compare with.

    ``upgrade`` is empty without such a version. ``problems`` say that the server is not known, and ``warnings`` why the
    report may not hold for one of the two versions.
    """

    minor: int
    version_source: VersionSource
    gates: Mapping[str, bool]
    gates_source: model.GatesSource
    upgrade: tuple[Behaviour, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def behaviour(self) -> Behaviour:
        """The behaviour of this Kubernetes."""
        return features.behaviour(self.minor, self.gates)

    @property
    def assumption(self) -> str:
        """A note where neither a server nor the user decides the version, else ""."""
        if self.version_source != "default":
            return ""
        return f"evaluated as Kubernetes 1.{self.minor}, the newest known (--server-version changes it)"

    def facts(self, options: CheckOptions) -> ServerFacts:
        """Return the facts about the servers that verdicts may rely on."""
        return ServerFacts(
            self.behaviour,
            gates_known=self.gates_source != "version",
            merge_since=options.merging_since,
            extra_checks=ExtraChecks(
                recreate=options.recreate,
                upgrade=self.upgrade,
                expected_domains=options.expected_domains,
                exposing_keys=options.exposing_keys,
            ),
        )


def target_for(
    options: CheckOptions, server: tuple[int, int] | None, served_gates: Mapping[str, bool] | None = None
) -> TargetVersion:
    """Return the Kubernetes whose rules decide.

    Args:
        options: The options of the command.
        server: The major and the minor that the server behaves like; None without a server.
        served_gates: The gates as the server's metrics show them; None where they were not read.

    Raises:
        UsageError: The version or a gate is unknown, or the server is older than all known minors or of another major.
    """
    option_minor = options.minor
    source: VersionSource = "default" if server is None else "live"
    if option_minor is not None:
        source = "flag"
    minor, problems = _evaluated_minor(options, server)
    upgrade = options.other_minor
    if upgrade is not None:
        confirm_supported("--to", upgrade)
    overrides = options.gate_overrides
    gates = _gates(minor, overrides, upgrade)
    if served_gates is not None and option_minor is None:
        gates |= {name: served_gates[name] for name in gates if name in served_gates and name not in overrides}
    gates_source: model.GatesSource = "version" if served_gates is None else "metrics"
    return TargetVersion(
        minor=minor,
        version_source=source,
        gates=gates,
        gates_source="flag" if overrides else gates_source,
        upgrade=() if upgrade is None else _upgrade(upgrade, minor, gates, overrides),
        problems=problems,
        warnings=pre_release_warnings([minor, upgrade]),
    )


def target_for_files(options: CheckOptions) -> tuple[TargetVersion, list[str]]:
    """Return the Kubernetes whose rules decide for files, and its warnings.

    Raises:
        UsageError: The version or a gate is unknown.
    """
    target_version = target_for(options, None)
    return target_version, list(target_version.warnings)


def _evaluated_minor(options: CheckOptions, server: tuple[int, int] | None) -> tuple[int, tuple[str, ...]]:
    """Return the minor to evaluate as, and an error where the server is newer than the newest known minor.

    Raises:
        UsageError: The minor that the user names is not known, or the server is older than all known ones or of another
            major.
    """
    if options.minor is not None:
        confirm_supported("--server-version", options.minor)
        return options.minor, ()
    if server is None:
        return NEWEST_RELEASED_MINOR, ()
    major, minor = server
    if major != _MAJOR or minor < OLDEST_MINOR:
        choice = "--server-version chooses one"
        raise UsageError(f"the server's version: Kubernetes {major}.{minor} is not known ({_KNOWN}; {choice})")
    if minor > NEWEST_MINOR:
        text = f"Kubernetes 1.{minor} is newer than 1.{NEWEST_MINOR}, the newest that is known"
        evaluated = f"evaluated as 1.{NEWEST_MINOR} (--server-version 1.{NEWEST_MINOR} confirms it)"
        return NEWEST_MINOR, (f"{text}: {evaluated}",)
    return minor, ()


def pre_release_warnings(minors: Collection[int | None]) -> tuple[str, ...]:
    """Return warnings about minors that are known by a pre-release only."""
    return tuple(
        f"Kubernetes 1.{unreleased} is evaluated as its pre-release {version}: a later 1.{unreleased} may differ"
        for unreleased, version in PRE_RELEASES.items()
        if unreleased in minors
    )


def confirm_supported(origin: str, minor: int) -> None:
    """Raise where a minor is not supported.

    Raises:
        UsageError: The minor is not supported; the message begins with the ``origin`` of the minor.
    """
    if not OLDEST_MINOR <= minor <= NEWEST_MINOR:
        raise UsageError(f"{origin}: Kubernetes 1.{minor} is not known ({_KNOWN})")


def _gates(minor: int, overrides: Mapping[str, bool], upgrade: int | None) -> dict[str, bool]:
    """Return the gates of a minor, without overrides that only the minor to compare with has.

    Raises:
        UsageError: Neither minor takes a gate, or the gates contradict each other.
    """

    def is_of_upgrade(name: str, *, value: bool) -> bool:
        if upgrade is None or features.takes(minor, name, value=value):
            return False
        return features.takes(upgrade, name, value=value)

    own = {name: value for name, value in overrides.items() if not is_of_upgrade(name, value=value)}
    try:
        return features.gates(minor, own)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _upgrade(
    minor: int, evaluated: int, gates: Mapping[str, bool], overrides: Mapping[str, bool]
) -> tuple[Behaviour, ...]:
    """Return the behaviours from the evaluated minor to ``minor``, under the same gates where a minor takes them.

    A control plane goes through each minor on its way.

    Raises:
        UsageError: No server of one of these minors would start with these gates.
    """
    step = 1 if minor >= evaluated else -1
    # An error names the minor that the user gave, if it is one about that minor.
    last = _behaviour_then(minor, evaluated, gates, overrides)
    on_the_way = range(evaluated + step, minor, step)
    return (*(_behaviour_then(each, evaluated, gates, overrides) for each in on_the_way), last)


def _behaviour_then(minor: int, evaluated: int, gates: Mapping[str, bool], overrides: Mapping[str, bool]) -> Behaviour:
    """Return the behaviour of another minor under the same gates where it takes them.

    Gates at their default in the evaluated minor are left out, because the other minor may have another default.

    Raises:
        UsageError: No server of that minor would start with these gates.
    """
    defaults = features.gates(evaluated, {})
    set_gates = {name: value for name, value in gates.items() if value != defaults[name]} | dict(overrides)
    own = {name: value for name, value in set_gates.items() if features.takes(minor, name, value=value)}
    try:
        return features.behaviour(minor, features.gates(minor, own))
    except ValueError as error:
        raise UsageError(f"--to: no server of 1.{minor} would start with these feature gates: {error}") from None
