"""Evaluators: equal pod classes share one evaluation, and different ones do not."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

import pytest

from kubectl_spread.audit.evaluation.evaluators import ClassEvaluation, Evaluator
from tests.audits import audit
from tests.builders import ZONE, Json, affinity, constraint, node_json, pod_json, requirement, selector, term

NODES: Final = (node_json("a1"), node_json("b1"), node_json("c1", taints=[{"key": "gpu", "effect": "NoSchedule"}]))
APART: Final = term(key=ZONE, selects=selector({"tier": "front"}, requirement("rev", "NotIn", "r1")), mismatch=["rev"])
PLACES: Final[tuple[Json, ...]] = (
    {},
    {"nodeSelector": {ZONE: "a"}},
    {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
    {"schedulerName": "another"},
    {"nodeName": "a1"},
    {"affinity": affinity("podAntiAffinity", APART)},
)


def pods() -> list[Json]:
    """Return pods that differ in labels that a term names, in one that none names, and in where they may be."""
    spread = constraint(match=["rev", ZONE], nodeTaintsPolicy="Honor")
    manifests = []
    for number, (app, rev, tier, other, place) in enumerate(
        product(("web", "db"), ("r1", "r2", None), ("front", "back"), ("x", "y"), PLACES)
    ):
        labels = {"app": app, "tier": tier, "other": other, ZONE: "a"} | ({} if rev is None else {"rev": rev})
        manifests.append(pod_json(f"p{number}", labels=labels, constraints=[spread], owner="ReplicaSet/web", **place))
    return manifests


def facts(evaluation: ClassEvaluation) -> tuple[object, ...]:
    """Return the values of an evaluation; its counts compare by identity."""
    counts = [
        (spread.constraint, dict(spread.domains.value_of), dict(spread.match_num), spread.self_match_num)
        for spread in evaluation.spreads
        if spread is not None
    ]
    return evaluation.verdicts, evaluation.effective, evaluation.node_answers, evaluation.lower_bound, counts


def test_a_shared_evaluation_equals_that_of_each_class_alone() -> None:
    evaluation = audit(*pods(), *NODES)
    assert len(evaluation.pods) == 144
    for pod in evaluation.pods:
        alone = Evaluator(evaluation.snapshot, evaluation.context, nodes="listed").of(pod.pod_class)
        assert facts(evaluation.evaluator.of(pod.pod_class)) == facts(alone)


def test_pods_of_one_group_or_row_are_placed_alike() -> None:
    """Pods of one owner share a group if they differ only in a label that no term names."""
    evaluation = audit(*pods(), *NODES)
    groups = [{pod.name for pod in group.pods} for group in evaluation.groups]
    assert len(groups) > len(PLACES)
    for group in evaluation.groups:
        places = {(pod.pod_class.scheduler_name, bool(pod.pod_class.placement.node_selector)) for pod in group.pods}
        assert len(places) == 1
        assert len({bool(pod.pod_class.placement.tolerations) for pod in group.pods}) == 1
        assert len({len(pod.pod_class.terms) for pod in group.pods}) == 1
    for row in (row for row in evaluation.rows if row.term.spread):
        names = {pod.name for pod in row.pods}
        assert names == set().union(*(group for group in groups if group & names))


@pytest.mark.parametrize(
    ("labels", "shared"),
    [({"other": "y"}, True), ({"rev": "r2"}, False), ({"app": "db"}, False)],
    ids=["a label that no term names", "a key to match", "a label that the selector names"],
)
def test_classes_share_counts_unless_they_differ_in_a_label_that_a_term_names(labels: Json, shared: bool) -> None:
    first: dict[str, Any] = {"app": "web", "rev": "r1", "other": "x"}
    both = [
        pod_json(name, labels=first | more, constraints=[constraint(match=["rev"])])
        for name, more in (("p", {}), ("q", labels))
    ]
    evaluation = audit(*both, *NODES)
    p, q = (evaluation.evaluator.of(pod.pod_class) for pod in evaluation.pods)
    assert p.pod_class is not q.pod_class
    assert (p.spreads is q.spreads) is shared
