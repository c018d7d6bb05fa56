"""Drains: what does ``kubectl drain`` leave, where would it wait, and what would let it continue?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kubectl_spread.engine.answers import Fix
from kubectl_spread.engine.drains import DELETE_LOCAL_DATA, FORCE, BudgetHealth, RefusedPod
from kubectl_spread.engine.fixes import FixTrials
from kubectl_spread.engine.runs import RunResult
from kubectl_spread.phrases import listed, plural

_NEEDED_FOR: Final = {
    FORCE: ("has no controller, so nothing creates it again", "have no controller, so nothing creates them again"),
    DELETE_LOCAL_DATA: ("has an emptyDir volume, whose data is lost", "have emptyDir volumes, whose data is lost"),
}
"""What the pods have for which kubectl needs a flag: of one pod, and of several."""


def refused(runs: Sequence[RunResult]) -> list[RefusedPod]:
    """Return the pods that a drain leaves in some run, because budgets refuse their eviction."""
    return sorted({pod for each in runs for pod in each.refused})


def waits(trials: FixTrials, runs: Sequence[RunResult]) -> Iterator[tuple[str, Fix | None]]:
    """Yield where a drain waits or leaves pods, each with a fix if one is known."""
    groups: dict[tuple[str, tuple[str, ...]], list[RefusedPod]] = {}
    for pod in refused(runs):
        groups.setdefault((pod.namespace, pod.budgets), []).append(pod)
    for (namespace, budgets), pods in sorted(groups.items()):
        if len(budgets) > 1:
            yield _of_several(namespace, budgets, pods), None
            continue
        (budget,) = budgets
        health = next(each.budgets[namespace, budget] for each in runs if (namespace, budget) in each.budgets)
        text = (
            f"Without --timeout, kubectl drain waits at {_nodes(pod.node for pod in pods)}: budget {budget} in "
            f"namespace {namespace} refuses to evict {_pods(pods)}. {_why(health)}"
        )
        yield text, trials.budget(namespace, budget) if _never(health) else None
    terminating: dict[str, int] = {}
    for node, number in (item for each in runs for item in each.terminating.items()):
        terminating[node] = max(number, terminating.get(node, 0))
    if terminating:
        number = sum(terminating.values())
        stay = "stays" if number == 1 else "stay"
        until = "the node answers or is" if len(terminating) == 1 else "the nodes answer or are"
        where = f"Without --timeout, kubectl drain waits at {_nodes(terminating)}"
        yield f"{where}: {plural(number, 'pod')} {stay} Terminating until {until} deleted.", None


def _of_several(namespace: str, budgets: Sequence[str], pods: Sequence[RefusedPod]) -> str:
    return (
        f"kubectl drain cannot evict {_pods(pods)} from {_nodes(pod.node for pod in pods)}, and continues with an "
        f"error: the API server refuses the eviction of a pod that several budgets select ({listed(budgets)} in "
        f"namespace {namespace}). It continues when only one of them does."
    )


def _never(health: BudgetHealth) -> bool:
    """Tell whether a budget allows no eviction even if all of its pods are ready."""
    return health.expected <= health.least


def _why(health: BudgetHealth) -> str:
    """Return why a budget refuses an eviction, and when it would not."""
    if not health.expected:
        return (
            "It expects no pods, because it finds no controller of them, so it allows no eviction. It continues when "
            "minAvailable is a number below that of the pods, or when the pods are deleted."
        )
    if _never(health):
        return "It never allows an eviction, because all of its pods have to be ready."
    missing = health.least + 1 - health.healthy
    lacking = (
        (health.not_ready, "is not ready", "are not ready"),
        (health.waiting, "has no node", "have no node"),
    )
    parts = [f"{listed(names)} {has if len(names) == 1 else have}" for names, has, have in lacking if names]
    names = f" ({', '.join(parts)})" if parts else ""
    return (
        f"Of {plural(health.expected, 'pod')} {health.least} have to be ready, and {health.healthy} "
        f"{'is' if health.healthy == 1 else 'are'}. It continues when {missing} more "
        f"{'is' if missing == 1 else 'are'}{names}."
    )


def needs(runs: Sequence[RunResult]) -> Iterator[str]:
    """Yield the flags that ``kubectl drain`` needs to evict what the simulation evicts."""
    for flag, (single, several) in _NEEDED_FOR.items():
        pods = sorted({pod for each in runs for pod in each.needs.get(flag, ())})
        if pods:
            names = listed([f"po/{name}" for _, name in pods])
            yield f"kubectl drain needs {flag}: {names} {single if len(pods) == 1 else several}."


def _nodes(names: Iterable[str]) -> str:
    nodes = sorted(set(names))
    return f"{'node' if len(nodes) == 1 else 'nodes'} {listed(nodes)}"


def _pods(pods: Iterable[RefusedPod]) -> str:
    return listed([pod.pod for pod in pods])
