"""Completion of the values of options and arguments; each completer is a ``shell_complete`` of click.

All imports are late, because help and the completion of flags do not need them. Errors yield no candidates.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import click
import msgspec
from click.shell_completion import CompletionItem

from kubectl_spread.errors import SpreadError
from kubectl_spread.kube.api.labels import TOPOLOGY_KEYS
from kubectl_spread.kube.features import NEWEST_MINOR, OLDEST_MINOR

if TYPE_CHECKING:
    from kubectl_spread.kube.api.types import ObjectMeta

Item: TypeAlias = "CompletionItem[str]"
Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[Item]]
_ON_NODE: Final = ("spec.nodeName=", "spec.nodeName!=")
_PATIENCE: Final = 3
"""The seconds that the shell waits for files, or for the API server unless the user sets --request-timeout."""
_CLUSTER_WIDE: Final = frozenset({"Namespace", "Node"})
_MOST: Final = 500
"""The largest number of names to request; nobody reads a longer list."""


def files(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Let the shell complete a file."""
    return [CompletionItem(incomplete, type="file")]


def directories(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Let the shell complete a directory."""
    return [CompletionItem(incomplete, type="dir")]


def _of(candidates: Callable[[Mapping[str, Any]], Iterable[str | tuple[str, str]]]) -> Completer:
    """Return the completer of candidates, which depend on the values of other options."""
    return lambda context, _parameter, incomplete: _matching(candidates(context.params), incomplete)


def _last(complete: Completer, context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete the value after the last comma, except to values that are in the list already."""
    before, comma, last = incomplete.rpartition(",")
    values = before.split(",")
    return [
        CompletionItem(f"{before}{comma}{candidate.value}", help=candidate.help)
        for candidate in complete(context, parameter, last)
        if candidate.value not in values
    ]


contexts: Final = _of(lambda parameters: _kubeconfig(parameters, "contexts"))
clusters: Final = _of(lambda parameters: _kubeconfig(parameters, "clusters"))
users: Final = _of(lambda parameters: _kubeconfig(parameters, "users"))
namespaces: Final = _of(lambda parameters: _names(parameters, "Namespace"))
minors: Final = _of(lambda _: [f"1.{minor}" for minor in range(NEWEST_MINOR, OLDEST_MINOR - 1, -1)])
"""Completes a minor version of Kubernetes, the newest first."""
keys: Final = _of(lambda _: TOPOLOGY_KEYS)
domains: Final = _of(lambda _: [f"{key}=" for key in TOPOLOGY_KEYS])
values_of_key: Final = _of(lambda parameters: _values(parameters, parameters.get("key") or ""))
"""Completes the value of a topology key among the labels of the nodes."""


def several_of(words: Iterable[str]) -> Completer:
    """Complete the last of several words, each of which is one of a few."""
    return partial(_last, _of(lambda _: words))


def rules(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete the code or the name of a rule, in any letter case."""
    return _matching(_rules(incomplete), incomplete)


several_contexts: Final = partial(_last, contexts)
several_namespaces: Final = partial(_last, namespaces)
several_keys: Final = partial(_last, keys)
several_rules: Final = partial(_last, rules)


def several_nodes(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete the last node of a list: its name, or a key of labels and its value."""

    def complete(_context: click.Context, _parameter: click.Parameter, last: str) -> list[Item]:
        key, equals, _ = last.partition("=")
        if equals:
            return _matching([f"{key}={value}" for value in _values(context.params, key)], last)
        return [*domains(context, parameter, last), *_matching(_names(context.params, "Node"), last)]

    return _last(complete, context, parameter, incomplete)


def key_or_domain(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete the short name of a topology key, or its value after ``=``."""
    return several_nodes(context, parameter, incomplete) if "=" in incomplete else keys(context, parameter, incomplete)


def fields(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete a field of pods, and the node of ``spec.nodeName``."""
    from kubectl_spread.audit.snapshot.scope import FIELDS  # noqa: PLC0415

    if incomplete.startswith(_ON_NODE):
        prefix = incomplete[: incomplete.index("=") + 1]
        return _matching([f"{prefix}{name}" for name in _names(context.params, "Node")], incomplete)
    return _matching([f"{field}=" for field in FIELDS], incomplete)


def formats(names: Iterable[str]) -> Completer:
    """Return the completer of formats with these names, and of the file after one."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Item]:
        return files(context, parameter, incomplete) if "=" in incomplete else _matching(names, incomplete)

    return complete


def objects(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete NAME, TYPE/NAME or TYPE NAME of the cluster or of the files of ``-f``; with ``--manifests`` files."""
    if context.params.get("manifests"):
        return files(context, parameter, incomplete)
    return _matching(_objects(context.params, incomplete), incomplete)


def objects_or_rules(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete an object or, as the first argument, a rule."""
    candidates = objects(context, parameter, incomplete)
    return candidates if context.params.get("arguments") else candidates + rules(context, parameter, incomplete)


def _matching(candidates: Iterable[str | tuple[str, str]], incomplete: str) -> list[Item]:
    """Return the candidates that begin with the incomplete word, some of them with a description.

    Names with control characters are left out, because shells print candidates to the terminal as they are.
    """
    described = ((candidate, None) if isinstance(candidate, str) else candidate for candidate in candidates)
    return [
        CompletionItem(value, help=description)
        for value, description in described
        if value.startswith(incomplete) and value.isprintable()
    ]


def _kubeconfig(parameters: Mapping[str, Any], part: Literal["contexts", "clusters", "users"]) -> list[str]:
    """Return the names in a part of the kubeconfig, in order; none if it cannot be read."""
    from kubectl_spread.sources.auth import kubeconfig  # noqa: PLC0415 - not every candidate is in a kubeconfig

    with suppress(SpreadError):
        return list(getattr(kubeconfig.load(parameters.get("kubeconfig") or "", os.environ), part))
    return []


def _rules(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the rules with their summaries: codes in the word's letter case, and names where the word is not empty."""
    from kubectl_spread.rules import RULES  # noqa: PLC0415 - not every candidate is a rule

    for rule in RULES:
        yield rule.code if incomplete == incomplete.upper() else rule.code.lower(), rule.summary
    if incomplete:
        yield from ((rule.name, rule.summary) for rule in RULES)


def _objects(parameters: Mapping[str, Any], incomplete: str) -> Iterator[str | tuple[str, str]]:
    """Yield candidates for the next argument of TYPE/NAME, TYPE NAME or NAME."""
    from kubectl_spread.run.names import KINDS  # noqa: PLC0415 - not every candidate is an object

    kinds = {word: kind for kind, words in KINDS.items() for word in words}
    earlier: tuple[str, ...] = parameters.get("arguments") or ()
    word, slash, _ = incomplete.partition("/")
    if slash:
        names = _names(parameters, kinds.get(word.lower(), ""))
        yield from (f"{word}/{name}" for name in names if f"{word}/{name}" not in earlier)
        return
    kind = kinds.get(earlier[0].lower(), "") if earlier else "Pod"
    if not earlier:
        yield from ((words[0], f"or {', '.join(words[1:])}") for words in KINDS.values())
    # Names of objects have no capital letters; the word is the beginning of a rule's code.
    if incomplete == incomplete.lower() and not any("/" in argument for argument in earlier):
        yield from (name for name in _names(parameters, kind or "Pod") if name not in earlier)


def _values(parameters: Mapping[str, Any], key: str) -> list[str]:
    """Return the values of a topology key among the labels of the nodes, in order."""
    label = TOPOLOGY_KEYS.get(key, key)
    return sorted({node.labels[label] for node in _metadata(parameters, "Node") if label in node.labels})


def _names(parameters: Mapping[str, Any], kind: str) -> list[str]:
    """Return the names of some objects of a kind."""
    return [metadata.name for metadata in _metadata(parameters, kind)]


def _metadata(parameters: Mapping[str, Any], kind: str) -> Iterable[ObjectMeta]:
    """Return the metadata of some objects of a kind in the files or the cluster of the options; none after an error.

    With ``-k`` there are none, because nothing is rendered, and with ``-A`` none of objects in namespaces, because the
    commands take no names with it.
    """
    if not kind or parameters.get("kustomize") or (kind not in _CLUSTER_WIDE and parameters.get("all_namespaces")):
        return ()
    read = _of_files if parameters.get("filename") else _live
    with suppress(SpreadError, OSError):
        return read(parameters, kind)
    return ()


def _of_files(parameters: Mapping[str, Any], kind: str) -> list[ObjectMeta]:
    """Return the metadata of the objects in files that are read within the patience of a shell."""
    from kubectl_spread.sources.files import chosen, manifests  # noqa: PLC0415 - only candidates from files need them

    end, namespace = time.monotonic() + _PATIENCE, "" if kind in _CLUSTER_WIDE else parameters.get("namespace")
    files = chosen.choose(parameters["filename"], recursive=bool(parameters.get("recursive")))
    read_in_time = takewhile(lambda _: time.monotonic() < end, manifests.ManifestReading(files).objects)
    by_name = {loaded.object.metadata.name: loaded.object.metadata for loaded in read_in_time if loaded.kind == kind}
    return list(islice((each for each in by_name.values() if not namespace or each.namespace == namespace), _MOST))


def _live(parameters: Mapping[str, Any], kind: str) -> list[ObjectMeta]:
    """Return the metadata of some objects in the cluster and the namespace that the options choose."""
    from kubectl_spread.run.options import options_of  # noqa: PLC0415 - only candidates from clusters need it
    from kubectl_spread.sources.apiserver.cluster import LiveCluster  # noqa: PLC0415 - likewise
    from kubectl_spread.sources.auth.connection import ConnectionFlags  # noqa: PLC0415 - likewise
    from kubectl_spread.sources.decode.resources import BY_KIND, NAMESPACES, NODES  # noqa: PLC0415 - likewise

    resource = {**BY_KIND, "Namespace": NAMESPACES, "Node": NODES}[kind]
    connection = options_of(parameters, ConnectionFlags)
    timeout = f"{_PATIENCE}s" if connection.request_timeout in ("", "0") else connection.request_timeout
    with closing(LiveCluster.connect(msgspec.structs.replace(connection, request_timeout=timeout))) as cluster:
        return cluster.metadata(resource, cluster.namespace, _MOST)
