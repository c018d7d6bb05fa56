"""One snapshot is evaluated with several behaviours, each with its own refusals and merges."""

from __future__ import annotations

import pytest

from kubectl_spread.audit.evaluation.evaluate import Audit, evaluate
from kubectl_spread.audit.merge.admission import may_depend_on_merge
from kubectl_spread.audit.merge.verdicts import ServerFacts
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube import features
from kubectl_spread.kube.features import Gate
from tests.audits import as_json, deployment, row, snapshot
from tests.builders import Json, constraint, pod_json, selector

R1 = {"app": "web", "rev": "r1"}
KEYED = constraint(match=["rev"])
OVERLAP = constraint(match=["rev"], selects=selector({"rev": "r1"}))


def evaluated(read: Snapshot, *, merges: bool) -> Audit:
    gates = features.gates(37, {} if merges else {Gate.SELECTOR_MERGE: False})
    return evaluate(read, ServerFacts(features.behaviour(37, gates), gates_known=True), nodes="none")


def codes(evaluation: Audit) -> list[str]:
    return [finding["code"] for finding in as_json(evaluation)["findings"]]


def test_the_refusal_of_a_template_follows_the_behaviour_of_each_evaluation() -> None:
    """The gates of the API server are read after the objects."""
    read = snapshot(deployment(labels=R1, constraints=[OVERLAP]))
    assert codes(evaluated(read, merges=True)) == ["SPR202"]
    assert codes(evaluated(read, merges=False)) == ["SPR201"]
    assert codes(evaluated(read, merges=True)) == ["SPR202"]


def test_the_merge_of_a_manifest_follows_the_behaviour_of_each_evaluation() -> None:
    read = snapshot(pod_json(labels=R1, constraints=[KEYED], stored=False))
    merged = [{"key": "rev", "operator": "In", "values": ["r1"]}]
    for merges in (True, False, True):
        stored = row(evaluated(read, merges=merges))["selector"]["stored"]
        assert stored.get("matchExpressions", []) == (merged if merges else [])


def test_a_refused_manifest_is_evaluated_as_written() -> None:
    read = snapshot(pod_json(labels=R1, constraints=[OVERLAP], stored=False))
    evaluation = evaluated(read, merges=True)
    assert codes(evaluation) == ["SPR201"]
    assert row(evaluation)["selector"]["stored"] == {"matchLabels": {"rev": "r1"}}


@pytest.mark.parametrize("merges", [True, False])
def test_an_evaluation_does_not_change_the_snapshot(*, merges: bool) -> None:
    read = snapshot(pod_json(labels=R1, constraints=[KEYED], stored=False), pod_json("stored", constraints=[KEYED]))
    before = list(read.pods)
    evaluation = evaluated(read, merges=merges)
    assert list(map(id, read.pods)) == list(map(id, before))
    assert [pod.name for pod in evaluation.everyone] == [pod.name for pod in before]
    stored = next(pod for pod in evaluation.everyone if pod.name == "stored")
    assert any(stored is pod for pod in before)


@pytest.mark.parametrize(
    ("template_constraint", "depends"),
    [
        pytest.param(OVERLAP, True, id="a key in both"),
        pytest.param(constraint(match=["rev", "rev"]), True, id="a key listed twice"),
        pytest.param(KEYED, False, id="a key that is merged"),
        pytest.param({**KEYED, "labelSelector": None}, False, id="no selector"),
        pytest.param(constraint(), False, id="no keys"),
    ],
)
def test_the_answer_to_a_template_depends_on_the_merge_if_a_constraint_names_a_key_twice(
    template_constraint: Json, *, depends: bool
) -> None:
    (template,) = snapshot(deployment(labels=R1, constraints=[template_constraint])).templates
    assert may_depend_on_merge(template) is depends
