"""The nodes where one more pod of each group may go."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UnsetType

from kubectl_spread.explain.explanation import Explanation
from kubectl_spread.explain.placing import Placing
from kubectl_spread.kube.scheduler.podtopologyspread.scoring import WEIGHT
from kubectl_spread.render import words
from kubectl_spread.render.sections.names import answer, nodes
from kubectl_spread.render.terminal import Terminal, heading


def placing(explanation: Explanation, terminal: Terminal) -> str:
    """Return a block for each group without pending pods, which have a section of their own."""
    if isinstance(explanation.placing, UnsetType):
        return ""
    waiting_pods = {name for waiting in explanation.waiting for name in waiting.pods}
    return "\n".join(_group(group, terminal) for group in explanation.placing if waiting_pods.isdisjoint(group.pods))


def _group(group: Placing, terminal: Terminal) -> str:
    title = heading(f"next pod like {words.safe(group.pods[0])}", terminal)
    unknown = group.unknown if isinstance(group.unknown, list) else ()
    ranked = "" if isinstance(group.scores, UnsetType) else _ranking(group.scores)
    return f"{title}{answer(group.allowed, group.refused, unknown, terminal, ranked)}"


def _ranking(scores: Mapping[str, int]) -> str:
    """Return the nodes by their score, the highest first."""
    by_score: dict[int, list[str]] = {}
    for name, score in scores.items():
        by_score.setdefault(score, []).append(name)
    ranks = [f"{score} for {nodes(by_score[score])}" for score in sorted(by_score, reverse=True)]
    return f"PodTopologySpread scores {', '.join(ranks)} (weight {WEIGHT} by default; other plugins score too)"
