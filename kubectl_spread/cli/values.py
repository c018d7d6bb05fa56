"""Completion of the values of options and arguments; each completer is a ``shell_complete`` of click.

All imports are late, because help and the completion of flags do not need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias

import click
from click.shell_completion import CompletionItem

from kubectl_spread.kube.api.topologykeys import HOSTNAME, TOPOLOGY_KEYS

Item: TypeAlias = "CompletionItem[str]"
Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[Item]]
_ON_NODE: Final = ("spec.nodeName=", "spec.nodeName!=")


def files(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Let the shell complete a file."""
    return [CompletionItem(incomplete, type="file")]


def directories(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Let the shell complete a directory."""
    return [CompletionItem(incomplete, type="dir")]


def _names_in_kubeconfig(part: Literal["contexts", "clusters", "users"]) -> Completer:
    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Item]:
        from kubectl_spread.run import candidates  # noqa: PLC0415

        return _matching(candidates.kubeconfig(context.params, part), incomplete)

    return complete


contexts: Final = _names_in_kubeconfig("contexts")
clusters: Final = _names_in_kubeconfig("clusters")
users: Final = _names_in_kubeconfig("users")


def namespaces(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete the name of a namespace of the cluster."""
    from kubectl_spread.run import candidates  # noqa: PLC0415

    return _matching(candidates.live(context.params, "Namespace"), incomplete)


def several_namespaces(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete the last name of a list."""
    return _last(namespaces, context, parameter, incomplete)


def rules(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete the code or the name of a rule, in any letter case."""
    from kubectl_spread.run import candidates  # noqa: PLC0415

    return _matching(candidates.rules(incomplete), incomplete)


def several_rules(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete the last code of a list."""
    return _last(rules, context, parameter, incomplete)


def minors(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete a minor version of Kubernetes, the newest first."""
    from kubectl_spread.kube.features import NEWEST_MINOR, OLDEST_MINOR  # noqa: PLC0415

    return _matching([f"1.{minor}" for minor in range(NEWEST_MINOR, OLDEST_MINOR - 1, -1)], incomplete)


def domains(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete the short name of a topology key, and ``=``."""
    return _matching([f"{key}=" for key in TOPOLOGY_KEYS], incomplete)


def nodes(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete the name of a node after the key of nodes; the values of other keys are not requested."""
    from kubectl_spread.run import candidates  # noqa: PLC0415

    key = context.params.get("key")
    is_node = TOPOLOGY_KEYS.get(key or "", key) == HOSTNAME
    return _matching(candidates.live(context.params, "Node") if is_node else (), incomplete)


def formats_of_domains(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete a format of ``domains``, and the file after it."""
    from kubectl_spread.cli.formats import NAMES_FOR_DOMAINS  # noqa: PLC0415

    return files(context, parameter, incomplete) if "=" in incomplete else _matching(NAMES_FOR_DOMAINS, incomplete)


def keys(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete the short name of a topology key."""
    return _matching(TOPOLOGY_KEYS, incomplete)


def several_keys(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete the last key of a list."""
    return _last(keys, context, parameter, incomplete)


def fields(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete a field of pods, and the node of ``spec.nodeName``."""
    from kubectl_spread.audit.snapshot.scope import FIELDS  # noqa: PLC0415
    from kubectl_spread.run import candidates  # noqa: PLC0415

    if incomplete.startswith(_ON_NODE):
        prefix = incomplete[: incomplete.index("=") + 1]
        return _matching([f"{prefix}{name}" for name in candidates.live(context.params, "Node")], incomplete)
    return _matching([f"{field}=" for field in FIELDS], incomplete)


def formats(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete a format, and the file after it."""
    from kubectl_spread.cli.formats import NAMES  # noqa: PLC0415

    return files(context, parameter, incomplete) if "=" in incomplete else _matching(NAMES, incomplete)


def objects(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete NAME, TYPE/NAME or TYPE NAME; with ``--manifests`` files, and with ``-f`` nothing of a cluster."""
    from kubectl_spread.run import candidates  # noqa: PLC0415

    if context.params.get("manifests"):
        return files(context, parameter, incomplete)
    return _matching(candidates.objects(context.params, incomplete), incomplete)


def objects_or_rules(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete an object or, as the first argument, a rule."""
    candidates = objects(context, parameter, incomplete)
    return candidates if context.params.get("arguments") else candidates + rules(context, parameter, incomplete)


def _last(complete: Completer, context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Item]:
    """Complete the value after the last comma, except to values that are in the list already."""
    before, comma, last = incomplete.rpartition(",")
    values = before.split(",")
    return [
        CompletionItem(f"{before}{comma}{candidate.value}", help=candidate.help)
        for candidate in complete(context, parameter, last)
        if candidate.value not in values
    ]


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
