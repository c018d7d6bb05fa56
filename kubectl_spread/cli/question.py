"""What is asked: every option that is not about the connection, read and checked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from kubectl_spread.audit.scope import FIELDS, FieldRequirement, Scope
from kubectl_spread.cli import targets
from kubectl_spread.errors import UsageError
from kubectl_spread.kube import labelsyntax
from kubectl_spread.kube.features import NEWEST_MINOR
from kubectl_spread.rules import RULES
from kubectl_spread.rules.engine import Selection


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``check`` and ``explain``, as click hands them over."""

    arguments: tuple[str, ...] = ()
    filename: tuple[str, ...] = ()
    recursive: bool = False
    namespace: str = ""
    all_namespaces: bool = False
    exclude_namespace: tuple[str, ...] = ()
    selector: str = ""
    field_selector: str = ""
    server_version: str = ""
    feature_gates: str = ""
    merge_since: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    @property
    def selection(self) -> Selection:
        """The rules that run and those that are silenced.

        Raises:
            UsageError: a code is no rule's and no prefix of one.
        """
        selection = Selection(select=_split(self.select), ignore=_split(self.ignore))
        for code in (*selection.select, *selection.ignore):
            if not any(rule.code.startswith(code) for rule in RULES):
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
    def minor(self) -> int | None:
        """The Kubernetes minor to judge by, if the user names one.

        Raises:
            UsageError: it is not of the form 1.N.
        """
        if not self.server_version:
            return None
        parts = self.server_version.removeprefix("v").split(".")
        if len(parts) < 2 or parts[0] != "1" or not parts[1].isdecimal():  # noqa: PLR2004 - major and minor
            raise UsageError(
                f'--server-version: "{self.server_version}" is no Kubernetes version (write 1.{NEWEST_MINOR})'
            )
        return int(parts[1])

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


def _split(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())
