"""Words of all text formats: short names of kinds, short paths, safe strings."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kubectl_spread.kube.api.labels import DOMAIN_NOUNS, HOSTNAME
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import named, some
from kubectl_spread.report.model import Cluster, Row, Workload

if TYPE_CHECKING:
    from kubectl_spread.explain.explanation import TemplateTerm

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


def topology(key: str) -> str:
    """Return a topology key; those that Kubernetes itself sets without their prefix."""
    return safe(_WELL_KNOWN.get(key, key))


def clause(term: Row | TemplateTerm) -> str:
    """Return the path of a term and its requirement: ``topologySpreadConstraints[0]: zone DoNotSchedule``."""
    return f"{short_path(term.path)}: {requirement(term)}"


def requirement(term: Row | TemplateTerm) -> str:
    """Return the topology key of a term, and whether it is hard or soft: ``zone DoNotSchedule``."""
    return f"{topology(term.topology_key)} {policy(term)}"


def policy(term: Row | TemplateTerm, *, short: bool = False) -> str:
    """Return whenUnsatisfiable, or the kind of affinity and whether it is required: ``podAntiAffinity required``."""
    if isinstance(term.when_unsatisfiable, str):
        strictly = {"DoNotSchedule": "hard", "ScheduleAnyway": "soft"} if short else {}
        default = " (default)" if isinstance(term, Row) and term.default is True else ""
        return safe(strictly.get(term.when_unsatisfiable, term.when_unsatisfiable)) + default
    path = short_path(term.path[max(term.path.rfind("affinity."), 0) :])
    kind, _, list_path = path.partition(".")
    required, _, _ = list_path.partition("[")
    if short:
        return safe(f"{_TERMS.get(kind, kind)} {'hard' if required == 'required' else 'soft'}")
    return safe(f"{kind} {required}")


def short_key(key: str) -> str:
    """Return a topology key without its prefix."""
    return "host" if key == HOSTNAME else safe(key.rpartition("/")[2])


def warnings(cluster: Cluster) -> list[str]:
    """Return the reasons why a report may not hold for its cluster."""
    return [safe(text) for text in cluster.warnings or ()]
