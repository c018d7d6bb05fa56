"""Phrases: numbers with their nouns, short lists, short names of objects, and the nearest right word for another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kubectl_spread.kube.api.labels import DOMAIN_NOUNS

_NAMED: Final = 3
_SHORT_KINDS: Final[Mapping[str, str]] = {
    "Deployment": "deploy",
    "ReplicaSet": "rs",
    "StatefulSet": "sts",
    "DaemonSet": "ds",
    "Job": "job",
    "CronJob": "cj",
    "ReplicationController": "rc",
    "Pod": "po",
}


def plural(number: int, noun: str) -> str:
    """Return ``1 pod``, ``2 pods``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some(names: Sequence[str], most: int = _NAMED) -> str:
    """Join names; of more than ``most`` names only the first ones, with the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def named(kind: str, name: str) -> str:
    """Return an object as kubectl users write it: ``deploy/web``."""
    return f"{_SHORT_KINDS.get(kind, kind.lower())}/{name}"


def domains(key: str, values: Sequence[str], *, most: int = _NAMED) -> str:
    """Return topology domains as readers call them: ``zone a``, ``zones a and b``, ``nodes n1, n2 and 3 more``."""
    singular = noun(key)
    prefix = "" if key in DOMAIN_NOUNS else f"{key}="
    nouns = singular if len(values) == 1 else f"{singular}s"
    return f"{nouns} {prefix}{listed([value(text) for text in values], most)}"


def noun(key: str) -> str:
    """Return what a domain of a topology key is called: ``zone``, ``region``, ``node`` or ``domain``."""
    return DOMAIN_NOUNS.get(key, "domain")


def topology_name(key: str) -> str:
    """Return a topology key without its prefix, as tables print it: ``zone``, ``hostname``."""
    return key.rpartition("/")[2]


def in_domain(key: str, which: str) -> str:
    """Return the place of a pod in terms of a topology key: ``in its zone``, ``on any node``."""
    name = DOMAIN_NOUNS.get(key) or key.rpartition("/")[2]
    return f"{'on' if name == 'node' else 'in'} {which} {name}"


def listed(names: Sequence[str], most: int = _NAMED) -> str:
    """Join names as a sentence does: ``none``, ``a``, ``a and b``, ``a, b and c``, ``a, b, c and 2 more``."""
    if not names:
        return "none"
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def versions(minors: Iterable[int]) -> str:
    """Return Kubernetes minors in ascending order: ``1.34``, ``1.34 and 1.35``, ``1.34 to 1.36``."""
    first, *more = sorted(minors)
    if more[1:] and more[-1] - first == len(more):
        return f"1.{first} to 1.{more[-1]}"
    return listed([f"1.{minor}" for minor in (first, *more)], len(more) + 1)


def capitalized(text: str) -> str:
    """Return text with a capital letter at its start."""
    return text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """Return text as a sentence: with a capital letter and a full stop."""
    return capitalized(text) + ("" if text.endswith((".", "?")) else ".")


def value(text: str) -> str:
    """Return a label's value, or ``""`` for the empty value."""
    return text or '""'


_LONGEST: Final = 1_000
"""The length above which a word is not a name; the longest key of a label has 317 characters."""
_CLOSE: Final = 0.7
"""The similarity, by difflib, from which a word counts as misspelt; at 0.6 ``all`` would be near ``ml``."""


def nearest(word: str, names: Iterable[str], *, close: float = _CLOSE) -> str:
    """Return the name that is most similar to a word, in any letter case; "" if none is similar.

    A name with two neighbouring letters transposed is the most similar, however short it is.
    """
    if len(word) > _LONGEST:
        return ""
    from difflib import get_close_matches  # noqa: PLC0415 - only errors need it

    spelt, word = {name.lower(): name for name in names}, word.lower()
    transposed = (f"{word[:i]}{word[i + 1]}{word[i]}{word[i + 2 :]}" for i in range(len(word) - 1))
    similar = (name for name in (word, *transposed) if name in spelt)
    return next((spelt[name] for name in (*similar, *get_close_matches(word, spelt, n=1, cutoff=close))), "")


def did_you_mean(word: str, names: Iterable[str], *, close: float = _CLOSE) -> str:
    """Return the end of an error message that suggests the nearest name; "" if none is similar."""
    name = nearest(word, names, close=close)
    return f'; did you mean "{name}"?' if name else ""
