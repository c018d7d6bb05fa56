"""Candidates for completion: names of the kubeconfig and of the cluster, types, rules; of errors nothing is said."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Literal

from kubectl_spread.errors import SpreadError

_PATIENCE: Final = "3s"
"""How long the shell may be kept waiting for the apiserver, unless the user says so."""
_MOST: Final = 500
"""How many names are asked for; nobody reads more."""


def kubeconfig(given: Mapping[str, Any], part: Literal["contexts", "clusters", "users"]) -> list[str]:
    """Return the names in a part of the kubeconfig, in their order; none where it cannot be read."""
    from kubectl_spread.sources.auth import kubeconfig as files  # noqa: PLC0415 - not every candidate is in a kubeconfig

    with suppress(SpreadError):
        return list(getattr(files.load(given.get("kubeconfig") or "", os.environ), part))
    return []


def rules(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the rules with their summaries; in the case of letters that the word has, by name once one is begun."""
    from kubectl_spread.rules import RULES  # noqa: PLC0415 - not every candidate is a rule

    for rule in RULES:
        yield rule.code if incomplete == incomplete.upper() else rule.code.lower(), rule.summary
    if incomplete:
        yield from ((rule.name, rule.summary) for rule in RULES)


def objects(given: Mapping[str, Any], incomplete: str) -> Iterator[str | tuple[str, str]]:
    """Yield what the next argument of TYPE/NAME, TYPE NAME or NAME may be, given those before."""
    from kubectl_spread.app.targets import KINDS  # noqa: PLC0415 - not every candidate is an object

    kinds = {word: kind for kind, words in KINDS.items() for word in words}
    before: tuple[str, ...] = given.get("arguments") or ()
    word, slash, _ = incomplete.partition("/")
    if slash:
        names = live(given, kinds.get(word.lower(), ""))
        yield from (f"{word}/{name}" for name in names if f"{word}/{name}" not in before)
        return
    kind = kinds.get(before[0].lower(), "") if before else "Pod"
    if not before:
        yield from ((words[0], f"or {', '.join(words[1:])}") for words in KINDS.values())
    # No object has a name with capital letters: those of a rule are meant.
    if incomplete == incomplete.lower() and not any("/" in argument for argument in before):
        yield from (name for name in live(given, kind or "Pod") if name not in before)


def live(given: Mapping[str, Any], kind: str) -> list[str]:
    """Return the names of some objects of a kind in the cluster that the options choose; none where there is no answer.

    Objects of namespaces are those of the namespace that the options or the context name. With ``-f`` or ``-A`` there
    are none: the first asks no cluster, the second takes no names.
    """
    from kubectl_spread.app.live import flags  # noqa: PLC0415 - it needs the kubernetes package
    from kubectl_spread.sources.apiserver.cluster import LiveCluster  # noqa: PLC0415 - likewise
    from kubectl_spread.sources.apiserver.resources import BY_KIND, NAMESPACES, NODES  # noqa: PLC0415 - likewise

    resource = {**BY_KIND, "Namespace": NAMESPACES, "Node": NODES}.get(kind)
    if resource is None or given.get("filename") or (resource.namespaced and given.get("all_namespaces")):
        return []
    with suppress(SpreadError, OSError):
        chosen = flags(given)
        patience = _PATIENCE if chosen.request_timeout in ("", "0") else chosen.request_timeout
        cluster = LiveCluster.connect(replace(chosen, request_timeout=patience))
        return cluster.names(resource, cluster.namespace if resource.namespaced else None, _MOST)
    return []
