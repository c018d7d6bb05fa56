"""For one more pod of every group, the report counts as the real scheduler does.

For each group of a varied cluster a clone of one of its pods is created: first at a scheduling gate, with the labels
that pod had when it was created, so that the apiserver merges its selectors again; then its labels are brought to what
they are now, and the gate is lifted. The scheduler runs with ``-v=5``: for each node that its spread plugin refuses it
logs matchNum, selfMatchNum, minMatchNum and maxSkew, and for a pod that it binds the number of feasible nodes. All of
that must be what the report says. The clone is deleted before the next one comes, so nothing that is counted changes.
"""

from __future__ import annotations

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.e2e.clones import Comparison, compare
from tests.e2e.spread import Plugin, Report

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def before(varied_cluster: ControlPlane, plugin: Plugin) -> Report:
    """Return the report before any clone."""
    answer = plugin.on(varied_cluster)("check", "-A", "-o", "json")
    assert answer.status in (0, 1), answer.stderr
    return answer.report


@pytest.fixture(scope="module")
def comparisons(varied_cluster: ControlPlane, before: Report) -> list[Comparison]:
    """Return the comparison of the report with the scheduler's decision for every group."""
    return compare(varied_cluster, before)


def test_refused_nodes_and_their_numbers_are_those_of_the_log(comparisons: list[Comparison]) -> None:
    """Node by node: matchNum, selfMatchNum, minMatchNum and maxSkew, or the missing label."""
    wrong = {
        comparison.group: comparison.expected.refusals ^ comparison.decision.refusals
        for comparison in comparisons
        if comparison.expected.refusals != comparison.decision.refusals
    }
    assert not wrong


def test_the_allowed_nodes_are_the_feasible_nodes(comparisons: list[Comparison]) -> None:
    """The numbers of both are equal, and the chosen node is allowed."""
    wrong = {
        comparison.group: (sorted(comparison.expected.feasible), comparison.decision.feasible, comparison.decision.node)
        for comparison in comparisons
        if len(comparison.expected.feasible) != comparison.decision.feasible
        or (comparison.decision.node or None) not in (comparison.expected.feasible or {None})
    }
    assert not wrong


def test_clones_are_merged_as_the_pods_were(comparisons: list[Comparison]) -> None:
    """The authored selector, merged with the labels at creation, is the stored selector."""
    assert [comparison.group for comparison in comparisons if not comparison.stored_alike] == []


def test_the_node_numbers_of_a_group_follow_from_its_rows(comparisons: list[Comparison]) -> None:
    """Over all nodes, usable or not, the numbers of a group are those of its constraints; the first failure decides."""
    wrong = {comparison.group: (comparison.expected.everywhere, comparison.answer) for comparison in comparisons}
    assert {group: pair for group, pair in wrong.items() if pair[0] != pair[1]} == {}


def test_the_clones_leave_the_cluster_unchanged(
    comparisons: list[Comparison], before: Report, varied_cluster: ControlPlane, plugin: Plugin
) -> None:
    """The counts are the same for each clone."""
    after = plugin.on(varied_cluster)("check", "-A", "-o", "json").report
    assert comparisons
    assert after["constraints"] == before["constraints"]
    assert after["groups"] == before["groups"]


def test_enough_was_compared(comparisons: list[Comparison], before: Report) -> None:
    """The comparison cannot pass by comparing nothing."""
    refusals = [refusal for comparison in comparisons for refusal in comparison.decision.refusals]
    counted = [refusal for refusal in refusals if refusal.match_num is not None]
    bound = [comparison for comparison in comparisons if comparison.decision.node]
    figures = (
        f"{len(comparisons)} clones of {len(before['groups'])} groups, {len(bound)} bound; {len(refusals)} refusals "
        f"of nodes, {len(counted)} with numbers, {len(set(counted))} different"
    )
    print(figures)
    assert len(comparisons) >= 40, figures
    assert 15 <= len(bound) <= len(comparisons) - 6, figures
    assert len(counted) >= 100, figures
    assert len(refusals) - len(counted) >= 20, figures
    for number in (0, 1):
        assert any(refusal.self_match_num == number for refusal in counted), figures
    assert any(refusal.min_match_num for refusal in counted), figures
