"""The options of ``check`` and ``explain``, parsed and checked; those of the connection are in ``app.cluster``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.scope import FIELDS, FieldRequirement, Scope
from kubectl_spread.errors import UsageError
from kubectl_spread.kube.api import content
from kubectl_spread.kube.api.labels import parse_fields, parse_labels
from kubectl_spread.kube.api.topologykeys import HOSTNAME, TOPOLOGY_KEYS, ZONE
from kubectl_spread.kube.features import NEWEST_RELEASED_MINOR
from kubectl_spread.report.model import Severity
from kubectl_spread.rules import RULES
from kubectl_spread.rules.selection import Selection, named, unknown
from kubectl_spread.run import names

_NUMBER: Final = re.compile("[0-9]{1,9}")
_PATHS: Final = frozenset(
    {
        "baseline",
        "certificate_authority",
        "client_certificate",
        "client_key",
        "filename",
        "kubeconfig",
        "kustomize",
        "scheduler_config",
    }
)
"""The parameters whose values are paths."""
_OPTIONS: Final = {"arguments": "an argument", "as_groups": "--as-group", "as_user": "--as"}
"""Maps a parameter to its name on the command line, where that is not the parameter's name with dashes."""


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
    def selection(self) -> Selection:
        """The rules to run and the rules to silence.

        Raises:
            UsageError: A word is neither the code or name of a rule nor the prefix of a code.
        """
        least = Severity(self.severity or Severity.INFO)
        selection = Selection(select=split(self.select), ignore=split(self.ignore), least=least)
        for code in (*selection.select, *selection.ignore):
            if not any(named(rule, [code]) for rule in RULES):
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
            key, _, number = assignment.rpartition("=")
            if not key or not _NUMBER.fullmatch(number) or int(number) < 1:
                raise UsageError(f'--expect-domains: "{assignment}" is not KEY=NUMBER (write zone=3)')
            full_key = TOPOLOGY_KEYS.get(key, key)
            if full_key in expected:
                raise UsageError(f'--expect-domains: the key "{key}" is given twice: give it one number')
            expected[full_key] = int(number)
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

    def scope(self, default_namespace: str | None) -> Scope:
        """Return the scope: pods and templates of the chosen namespace, or of all namespaces where there is no default.

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
            namespace=None if self.all_namespaces else self.namespace or default_namespace,
            exclude_namespaces=frozenset(split(self.exclude_namespace)),
            labels=labels,
            fields=tuple(FieldRequirement(field, value, equal) for field, value, equal in fields),
            targets=targets,
        )


def refuse_undecodable(parameters: Mapping[str, object]) -> None:
    """Raise where an option is not UTF-8 text; paths may be any bytes, as in the file system.

    Args:
        parameters: The values of the options, by parameter name; Python decodes bytes that are not UTF-8 to surrogates.

    Raises:
        UsageError: An option is not UTF-8 text; the message leaves out its value, which may be secret.
    """
    for name, value in parameters.items():
        texts = (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ()
        if name in _PATHS or all(_is_utf8(text) for text in texts):
            continue
        option = _OPTIONS.get(name) or f"--{name.replace('_', '-')}"
        raise UsageError(f"{option}: the value is not UTF-8 text")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def minor_of(option: str, version: str) -> int | None:
    """Return the minor of a version that an option names; None without a version."""
    if not version:
        return None
    parts = version.removeprefix("v").split(".")
    if len(parts) < 2 or parts[0] != "1" or not _NUMBER.fullmatch(parts[1]):  # noqa: PLR2004 - major and minor
        raise UsageError(f'{option}: "{version}" is not a Kubernetes version (write 1.{NEWEST_RELEASED_MINOR})')
    return int(parts[1])


def split(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the words of an option that may be repeated, each time with words between commas."""
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())
