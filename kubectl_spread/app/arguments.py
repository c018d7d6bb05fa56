"""The arguments that name objects: ``NAME…``, ``TYPE/NAME…``, ``TYPE NAME…``, with kubectl's short names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kubectl_spread.audit.snapshot.scope import Target
from kubectl_spread.errors import UsageError
from kubectl_spread.kube.custom.groups import is_custom

KINDS: Final = {
    "Pod": ("pod", "pods", "po"),
    "Deployment": ("deployment", "deployments", "deploy"),
    "ReplicaSet": ("replicaset", "replicasets", "rs"),
    "StatefulSet": ("statefulset", "statefulsets", "sts"),
    "DaemonSet": ("daemonset", "daemonsets", "ds"),
    "Job": ("job", "jobs"),
    "CronJob": ("cronjob", "cronjobs", "cj"),
    "ReplicationController": ("replicationcontroller", "replicationcontrollers", "rc"),
}
"""Maps a kind to the words that name it: singular, plural (the resource), short."""

_MANIFESTS: Final = (".yaml", ".yml", ".json")
"""The ends of the names of manifests."""
_KIND_OF: Final = {word: kind for kind, words in KINDS.items() for word in words}


def parse(arguments: Sequence[str]) -> tuple[Target, ...]:
    """Return the targets that the arguments name; a TYPE alone means all its objects.

    A plain NAME gets the kind "", and an unknown type may be the kind of an owner: ``names.resolve`` looks both up when
    pods and workloads have been read.

    Raises:
        UsageError: A name is missing, both forms are mixed, or an argument is a file.
    """
    if not arguments:
        return ()
    for argument in arguments:
        _refuse_file(argument)
    if any("/" in argument for argument in arguments):
        return tuple(_slashed(argument) for argument in arguments)
    types = [_kind(word) for word in arguments[0].split(",")]
    kinds = [kind for kind in types if kind is not None]
    if len(kinds) == len(types):
        names = arguments[1:] or [""]
        return tuple(Target(kind, name) for kind in kinds for name in names)
    return tuple(Target("", name) for name in arguments)


def resource(kind: str) -> str:
    """Return the resource of a kind, as the API server's messages name it."""
    return KINDS[kind][1] if kind in KINDS else f"{kind.lower()}s"


def as_file(path: str) -> str:
    """Return the end of an error about an object whose name is the path of a file or directory, else ""."""
    return f"; did you mean -f {path}?" if Path(path).exists() else ""


def _refuse_file(argument: str) -> None:
    """Refuse an argument that can only be a path, before a cluster is contacted.

    Raises:
        UsageError: The argument is such a path.
    """
    word, slash, name = argument.partition("/")
    is_manifest = argument.endswith(_MANIFESTS)
    if slash and _kind(word):
        return
    if is_manifest or (slash and (not name or "/" in name or not word.strip("."))):
        question = f"; did you mean -f {argument}?" if is_manifest and slash else as_file(argument)
        if question:
            pod = "" if slash else f" (a pod of that name: pod/{argument})"
            raise UsageError(f'"{argument}" is not the name of an object{question}{pod}')


def _kind(word: str) -> str | None:
    """Return the kind that a word names; its group may follow, as in ``deployments.apps``."""
    name, _, group = word.lower().partition(".")
    return None if is_custom(f"{group}/") else _KIND_OF.get(name)


def _slashed(argument: str) -> Target:
    word, _, name = argument.partition("/")
    if not word or not name or "/" in name:
        raise UsageError(f'arguments in TYPE/NAME form must have a single type and name, not "{argument}"')
    return Target(_kind(word) or word, name)
