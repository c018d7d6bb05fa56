"""Lists of a live server that are forbidden or not what was asked for: nothing of them is an empty list."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest

from kubectl_spread.cli import formats
from kubectl_spread.run import nodeautoscalers
from tests.builders import Json
from tests.cli import test_identity
from tests.cli.test_identity import LISTS, Routed
from tests.cli.test_requests import check
from tests.sources.server import Reply, Request, status


class WithoutDeployments(Routed):
    """An API server that forbids listing Deployments."""

    def next(self, request: Request) -> Reply:
        reply = super().next(request)
        return status(403, "Forbidden", "no") if request.path.endswith("/deployments") else reply


@pytest.fixture
def no_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    lists: dict[str, tuple[str, list[Json]]] = {plural: (kind, []) for plural, (kind, _) in LISTS.items()}
    monkeypatch.setattr(test_identity, "LISTS", lists)


@pytest.mark.parametrize("form", ["table", "wide", "markdown"])
def test_the_last_line_says_first_what_was_not_read(form: str, tmp_path: Path) -> None:
    """In Markdown that is the headline, and the conclusion is below it."""
    text = check(WithoutDeployments, tmp_path, "-o", form).stdout
    (end,) = re.findall(r"^(.*)No (?:errors or warnings|findings)", text, re.MULTILINE | re.DOTALL)
    first = "\n\n**Not read: 1 forbidden list.**\n\n" if form == "markdown" else "\nNot read: 1 forbidden list. "
    assert end.endswith(first)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param((), 2, id="all rules"),
        pytest.param(("--fail-on", "never"), 2, id="--fail-on never"),
        pytest.param(("--ignore", "SPR5"), 2, id="rules on templates"),
        pytest.param(("--select", "SPR5"), 2, id="rules on whole workloads"),
        pytest.param(("--select", "SPR1"), 0, id="rules on selectors"),
        pytest.param(("--select", "SPR1,SPR3"), 0, id="rules on pods"),
    ],
)
def test_a_kind_that_may_not_be_listed_is_an_error_where_a_rule_asks_about_its_objects(
    arguments: tuple[str, ...], expected: int, tmp_path: Path
) -> None:
    outcome = check(WithoutDeployments, tmp_path, *arguments)
    line = "this user may not list deployments.apps: templates and pods that are refused are missed"
    error = f"error: {line} (--select SPR1,SPR3 asks about pods alone)"
    assert (outcome.exit_code, outcome.stderr.splitlines()) == (expected, [error if expected else line])


@pytest.mark.usefixtures("no_objects")
@pytest.mark.parametrize("form", sorted(name for name, each in formats.FORMATS.items() if each.silent))
def test_an_empty_scope_that_was_not_read_in_full_is_not_called_empty(form: str, tmp_path: Path) -> None:
    outcome = check(WithoutDeployments, tmp_path, "-o", form, "--select", "SPR1")
    assert "No resources found" not in outcome.stderr
    assert outcome.stderr.splitlines()[-1] == (
        "Not read: 1 forbidden list. There are no pods and no pod templates in what was read."
    )


@pytest.mark.usefixtures("no_objects")
def test_an_empty_scope_is_called_empty(tmp_path: Path) -> None:
    assert check(Routed, tmp_path).stderr == "No resources found in default namespace.\n"


@pytest.mark.parametrize(
    ("resource", "item", "problem"),
    [
        ("pods", {"metadata": {"name": "web", "namespace": "default"}}, "spec: is missing"),
        ("deployments", {"metadata": {"name": "web", "namespace": "default"}}, "spec: is missing"),
    ],
)
def test_an_item_that_would_vanish_is_an_error(
    resource: str, item: Json, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_identity, "LISTS", {**LISTS, resource: (LISTS[resource][0], [item])})
    outcome = check(Routed, tmp_path, "-o", "json")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert f"Server returned an unexpected response: {problem} (the list of {resource} " in outcome.stderr


class WithoutItems(Routed):
    """An API server whose list of pods has no items."""

    def next(self, request: Request) -> Reply:
        reply = super().next(request)
        if not request.path.endswith("/pods"):
            return reply
        body = json.loads(reply.body)
        del body["items"]
        return Reply(body=json.dumps(body).encode())


def test_a_list_without_items_is_not_an_empty_one(tmp_path: Path) -> None:
    outcome = check(WithoutItems, tmp_path, "-o", "json")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert "Server returned an unexpected response: items: is missing (the list of pods" in outcome.stderr


class WithoutNodePools(Routed):
    """Forbids what node autoscalers have."""

    def next(self, request: Request) -> Reply:
        resource = request.path.rpartition("/")[2]
        if resource in ("nodepools", "cluster-autoscaler-status"):
            return status(403, "Forbidden", "no")
        return super().next(request)


class SilentAboutNodePools(Routed):
    """Never answers about NodePools."""

    def next(self, request: Request) -> Reply:
        if request.path.endswith("/nodepools"):
            ended.wait(30)
        return super().next(request)


ended = threading.Event()


@pytest.mark.parametrize(("selected", "expected"), [("SPR316,SPR317", 2), ("SPR3", 0)])
def test_node_pools_that_may_not_be_listed_are_an_error_where_nothing_else_is_asked(
    selected: str, expected: int, tmp_path: Path
) -> None:
    outcome = check(WithoutNodePools, tmp_path, "--select", selected)
    line = (
        "error: this user may not list nodepools.karpenter.sh and get the ConfigMap cluster-autoscaler-status: "
        "answers about new nodes are not complete"
    )
    assert (outcome.exit_code, outcome.stderr.splitlines()) == (expected, [line] if expected else [])


def test_a_report_does_not_wait_for_node_pools_that_do_not_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodeautoscalers, "_LONGEST", 0.3)
    ended.clear()
    try:
        outcome = check(SilentAboutNodePools, tmp_path, "--severity", "info")
    finally:
        ended.set()
    assert outcome.exit_code == 0
    assert "no answer about NodePools and cluster-autoscaler in 0 seconds" in outcome.stderr
