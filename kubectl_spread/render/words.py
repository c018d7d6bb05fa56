"""Words of all text formats: short paths and topology keys, and safe strings. Printers make texts safe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kubectl_spread.kube.api.labels import DOMAIN_NOUNS, HOSTNAME
from kubectl_spread.phrases import some
from kubectl_spread.report.model import Row

if TYPE_CHECKING:
    from kubectl_spread.explain.explanation import TemplateTerm

_LISTED_NAMES: Final = 8
_WELL_KNOWN: Final = {**DOMAIN_NOUNS, HOSTNAME: "hostname"}
_TERMS: Final = {"podAffinity": "affinity", "podAntiAffinity": "anti"}


def safe(text: str) -> str:
    """Return text with every character that could move a cursor or hide text as an escape."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", errors="surrogatepass").decode("ascii")
        for char in text
    )


def names(texts: Sequence[str]) -> str:
    """Return names as a list, which ends with the number of names that were left out."""
    return some(texts, _LISTED_NAMES)


def short_path(path: str) -> str:
    """Return a field path without the parts that all terms share."""
    short = path.removeprefix("spec.").removeprefix("affinity.").removesuffix(".podAffinityTerm")
    return short.replace("DuringSchedulingIgnoredDuringExecution", "")


def topology(key: str) -> str:
    """Return a topology key; those that Kubernetes itself sets without their prefix."""
    return _WELL_KNOWN.get(key, key)


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
        return strictly.get(term.when_unsatisfiable, term.when_unsatisfiable) + default
    path = short_path(term.path[max(term.path.rfind("affinity."), 0) :])
    kind, _, list_path = path.partition(".")
    required, _, _ = list_path.partition("[")
    if short:
        return f"{_TERMS.get(kind, kind)} {'hard' if required == 'required' else 'soft'}"
    return f"{kind} {required}"


def short_key(key: str) -> str:
    """Return a topology key without its prefix."""
    return "host" if key == HOSTNAME else key.rpartition("/")[2]
