"""Candidates for completion: names in the kubeconfig and the cluster, types, rules. Errors yield no candidates."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from typing import Any, Final, Literal

import msgspec

from kubectl_spread.errors import SpreadError

_PATIENCE: Final = "3s"
"""The longest time that the shell waits for the API server, unless the user sets --request-timeout."""
_MOST: Final = 500
"""The largest number of names to request; nobody reads a longer list."""


def kubeconfig(parameters: Mapping[str, Any], part: Literal["contexts", "clusters", "users"]) -> list[str]:
    """Return the names in a part of the kubeconfig, in order; none if it cannot be read."""
    from kubectl_spread.sources.auth import kubeconfig as files  # noqa: PLC0415 - not every candidate is in a kubeconfig

    with suppress(SpreadError):
        return list(getattr(files.load(parameters.get("kubeconfig") or "", os.environ), part))
    return []


def rules(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the rules with their summaries: codes in the word's letter case, and names where the word is not empty."""
    from kubectl_spread.rules import RULES  # noqa: PLC0415 - not every candidate is a rule

    for rule in RULES:
        yield rule.code if incomplete == incomplete.upper() else rule.code.lower(), rule.summary
    if incomplete:
        yield from ((rule.name, rule.summary) for rule in RULES)


def objects(parameters: Mapping[str, Any], incomplete: str) -> Iterator[str | tuple[str, str]]:
    """Yield candidates for the next argument of TYPE/NAME, TYPE NAME or NAME."""
    from kubectl_spread.run.names import KINDS  # noqa: PLC0415 - not every candidate is an object

    kinds = {word: kind for kind, words in KINDS.items() for word in words}
    earlier: tuple[str, ...] = parameters.get("arguments") or ()
    word, slash, _ = incomplete.partition("/")
    if slash:
        names = live(parameters, kinds.get(word.lower(), ""))
        yield from (f"{word}/{name}" for name in names if f"{word}/{name}" not in earlier)
        return
    kind = kinds.get(earlier[0].lower(), "") if earlier else "Pod"
    if not earlier:
        yield from ((words[0], f"or {', '.join(words[1:])}") for words in KINDS.values())
    # Names of objects have no capital letters; the word is the beginning of a rule's code.
    if incomplete == incomplete.lower() and not any("/" in argument for argument in earlier):
        yield from (name for name in live(parameters, kind or "Pod") if name not in earlier)


def live(parameters: Mapping[str, Any], kind: str) -> list[str]:
    """Return the names of some objects of a kind in the cluster that the options choose; none after an error.

    The namespace is that of the options or the context. With ``-f`` or ``-k`` there are no names, because no cluster is
    read, and with ``-A`` there are no names of namespaced objects, because it takes none.
    """
    from kubectl_spread.run.live import flags  # noqa: PLC0415 - it needs urllib3 and protobuf
    from kubectl_spread.sources.apiserver.cluster import LiveCluster  # noqa: PLC0415 - likewise
    from kubectl_spread.sources.apiserver.resources import BY_KIND, NAMESPACES, NODES  # noqa: PLC0415 - likewise

    resource = {**BY_KIND, "Namespace": NAMESPACES, "Node": NODES}.get(kind)
    offline = parameters.get("filename") or parameters.get("kustomize")
    if resource is None or offline or (resource.namespaced and parameters.get("all_namespaces")):
        return []
    with suppress(SpreadError, OSError):
        connection = flags(parameters)
        timeout = _PATIENCE if connection.request_timeout in ("", "0") else connection.request_timeout
        with closing(LiveCluster.connect(msgspec.structs.replace(connection, request_timeout=timeout))) as cluster:
            return cluster.names(resource, cluster.namespace if resource.namespaced else None, _MOST)
    return []
