"""Views: shapes share what is worked out of what they have in common, and nothing else."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

import pytest

from kubectl_spread.audit.evaluation.evaluators import Evaluator
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
    actual = []
    for number, (app, rev, tier, other, place) in enumerate(
        product(("web", "db"), ("r1", "r2", None), ("front", "back"), ("x", "y"), PLACES)
    ):
        labels = {"app": app, "tier": tier, "other": other, ZONE: "a"} | ({} if rev is None else {"rev": rev})
        actual.append(pod_json(f"p{number}", labels=labels, constraints=[spread], owner="ReplicaSet/web", **place))
    return actual


def test_what_is_shared_is_what_each_shape_would_have_alone() -> None:
    evaluation = audit(*pods(), *NODES)
    assert len(evaluation.pods) == 144
    for pod in evaluation.pods:
        alone = Evaluator(evaluation.snapshot, evaluation.context, nodes="listed").of(pod.pod_class)
        assert evaluation.evaluator.of(pod.pod_class) == alone


def test_groups_and_rows_hold_what_is_placed_alike_alone() -> None:
    """Each pod of one owner is grouped with those that differ from it in no more than a label that no term names."""
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
def test_labels_that_no_term_names_make_no_difference(labels: Json, shared: bool) -> None:
    first: dict[str, Any] = {"app": "web", "rev": "r1", "other": "x"}
    both = [
        pod_json(name, labels=first | more, constraints=[constraint(match=["rev"])])
        for name, more in (("p", {}), ("q", labels))
    ]
    evaluation = audit(*both, *NODES)
    item, other = (evaluation.evaluator.of(pod.pod_class) for pod in evaluation.pods)
    assert item.pod_class is not other.pod_class
    assert (item.spreads is other.spreads) is shared
