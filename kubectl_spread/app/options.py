"""What is asked: every option that is not about the connection, read and checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from kubectl_spread.app import targets
from kubectl_spread.audit.snapshot.scope import FIELDS, FieldRequirement, Scope
from kubectl_spread.errors import UsageError
from kubectl_spread.kube.api import labelsyntax
from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.kube.features import NEWEST_RELEASED_MINOR
from kubectl_spread.rules import RULES
from kubectl_spread.rules.engine import Selection, named
from kubectl_spread.rules.model import Severity

_NUMBER: Final = re.compile("[0-9]{1,9}")
_TOPOLOGY_KEYS: Final = {
    "hostname": "kubernetes.io/hostname",
    "region": "topology.kubernetes.io/region",
    "zone": ZONE,
}


_PATHS: Final = frozenset(
    {
        "baseline",
        "cache_dir",
        "certificate_authority",
        "client_certificate",
        "client_key",
        "filename",
        "kubeconfig",
        "scheduler_config",
    }
)
"""The parameters that name files."""
_OPTIONS: Final = {"arguments": "an argument", "as_groups": "--as-group", "as_user": "--as"}
"""What users call the parameters that have another name."""


class CheckOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``check`` and ``explain``, as click hands them over."""

    explaining: bool = False
    arguments: tuple[str, ...] = ()
    filename: tuple[str, ...] = ()
    recursive: bool = False
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
    from_version: str = ""
    to_version: str = ""
    defaults: bool = False
    scheduler_config: str = ""
    expect_domains: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: str = "info"

    @property
    def selection(self) -> Selection:
        """The rules that run and those that are silenced.

        Raises:
            UsageError: a word is no rule's code or name and no prefix of a code.
        """
        least = Severity.of(self.severity)
        selection = Selection(select=_split(self.select), ignore=_split(self.ignore), least=least)
        for code in (*selection.select, *selection.ignore):
            if not any(named(rule, [code]) for rule in RULES):
                raise UsageError(f'no rule has the code "{code}" (kubectl spread rules lists them)')
        return selection

    @property
    def needs_nodes(self) -> bool:
        """Whether any selected rule asks where pods are or may go."""
        return any(rule.needs_nodes for rule in self.selection.selected(RULES))

    @property
    def merging_since(self) -> datetime | None:
        """Since when every apiserver merges, if the user says so.

        Raises:
            UsageError: the text is no date or time.
        """
        if not self.merge_since:
            return None
        try:
            moment = datetime.fromisoformat(self.merge_since)
        except ValueError:
            message = (
                f'--merge-since: "{self.merge_since}" is no date or time (write 2025-09-30 or 2025-09-30T12:00:00Z)'
            )
            raise UsageError(message) from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    @property
    def expected_domains(self) -> dict[str, int]:
        """How many domains there should be, by topology key; ``zone``, ``region`` and ``hostname`` are short for these.

        Raises:
            UsageError: an item is not KEY=NUMBER.
        """
        expected = {}
        for item in _split(self.expect_domains):
            key, _, number = item.rpartition("=")
            if not key or not _NUMBER.fullmatch(number) or int(number) < 1:
                raise UsageError(f'--expect-domains: "{item}" is not KEY=NUMBER (write zone=3)')
            expected[_TOPOLOGY_KEYS.get(key, key)] = int(number)
        return expected

    @property
    def minor(self) -> int | None:
        """The Kubernetes minor to judge by, if the user names one.

        Raises:
            UsageError: it is not of the form 1.N, or two are named.
        """
        server = _minor("--server-version", self.server_version)
        start = _minor("--from", self.from_version)
        if start is not None and server not in (None, start):
            raise UsageError(
                f"--from {self.from_version} and --server-version {self.server_version} both name the version to judge "
                "by: give one"
            )
        return server if start is None else start

    @property
    def other_minor(self) -> int | None:
        """The Kubernetes minor to compare with, if the user names one.

        Raises:
            UsageError: it is not of the form 1.N.
        """
        return _minor("--to", self.to_version)

    @property
    def gate_overrides(self) -> dict[str, bool]:
        """The feature gates that the user sets.

        Raises:
            UsageError: an item is not NAME=true or NAME=false.
        """
        overrides = {}
        for item in filter(None, self.feature_gates.split(",")):
            name, _, value = item.partition("=")
            if value.lower() not in ("true", "false"):
                raise UsageError(f'--feature-gates: "{item}" is not NAME=true or NAME=false')
            overrides[name.strip()] = value.lower() == "true"
        return overrides

    def scope(self, default_namespace: str | None) -> Scope:
        """Return what is judged; ``default_namespace`` None means all namespaces unless one is named.

        Raises:
            UsageError: a selector cannot be parsed, or options contradict each other.
        """
        found = targets.parse(self.arguments)
        if any(target.name for target in found) and (self.selector or self.field_selector):
            raise UsageError("selectors and names cannot be combined: give one or the other")
        try:
            labels = labelsyntax.parse_labels(self.selector)
            fields = labelsyntax.parse_fields(self.field_selector)
        except ValueError as error:
            raise UsageError(str(error)) from None
        for field, _, _ in fields:
            if field not in FIELDS:
                known = ", ".join(FIELDS)
                raise UsageError(f'field label not supported: "{field}" (known: {known})')
        return Scope(
            namespace=None if self.all_namespaces else self.namespace or default_namespace,
            exclude_namespaces=frozenset(_split(self.exclude_namespace)),
            labels=labels,
            fields=tuple(FieldRequirement(field, value, equal) for field, value, equal in fields),
            targets=found,
        )


def refuse_undecodable(asked: Mapping[str, object]) -> None:
    """Do nothing if all options are UTF-8 text, except paths, which are whatever the file system has.

    Args:
        asked: The options as click hands them over; Python hides other bytes in surrogates.

    Raises:
        UsageError: names the option, not its value, which may be secret.
    """
    for name, value in asked.items():
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


def _minor(option: str, version: str) -> int | None:
    """Return the minor of a version that an option names; None where it is not given."""
    if not version:
        return None
    parts = version.removeprefix("v").split(".")
    if len(parts) < 2 or parts[0] != "1" or not _NUMBER.fullmatch(parts[1]):  # noqa: PLR2004 - major and minor
        raise UsageError(f'{option}: "{version}" is no Kubernetes version (write 1.{NEWEST_RELEASED_MINOR})')
    return int(parts[1])


def _split(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())
