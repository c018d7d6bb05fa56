"""Capacity: the resources that nodes have left, and the counting groups whose evaluation asked for them.

Any pod of the cluster takes resources of its node. A counting group is evaluated again only if one of the answers that
it got would be another one now.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from kubectl_spread.audit.snapshot.capacity import NodeCapacity
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.scheduler import resources
from kubectl_spread.kube.scheduler.resources import Amounts

_T = TypeVar("_T", bound=Hashable)
"""Who asks: a counting group."""


class Question(msgspec.Struct, frozen=True):
    """What a node lacks for some requests; with ``most``, how many such pods it takes, up to that number."""

    requests: frozenset[tuple[str, int]]
    most: int | None


class _Answers(msgspec.Struct, Generic[_T], eq=False):
    """The current answers to one question by node, and the nodes that each asker asked, as a bitmap."""

    requests: Amounts
    by_node: dict[str, object] = msgspec.field(default_factory=dict)
    asked: dict[_T, bytearray] = msgspec.field(default_factory=dict)


class ClusterCapacity(Generic[_T]):
    """The resources of all nodes, and the answers that were given."""

    def __init__(self) -> None:
        """Start without nodes and pods."""
        self._totals: dict[str, dict[str, int]] = {}
        self._now = _CurrentCapacity((), self._totals)
        self._answers: dict[Question, _Answers[_T]] = {}
        self._questions: dict[_T, set[Question]] = {}
        self._changed: set[str] = set()
        self._numbers: dict[str, int] = {}

    def set_nodes(self, nodes: Iterable[Node]) -> None:
        """Take other nodes; all answers are forgotten."""
        listed = list(nodes)
        self._now = _CurrentCapacity(listed, self._totals)
        self._numbers = {node.metadata.name: number for number, node in enumerate(listed)}
        self._answers.clear()
        self._questions.clear()
        self._changed.clear()

    def set_node(self, node: Node) -> None:
        """Take other resources of a node."""
        self._now.set_node(node)
        self._changed.add(node.metadata.name)

    def bind(self, node: str, requests: Amounts | None) -> None:
        """Add the requests of a pod to its node."""
        self._changed.add(node)
        resources.add(self._totals.setdefault(node, {}), requests or {})

    def unbind(self, node: str, requests: Amounts | None) -> None:
        """Subtract the requests of a pod that was on a node."""
        self._changed.add(node)
        left = self._totals[node]
        resources.subtract(left, requests or {})
        if not any(left.values()):
            del self._totals[node]

    def asked_by(self, asker: _T) -> NodeCapacity:
        """Return the capacity as one asker sees it, with each question stored."""
        return _AskedCapacity(self, asker)

    def forget(self, asker: _T) -> None:
        """Forget the questions of a counting group."""
        for question in self._questions.pop(asker, ()):
            answers = self._answers[question]
            del answers.asked[asker]
            if not answers.asked:
                del self._answers[question]

    def answered_differently(self) -> Iterator[_T]:
        """Yield the askers of which an answer differs since the last call; each may come several times."""
        for question, answers in self._answers.items():
            for node in self._changed & answers.by_node.keys():
                answer = self._ask(question, answers.requests, node)
                if answer != answers.by_node[node]:
                    answers.by_node[node] = answer
                    byte, bit = divmod(self._numbers[node], 8)
                    yield from (asker for asker, nodes in answers.asked.items() if nodes[byte] >> bit & 1)
        self._changed.clear()

    def answer(self, asker: _T, question: Question, requests: Amounts, node: str) -> object:
        """Return the answer of a node, and store who asked."""
        answers = self._answers.get(question)
        if answers is None:
            answers = self._answers[question] = _Answers(requests)
        nodes = answers.asked.get(asker)
        if nodes is None:
            nodes = answers.asked[asker] = bytearray(len(self._numbers) // 8 + 1)
            self._questions.setdefault(asker, set()).add(question)
        byte, bit = divmod(self._numbers[node], 8)
        nodes[byte] |= 1 << bit
        if node not in answers.by_node:
            answers.by_node[node] = self._ask(question, requests, node)
        return answers.by_node[node]

    def _ask(self, question: Question, requests: Amounts, node: str) -> object:
        if question.most is None:
            return self._now.lacks(requests, node)
        return self._now.holds(requests, node, most=question.most)


class _CurrentCapacity(NodeCapacity):
    """The capacity of nodes with sums that change."""

    def __init__(self, nodes: Iterable[Node], totals: Mapping[str, Amounts]) -> None:
        super().__init__(nodes, {})
        self._totals = totals

    def requested(self, node: str) -> Amounts:
        """Return the sum of the known requests of a node's pods."""
        return self._totals.get(node, {})


class _AskedCapacity(NodeCapacity, Generic[_T]):
    """The capacity of nodes as one evaluation sees it; it stores each question."""

    def __init__(self, capacity: ClusterCapacity[_T], asker: _T) -> None:
        super().__init__((), {})
        self._of_cluster = capacity
        self._asker = asker
        self._amounts: dict[int, tuple[Amounts, frozenset[tuple[str, int]]]] = {}

    def lacks(self, requests: Amounts | None, node: str) -> tuple[str, ...]:
        """Return the resources that a node lacks."""
        if requests is None:
            return ()
        lacking: tuple[str, ...] = self._answer(requests, node, None)
        return lacking

    def holds(self, requests: Amounts | None, node: str, *, most: int) -> int:
        """Return the number of pods that still fit on a node, up to ``most``."""
        if requests is None:
            return most
        held: int = self._answer(requests, node, most)
        return held

    def _answer(self, requests: Amounts, node: str, most: int | None) -> Any:
        stored = self._amounts.get(id(requests))
        if stored is None:
            # The amounts are stored too, so that no other object gets their identity.
            stored = self._amounts[id(requests)] = (requests, frozenset(requests.items()))
        return self._of_cluster.answer(self._asker, Question(stored[1], most), requests, node)
