"""The nodes where the next pods may go, one after another."""

from __future__ import annotations

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.explain.replicas import NextPods, Step
from kubectl_spread.phrases import plural, some
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Terminal, heading

_NAMED = 8


def replicas(explanation: Explanation, terminal: Terminal) -> str:
    """Return a line for each pod that --replicas adds."""
    return "\n".join(_of_group(next_pods, terminal) for next_pods in explanation.next_pods)


def _of_group(next_pods: NextPods, terminal: Terminal) -> str:
    keys = " / ".join(words.safe(key) for key in next_pods.topology_keys)
    title = heading(f"next pods like {words.safe(next_pods.pods[0])}, by {keys}", terminal)
    lines = [f"  +{number}  {_step(step)}" for number, step in enumerate(next_pods.steps, start=1)]
    lines.append("  by taints, node affinity and spread alone; each is assumed to go where there are fewest")
    return title + "".join(f"{line}\n" for line in lines)


def _step(step: Step) -> str:
    if not step.allowed:
        return "no node"
    domains = some([words.safe(domain) for domain in step.allowed], _NAMED)
    return f"{domains} ({plural(step.nodes, 'node')}); assumed {words.safe(step.assumed)}"
