"""Where the next pods may go, one after another."""

from __future__ import annotations

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.explain.replicas import NextPods, Step
from kubectl_spread.phrases import plural, some
from kubectl_spread.render import words
from kubectl_spread.render.terminal import Terminal, heading

_NAMED = 8


def replicas(found: Explanation, terminal: Terminal) -> str:
    """Return a line for each pod that --replicas adds."""
    return "\n".join(_of_group(one, terminal) for one in found.next_pods)


def _of_group(found: NextPods, terminal: Terminal) -> str:
    keys = " / ".join(words.safe(key) for key in found.topology_keys)
    title = heading(f"next pods like {words.safe(found.pods[0])}, by {keys}", terminal)
    lines = [f"  +{number}  {_step(step)}" for number, step in enumerate(found.steps, start=1)]
    lines.append("  by taints, node affinity and spread alone; each is assumed to go where there are fewest")
    return title + "".join(f"{line}\n" for line in lines)


def _step(step: Step) -> str:
    if not step.allowed:
        return "no node"
    domains = some([words.safe(domain) for domain in step.allowed], _NAMED)
    return f"{domains} ({plural(step.nodes, 'node')}); assumed {words.safe(step.assumed)}"
