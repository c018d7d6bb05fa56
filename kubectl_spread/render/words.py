"""Words of all text formats: short names of kinds, short paths, safe strings."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

from msgspec import UnsetType

from kubectl_spread.kube.api.labels import DOMAIN_NOUNS, HOSTNAME
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import named, some
from kubectl_spread.report.model import Cluster, Row, Workload

_LISTED_NAMES: Final = 8
_WELL_KNOWN: Final = {**DOMAIN_NOUNS, HOSTNAME: "hostname"}
_TERMS: Final = {"podAffinity": "affinity", "podAntiAffinity": "anti"}
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def safe(text: str) -> str:
    """Return text with every character that could move a cursor or hide text as an escape."""
    if text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape", errors="surrogatepass").decode("ascii") if is_unsafe(char) else char
        for char in text
    )


def is_unsafe(char: str) -> bool:
    """Tell whether a character could move a cursor or hide text."""
    return unicodedata.category(char) in _UNSAFE


def workload(ref: Workload | ObjectRef) -> str:
    """Return a workload as kubectl users write it: ``deploy/web``."""
    return safe(named(ref.kind, ref.name))


def value(text: str) -> str:
    """Return a label value, or ``""`` for the empty value."""
    return safe(text) or '""'


def names(texts: Sequence[str]) -> str:
    """Return names as a list, which ends with the number of names that were left out."""
    return some([safe(text) for text in texts], _LISTED_NAMES)


def short_path(path: str) -> str:
    """Return a field path without the parts that all terms share.

    A path may have the names of unknown fields, so it is as unsafe as a value.
    """
    short = safe(path).removeprefix("spec.").removeprefix("affinity.").removesuffix(".podAffinityTerm")
    return short.replace("DuringSchedulingIgnoredDuringExecution", "")


def term(row: Row, *, short: bool = False) -> str:
    """Return the requirement of a row's term: ``topology.kubernetes.io/zone DoNotSchedule``; short: ``zone …``."""
    key = short_key(row.topology_key) if short else row.topology_key
    return requirement(key, row.path, row.when_unsatisfiable) + (" (default)" if row.default is True else "")


def requirement(key: str, path: str, when_unsatisfiable: str | UnsetType) -> str:
    """Return the requirement of the term at a path: its topology key, and whether it is hard or soft."""
    if isinstance(when_unsatisfiable, str):
        return safe(f"{key} {when_unsatisfiable}")
    kind, strictly = _affinity_term(path)
    return safe(f"{key} {kind} {strictly}")


def topology(key: str) -> str:
    """Return a topology key; those that Kubernetes itself sets without their prefix."""
    return safe(_WELL_KNOWN.get(key, key))


def clause(row: Row) -> str:
    """Return the path of a row and its requirement: ``topologySpreadConstraints[0]: zone DoNotSchedule``."""
    return f"{short_path(row.path)}: {topology(row.topology_key)} {policy(row)}"


def policy(row: Row, *, short: bool = False) -> str:
    """Return whenUnsatisfiable, or the kind of affinity and whether it is required: ``podAntiAffinity required``."""
    if isinstance(row.when_unsatisfiable, str):
        strictly = {"DoNotSchedule": "hard", "ScheduleAnyway": "soft"} if short else {}
        return safe(strictly.get(row.when_unsatisfiable, row.when_unsatisfiable)) + (
            " (default)" if row.default is True else ""
        )
    kind, strictly_ = _affinity_term(row.path)
    if short:
        return safe(f"{_TERMS.get(kind, kind)} {'hard' if strictly_ == 'required' else 'soft'}")
    return safe(f"{kind} {strictly_}")


def short_key(key: str) -> str:
    """Return a topology key without its prefix."""
    return "host" if key == HOSTNAME else safe(key.rpartition("/")[2])


def _affinity_term(path: str) -> tuple[str, str]:
    """Return the kind of affinity of a term, and whether it is ``required`` or ``preferred``."""
    kind, _, list_path = short_path(path[max(path.rfind("affinity."), 0) :]).partition(".")
    return kind, list_path.partition("[")[0]


def warnings(cluster: Cluster) -> list[str]:
    """Return the reasons why a report may not hold for its cluster."""
    return [] if isinstance(cluster.warnings, UnsetType) else [safe(text) for text in cluster.warnings]
