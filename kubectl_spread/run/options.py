"""The options of a run, parsed and checked, and the Kubernetes that they choose; the connection has its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, Literal, TypeVar

import msgspec

from kubectl_spread.audit.merge.verdicts import ExtraChecks, ServerFacts
from kubectl_spread.audit.snapshot.scope import FIELDS, FieldRequirement, Scope
from kubectl_spread.errors import UsageError
from kubectl_spread.kube import features
from kubectl_spread.kube.api import content
from kubectl_spread.kube.api.labels import HOSTNAME, TOPOLOGY_KEYS, ZONE, parse_fields, parse_labels
from kubectl_spread.kube.api.objects import ALL_NAMESPACES
from kubectl_spread.kube.api.quantity import whole_number
from kubectl_spread.kube.features import NEWEST_MINOR, NEWEST_RELEASED_MINOR, OLDEST_MINOR, PRE_RELEASES, Behaviour
from kubectl_spread.report import model
from kubectl_spread.report.model import Severity
from kubectl_spread.rules import RULES
from kubectl_spread.rules.model import Selection, unknown
from kubectl_spread.rules.remedy import CommandFlags
from kubectl_spread.run import names

Options = TypeVar("Options", bound=msgspec.Struct)
_STDIN: Final = "-"


class CheckOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``check`` and ``explain``, as click passes them."""

    explaining: bool = False
    arguments: tuple[str, ...] = ()
    filename: tuple[str, ...] = ()
    recursive: bool = False
    kustomize: str = ""
    namespace: str = ""
    all_namespaces: bool = False
    exclude_namespace: tuple[str, ...] = ()
    selector: str = ""
    field_selector: str = ""
    cluster_name: str = ""
    server_version: str = ""
    feature_gates: str = ""
    merge_since: str = ""
    recreate: bool = False
    to_version: str = ""
    defaults: bool = False
    scheduler_config: str = ""
    expect_domains: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: str | None = None
    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""

    @property
    def reads_files(self) -> bool:
        """Whether the options choose files, and no cluster.

        Raises:
            UsageError: Options contradict each other; the words are kubectl's.
        """
        if self.filename and self.kustomize:
            raise UsageError("only one of -f or -k can be specified")
        if self.recursive and self.kustomize:
            raise UsageError("the -k flag can't be used with -f or -R")
        return bool(self.filename or self.kustomize)

    @property
    def kubectl_flags(self) -> tuple[str, ...]:
        """The flags that chose the cluster, for commands to type; credentials are not among them."""
        flags = {
            "--kubeconfig": self.kubeconfig,
            "--context": self.context,
            "--cluster": self.cluster,
            "--user": self.user,
        }
        return tuple(word for flag, name in flags.items() if name for word in (flag, name))

    @property
    def command_flags(self) -> CommandFlags:
        """The flags of commands for what is read; no command has a kustomization, which has neither pods nor nodes."""
        files = [word for name in self.filename for word in ("-f", name)] + ["-R"] * self.recursive
        return CommandFlags(self.kubectl_flags, () if _STDIN in self.filename else files)

    @property
    def inputs(self) -> list[str]:
        """The flags that chose what is read, for commands of this program to type."""
        flags = self.command_flags
        return [*flags.cluster, *flags.files]

    @property
    def selection(self) -> Selection:
        """The rules to run and the rules to silence.

        Raises:
            UsageError: A word is neither the code or name of a rule nor the prefix of a code.
        """
        least = Severity(self.severity or Severity.INFO)
        selection = Selection(select=split(self.select), ignore=split(self.ignore), least=least)
        for code in (*selection.select, *selection.ignore):
            if not any(rule.is_named([code]) for rule in RULES):
                raise UsageError(unknown(code, RULES))
        return selection

    @property
    def needs_nodes(self) -> bool:
        """Whether any selected rule needs to know where pods are or may go."""
        return any(rule.needs_nodes for rule in self.selection.selected(RULES))

    @property
    def needs_workloads(self) -> bool:
        """Whether any selected rule needs to know pod templates or whole workloads."""
        return any(rule.needs_workloads for rule in self.selection.selected(RULES))

    @property
    def needs_budgets(self) -> bool:
        """Whether a fix of any selected rule may remove pods."""
        return any(rule.removes_pods for rule in self.selection.selected(RULES))

    @property
    def asks_for_node_pools(self) -> bool:
        """Whether the user asks for a rule that reads NodePools, even if no pod waits."""
        asks = self.explaining or self.select or self.severity == Severity.INFO.value
        return bool(asks) and any(rule.reads_node_pools for rule in self.selection.selected(RULES))

    @property
    def asks_for_node_pools_alone(self) -> bool:
        """Whether all rules that the user selects read NodePools."""
        return bool(self.select) and all(rule.reads_node_pools for rule in self.selection.selected(RULES))

    @property
    def merging_since(self) -> datetime | None:
        """The time since when every API server merges, if the user gives it.

        Raises:
            UsageError: The text is not a date or time.
        """
        if not self.merge_since:
            return None
        try:
            since = datetime.fromisoformat(self.merge_since)
        except ValueError:
            example = "write 2025-09-30 or 2025-09-30T12:00:00Z"
            raise UsageError(f'--merge-since: "{self.merge_since}" is not a date or time ({example})') from None
        return since if since.tzinfo else since.replace(tzinfo=UTC)

    @property
    def expected_domains(self) -> dict[str, int]:
        """The expected number of domains by topology key; short names such as ``zone`` are expanded.

        Raises:
            UsageError: An item is not KEY=NUMBER, or a key has two numbers.
        """
        expected: dict[str, int] = {}
        for assignment in split(self.expect_domains):
            key, _, text = assignment.rpartition("=")
            number = whole_number(text)
            if not key or not number:
                raise UsageError(f'--expect-domains: "{assignment}" is not KEY=NUMBER (write zone=3)')
            full_key = TOPOLOGY_KEYS.get(key, key)
            if full_key in expected:
                raise UsageError(f'--expect-domains: the key "{key}" is given twice: give it one number')
            expected[full_key] = number
        return expected

    @property
    def exposing_keys(self) -> tuple[str, ...]:
        """The topology keys of ``--by``, expanded like those of ``--expect-domains``; the node and the zone by default.

        Raises:
            UsageError: A key is not the key of a label.
        """
        keys = tuple(dict.fromkeys(TOPOLOGY_KEYS.get(key, key) for key in split(self.by)))
        for key in keys:
            if content.label_key_problems(key):
                raise UsageError(f'--by: "{key}" is not the key of a node label (write zone, or {ZONE})')
        return keys or (HOSTNAME, ZONE)

    @property
    def minor(self) -> int | None:
        """The Kubernetes minor whose rules decide, if the user names one.

        Raises:
            UsageError: The version is not of the form 1.N.
        """
        return minor_of("--server-version", self.server_version)

    @property
    def other_minor(self) -> int | None:
        """The Kubernetes minor to compare with, if the user names one.

        Raises:
            UsageError: The version is not of the form 1.N.
        """
        return minor_of("--to", self.to_version)

    @property
    def gate_overrides(self) -> dict[str, bool]:
        """The feature gates that the user gives.

        Raises:
            UsageError: An item is not NAME=true or NAME=false.
        """
        overrides = {}
        for assignment in filter(None, self.feature_gates.split(",")):
            name, _, switch = assignment.partition("=")
            if switch.lower() not in ("true", "false"):
                raise UsageError(f'--feature-gates: "{assignment}" is not NAME=true or NAME=false')
            overrides[name.strip()] = switch.lower() == "true"
        return overrides

    def scope(self, default_namespace: str) -> Scope:
        """Return the scope: pods and templates of the chosen namespace, or of the default one.

        Raises:
            UsageError: A selector cannot be parsed, or options contradict each other.
        """
        targets = names.parse(self.arguments)
        if any(target.name for target in targets) and (self.selector or self.field_selector):
            raise UsageError("selectors and names cannot be combined: give one or the other")
        try:
            labels = parse_labels(self.selector)
            fields = parse_fields(self.field_selector)
        except ValueError as error:
            raise UsageError(str(error)) from None
        for field, _, _ in fields:
            if field not in FIELDS:
                raise UsageError(f'field label not supported: "{field}" (known: {", ".join(FIELDS)})')
        return Scope(
            namespace=ALL_NAMESPACES if self.all_namespaces else self.namespace or default_namespace,
            exclude_namespaces=frozenset(split(self.exclude_namespace)),
            labels=labels,
            fields=tuple(FieldRequirement(field, value, equal) for field, value, equal in fields),
            targets=targets,
        )


def options_of(parameters: Mapping[str, object], type_: type[Options]) -> Options:
    """Return the options of one type among the values of a command's options, by parameter name.

    Options without a value keep their default.
    """
    values = {name: parameters.get(name) for name in type_.__struct_fields__}
    return msgspec.convert({name: value for name, value in values.items() if value is not None}, type_)


def check_options(parameters: Mapping[str, object]) -> CheckOptions:
    """Return a command's options, without those of the connection.

    Raises:
        UsageError: No namespace has such a name.
    """
    options = options_of(parameters, CheckOptions)
    if options.namespace and any(content.dns_label_problems(options.namespace)):
        raise UsageError(f'-n: "{options.namespace}" is not the name of a namespace (write one name, or -A for all)')
    return options


def minor_of(option: str, version: str) -> int | None:
    """Return the minor of a version that an option names; None without a version."""
    if not version:
        return None
    major, *rest = version.removeprefix("v").split(".")
    minor = whole_number(rest[0]) if rest else None
    if major != "1" or minor is None:
        raise UsageError(f'{option}: "{version}" is not a Kubernetes version (write 1.{NEWEST_RELEASED_MINOR})')
    return minor


def split(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the words of an option that may be repeated, each time with words between commas."""
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())


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
