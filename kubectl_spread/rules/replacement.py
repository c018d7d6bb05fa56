"""How to replace pods: the end of many fixes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.phrases import named
from kubectl_spread.rules.rule_input import RuleInput

_RESTARTABLE: Final = ("Deployment", "StatefulSet", "DaemonSet")
_FEW: Final = 3
"""The most pods that a command names to replace only them."""


def how_to_replace(pods: Sequence[str], rule_input: RuleInput) -> str:
    """Return how to replace some pods of the workload, and how many other pods that restarts."""
    read = (
        *(pod for row in rule_input.rows for pod in row.pods),
        *(pod for group in rule_input.groups for pod in group.pods),
    )
    terminating = {pod.name: pod.terminating for pod in read}
    staying = [name for name in pods if not terminating.get(name)]
    if pods and not staying:
        return "wait until they are gone: they are terminating"
    workload = rule_input.workload
    running = sum(not is_terminating for is_terminating in terminating.values())
    restart_all = _restart(workload, running)
    if workload.kind == "Pod" or running == len(staying) or not 0 < len(staying) <= _FEW:
        return restart_all
    replacing = "its owner replaces it" if len(staying) == 1 else "their owner replaces them"
    delete = f"kubectl delete pod -n {rule_input.namespace} {' '.join(staying)} ({replacing})"
    return f"{delete}; or {restart_all}" if workload.kind in _RESTARTABLE else delete


def _restart(workload: ObjectRef, pods: int) -> str:
    """Return the safe way to replace pods: by their workload, by eviction, or by hand for a bare pod."""
    if workload.kind in _RESTARTABLE:
        number = f" all {pods} pods of the workload" if pods > 1 else " the pod"
        resource = named(workload.kind, workload.name)
        return f"restart{number}: kubectl rollout restart {resource} -n {workload.namespace}"
    if workload.kind == "Pod":
        return "save the manifest, run it through kubectl spread unmerge, delete the pod and create it again"
    return "evict them; their owner replaces them and disruption budgets hold"
