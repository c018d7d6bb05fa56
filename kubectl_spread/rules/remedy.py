"""What to do about a finding: a sentence, commands to type, and a patch of the object."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

import msgspec

from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.custom.groups import base_kind
from kubectl_spread.phrases import named
from kubectl_spread.report.model import Operation
from kubectl_spread.rules.rule_input import RuleInput

PIPES: Final = (">", "|", "&&")
"""Words of a command that the shell reads."""
_FILTERS: Final = ("merge", "unmerge")
"""Commands of the plugin that read a file and no cluster."""
_DELETE: Final = ("kubectl", "delete", "pod", "-n")
_DELETE_SEVERAL: Final = ("kubectl", "delete", "pod", "--wait=false", "-n")
_DELETE_IF_PRESENT: Final = ("kubectl", "delete", "pod", "--ignore-not-found", "-n")
_RESTARTABLE: Final = ("Deployment", "StatefulSet", "DaemonSet")
_COSTS: Final = {
    **dict.fromkeys(_RESTARTABLE, "The patch restarts all pods of the workload"),
    "CronJob": "The patch takes effect with the next Job",
    "ReplicaSet": "The patch takes effect for new pods only",
    "ReplicationController": "The patch takes effect for new pods only",
}
"""Maps each kind whose pod template can be changed to the cost or the limit of a patch."""
_FIXED: Final = {
    "Job": "The pod template of a Job cannot change: delete the Job and create it again from a corrected manifest",
    "Pod": "The spec of a pod cannot change: delete the pod and create it again from a corrected manifest",
}
"""Maps each kind whose pod spec cannot be changed to the way to replace the object."""
_WAITS: Final = (
    "A StatefulSet waits for pending pods instead of replacing them, unless its podManagementPolicy is Parallel, so "
    "delete them after the patch"
)
_FEW: Final = 3
"""The most pods that a command names to replace only them."""


class Remedy(msgspec.Struct, frozen=True):
    """A template of a sentence, with what to type.

    Attributes:
        text: A template of the evidence's values.
        commands: Lines for a shell, to run in this order, each as words; a word of ``PIPES`` is not quoted.
        patch: A JSON patch of the finding's object that ends the finding.
        after: Commands to run once the patch is applied.
    """

    text: str
    commands: tuple[tuple[str, ...], ...] = ()
    patch: tuple[Operation, ...] = ()
    after: tuple[tuple[str, ...], ...] = ()


def literal(text: str) -> str:
    """Return text with the braces of a template escaped."""
    return text.replace("{", "{{").replace("}", "}}")


def line(command: Sequence[str], flags: Sequence[str]) -> str:
    """Return a command as a line that is safe to paste into a shell, with kubectl's flags for the cluster."""
    words = [word if word in PIPES else shlex.quote(word) for word in command]
    for index in reversed(range(len(words))):
        if words[index] == "kubectl" and words[index + 2] not in (*_FILTERS, "--local"):
            # kubectl takes no flags in front of a plugin's name.
            end = index + 3 if words[index + 1] == "spread" else index + 1
            words[end:end] = map(shlex.quote, flags)
    return " ".join(words)


def in_file(rule_input: RuleInput) -> bool:
    """Tell whether the finding's object is a manifest, which is edited and not patched."""
    return rule_input.manifest is not None or rule_input.workload in rule_input.audit.snapshot.manifests


def changed(text: str, operations: Sequence[Operation], rule_input: RuleInput) -> Remedy:
    """Return a change of the pod template as a patch of the workload, with its cost where it restarts pods.

    An object that the API would not change, or that its owner would change back, has no patch.
    """
    workload, owner = rule_input.workload, None if rule_input.template is None else rule_input.template.owner
    if in_file(rule_input):
        return Remedy(text, patch=tuple(operations) if _has_known_path(rule_input) else ())
    if (fixed := _FIXED.get(workload.kind)) is not None:
        return Remedy(f"{text}. {fixed}")
    if owner is not None or workload.kind not in _COSTS:
        kind, name = (workload.kind, workload.name) if owner is None else (owner.kind, owner.name)
        return Remedy(f"{text}. Change it in {literal(named(kind, name))}, which owns the pods")
    if workload.kind == "ReplicaSet" and rule_input.audit.snapshot.ownership.record(workload) is None:
        whose = literal(named(workload.kind, workload.name))
        return Remedy(f"{text}. Change it in the object that owns {whose}, which was not read and would undo a patch")
    if not operations:
        return Remedy(text)
    text, after = f"{text}. {_COSTS[workload.kind]}", _waiting_pods(rule_input)
    return Remedy(f"{text}. {_WAITS}" if after else text, patch=tuple(operations), after=after)


def _has_known_path(rule_input: RuleInput) -> bool:
    """Tell whether the path of the pod spec in the finding's object is known.

    Pods do not say which template of an object they were made from.
    """
    return rule_input.template is not None or rule_input.workload.kind in (*_COSTS, *_FIXED, "PodTemplate")


def _waiting_pods(rule_input: RuleInput) -> tuple[tuple[str, ...], ...]:
    """Return the command that deletes the pending pods of a StatefulSet, for which it may wait.

    With the podManagementPolicy Parallel it may have replaced them before the command runs.
    """
    pods = {pod.name: pod for pod in _pods_of(rule_input) if not pod.node and not pod.terminating}
    if rule_input.workload.kind != "StatefulSet" or not pods:
        return ()
    return ((*_DELETE_IF_PRESENT, rule_input.namespace, *sorted(pods)),)


def _pods_of(rule_input: RuleInput) -> tuple[PodRecord, ...]:
    """Return the pods of the workload that were read, some of them twice."""
    return (
        *(pod for row in rule_input.rows for pod in row.pods),
        *(pod for group in rule_input.groups for pod in group.pods),
    )


def delete(namespace: str, pods: Sequence[str]) -> tuple[str, ...]:
    """Return the command that deletes pods, which their owner replaces.

    For several pods it does not wait: while kubectl 1.32 waits for one, a StatefulSet may replace another under the
    same name, and kubectl takes the new pod for the old one.
    """
    return (*(_DELETE if len(pods) == 1 else _DELETE_SEVERAL), namespace, *pods)


def deleted_pods(command: Sequence[str]) -> tuple[str, ...]:
    """Return the pods that a command deletes; none for a command that deletes no pods."""
    for beginning in (_DELETE, _DELETE_SEVERAL, _DELETE_IF_PRESENT):
        if tuple(command[: len(beginning)]) == beginning:
            return tuple(command[len(beginning) + 1 :])
    return ()


def patched(workload: ObjectRef, operations: Sequence[Operation]) -> tuple[str, ...]:
    """Return the command that applies a JSON patch to a workload."""
    name, text = named(workload.kind, workload.name), msgspec.json.encode(operations).decode()
    return ("kubectl", "patch", name, "-n", workload.namespace, "--type=json", "-p", text)


def replacement(pods: Sequence[str], rule_input: RuleInput) -> Remedy:
    """Return how to replace some pods of the workload, and how many other pods that restarts."""
    terminating = {pod.name: pod.terminating for pod in _pods_of(rule_input)}
    staying = [name for name in pods if not terminating.get(name)]
    if rule_input.manifest is not None:
        return Remedy("correct the manifest before the pod is created")
    if pods and not staying:
        return Remedy("wait until they are gone: they are terminating")
    if any(
        pod.pod_class.owner is not None and base_kind(pod.pod_class.owner.kind) == "Job" for pod in _pods_of(rule_input)
    ):
        return Remedy("wait until the pods end: a Job counts a deleted pod as failed")
    workload = rule_input.workload
    others = sum(not gone for gone in terminating.values()) - len(staying)
    restart_all = _restart(rule_input, staying, len(staying) + others)
    if workload.kind == "Pod" or not (others and 0 < len(staying) <= _FEW):
        return restart_all
    these, whose = (
        ("the pod", "its owner replaces it") if len(staying) == 1 else ("the pods", "their owner replaces them")
    )
    text = f"delete {these} ({whose})"
    if workload.kind in _RESTARTABLE:
        text += f", or {restart_all.text}"
    return Remedy(text, (delete(rule_input.namespace, staying),))


def _restart(rule_input: RuleInput, pods: Sequence[str], number: int) -> Remedy:
    """Return the safe way to replace pods: by their workload, by eviction, or by hand for a bare pod."""
    workload = rule_input.workload
    if workload.kind in _RESTARTABLE:
        whom = f"all {number} pods of the workload" if number > 1 else "the pod"
        command = ("kubectl", "rollout", "restart", named(workload.kind, workload.name), "-n", workload.namespace)
        waiting = _waiting_pods(rule_input)
        text = f"restart {whom}, and delete those that are pending, for which a StatefulSet waits"
        return Remedy(text if waiting else f"restart {whom}", (command, *waiting))
    if workload.kind != "Pod":
        return Remedy("evict the pods: their owner replaces them, and disruption budgets are respected")
    if any(Verdict.DUPLICATE in row.verdicts for row in rule_input.rows):
        return Remedy("save the manifest, correct the selector in it, delete the pod and create it again")
    return Remedy(
        "save the manifest, run it through kubectl spread unmerge, and replace the pod, whose node the scheduler "
        "chooses again",
        _created_again(workload) if pods else (),
    )


def saved_unmerged(pod: ObjectRef) -> tuple[str, ...]:
    """Return the command that saves the manifest of a pod in a form that can be created again."""
    read = ("kubectl", "get", "pod", pod.name, "-n", pod.namespace, "-o", "yaml")
    return (*read, "|", "kubectl", "spread", "unmerge", "-f", "-", ">", f"{pod.name}.yaml")


def _created_again(pod: ObjectRef) -> tuple[tuple[str, ...], ...]:
    """Return the commands that create a bare pod again from its saved manifest.

    The pod is deleted only if the API would accept its successor, which has no node, so that its constraints decide.
    """
    saved, unmerged = f"{pod.name}.yaml", f"{pod.name}-unmerged.yaml"
    without_node = ("--type=merge", "-p", '{"spec":{"nodeName":null}}', "-o", "yaml")
    return (
        ("kubectl", "get", "pod", pod.name, "-n", pod.namespace, "-o", "yaml", ">", saved),
        (
            *("kubectl", "spread", "unmerge", "-f", saved, "|"),
            *("kubectl", "patch", "--local", "-f", "-", *without_node, ">", unmerged),
        ),
        (
            *("kubectl", "spread", "merge", "-f", unmerged, ">", "/dev/null", "&&"),
            *("kubectl", "replace", "--force", "-f", unmerged),
        ),
    )
