"""Names on the command line: NAME, KIND/NAME and KIND NAME, what a plain NAME means, and the nearest existing names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kubectl_spread.audit.snapshot.scope import Target
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.errors import UsageError
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.custom import is_custom
from kubectl_spread.phrases import listed, named, nearest

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

BETWEEN: Final = {"Deployment": "ReplicaSet", "CronJob": "Job"}
"""Maps a kind to that of the workloads between it and its pods."""
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


_POD: Final = "Pod"


def resolve(snapshot: Snapshot) -> list[str]:
    """Give the targets of a snapshot their kinds, once pods and workloads are read.

    A plain name is that of a pod or, where no pod has it, of a workload. It keeps the kind "" where nothing has it.

    Returns:
        Notes on names that a pod shares with a workload.

    Raises:
        UsageError: No owner is of a target's kind, or workloads of several kinds have a plain name.
    """
    targets = snapshot.scope.targets
    if not targets:
        return []
    objects = snapshot.objects()
    kinds = {ref.kind for ref in objects}
    resolved = tuple(
        _resolved(target, kinds) if target.kind else _named(target, objects, snapshot) for target in targets
    )
    snapshot.scope = msgspec.structs.replace(snapshot.scope, targets=resolved)
    return [
        note
        for target, answer in zip(targets, resolved, strict=True)
        if not target.kind and answer.kind == _POD and (note := _shared(answer, objects))
    ]


def missing(target: Target, snapshot: Snapshot, namespace: str, source: str = "what was read") -> str:
    """Return the error about a target that is not in a namespace, or not in a source, with the nearest name."""
    kind = resource(target.kind) if target.kind else "pod or workload"
    where = f"in namespace {namespace}" if namespace else f"in {source}"
    question = suggestion(target, snapshot, namespace) or ("" if target.kind else as_file(target.name))
    return f'{kind} "{target.name}" not found {where}{question}'


def suggestion(target: Target, snapshot: Snapshot, namespace: str) -> str:
    """Return the question whether the nearest name in a namespace was meant, or else in another one that was read.

    For a plain name and for a pod, the names of workloads are near too. It is "" where no name is near.
    """
    objects = {*snapshot.objects(), *snapshot.ownership.objects}
    alike = [ref for ref in objects if target.kind in ("", _POD, ref.kind)]
    for near in ([ref for ref in alike if namespace in ("", ref.namespace)], alike):
        name = nearest(target.name, sorted({ref.name for ref in near}))
        if refs := sorted(ref for ref in _tops(near, snapshot) if ref.name == name):
            flag = f" -n {refs[0].namespace}" if namespace not in ("", refs[0].namespace) else ""
            return f"; did you mean {named(refs[0].kind, refs[0].name)}{flag}?"
    return ""


def _named(target: Target, objects: Collection[ObjectRef], snapshot: Snapshot) -> Target:
    """Return the target that a plain name means.

    Raises:
        UsageError: Workloads of several kinds have the name.
    """
    refs = [ref for ref in objects if ref.name == target.name]
    kinds = sorted({ref.kind for ref in _tops(refs, snapshot)})
    if _POD in kinds:
        return Target(_POD, target.name)
    if len(kinds) > 1:
        names = listed([named(kind, target.name) for kind in kinds], len(kinds))
        raise UsageError(f'several workloads are named "{target.name}": choose one of {names}')
    return Target(kinds[0] if kinds else "", target.name)


def _tops(refs: Collection[ObjectRef], snapshot: Snapshot) -> list[ObjectRef]:
    """Return the objects without those that have the same name as their owner."""
    return [ref for ref in refs if not any(owner in refs for owner in snapshot.ownership.owners(ref) if owner != ref)]


def _shared(pod: Target, objects: Iterable[ObjectRef]) -> str:
    """Return a note on the workloads that have the name of a pod, or ""."""
    workloads = sorted({named(ref.kind, ref.name) for ref in objects if ref.name == pod.name and ref.kind != _POD})
    if not workloads:
        return ""
    return f'"{pod.name}" is taken as the name of a pod; for the workload write {listed(workloads, len(workloads))}'


def _resolved(target: Target, kinds: Iterable[str]) -> Target:
    """Return a target with its kind as the API spells it; a group that the user adds to the type is ignored.

    Raises:
        UsageError: No owner is of such a kind.
    """
    if target.kind in KINDS:
        return target
    full = target.kind.lower()
    word = full.partition(".")[0]
    for kind in sorted(kinds):
        singular, dot, group = kind.lower().partition(".")
        if (full if group else word) in (f"{singular}{dot}{group}", f"{singular}s{dot}{group}"):
            return Target(kind, target.name)
    types = ", ".join(words[0] for words in KINDS.values())
    type_words = [*(word for words in KINDS.values() for word in words), *(kind.lower() for kind in kinds)]
    near = nearest(word, type_words)
    question = f'; did you mean "{near}/{target.name}"?' if near else as_file(f"{target.kind}/{target.name}")
    raise UsageError(
        f'the server doesn\'t have a resource type "{target.kind}" with pods (known: {types}, and the kinds that own '
        f"the pods that were read){question}"
    )
