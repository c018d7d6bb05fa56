"""While pods are created, changed and deleted, every report is one state of the pods and has each pod once."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.controlplane.client import MERGE_PATCH, ApiClient, ApiError
from tests.controlplane.cluster import ControlPlane
from tests.e2e import faulty
from tests.e2e.faulty import Faulty
from tests.e2e.spread import Report, Spread

pytestmark = pytest.mark.e2e

NAMESPACE = "motion"
STILL = [f"still-{number:02}" for number in range(20)]
MOVING = [f"moving-{number:02}" for number in range(40)]
POSSIBLE = {"merged", "stale-label", "removed-label"}
"""The verdicts that are possible for a pod that this apiserver merged: its label stays, changes or is removed."""
REPORTS = 12


@pytest.fixture(scope="module")
def moving(faulty_cluster: ControlPlane) -> Iterator[ControlPlane]:
    api = faulty_cluster.api
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    api.create_all(faulty.bound(name, "a1", NAMESPACE) for name in STILL)
    yield faulty_cluster
    api.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods?gracePeriodSeconds=0")


@contextmanager
def motion(api: ApiClient) -> Iterator[Counter[str]]:
    """Create, relabel and delete random pods until the end of the ``with`` block; yield the number of each edit."""
    ended, edits = threading.Event(), Counter[str]()
    threads = [threading.Thread(target=_move, args=(api, seed, ended, edits)) for seed in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield edits
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _move(api: ApiClient, seed: int, ended: threading.Event, edits: Counter[str]) -> None:
    chance = random.Random(seed)
    while not ended.is_set():
        name, act = chance.choice(MOVING), chance.choice(["create", "relabel", "delete"])
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}"
        # Another thread may have edited the pod first.
        with suppress(ApiError):
            match act:
                case "create":
                    api.create(faulty.bound(name, chance.choice(["a1", "b1", "c1"]), NAMESPACE))
                case "relabel":
                    revision = chance.choice(["r1", "r2", None])
                    api.patch(path, {"metadata": {"labels": {"rev": revision}}}, MERGE_PATCH)
                case "delete":
                    api.request("DELETE", f"{path}?gracePeriodSeconds=0")
            edits[act] += 1


def check(spread: Spread) -> Report:
    answer = spread("check", "-n", NAMESPACE, "-o", "json", "--chunk-size=3", "--fail-on=never")
    assert (answer.status, answer.stderr) == (0, "")
    return answer.report


def test_reports_are_complete_while_pods_change(moving: ControlPlane, behind: Faulty) -> None:
    """Pods that do not change are in every report, no pod is in a report twice, and every verdict is possible."""
    seen = Counter[str]()
    with motion(moving.api) as edits:
        for _ in range(REPORTS):
            report = check(behind.directly())
            names = [name for group in report["groups"] for name in group["pods"]]
            assert len(names) == len(set(names)) == report["summary"]["pods"]
            assert set(STILL) <= set(names)
            verdicts = Counter[str]()
            for row in report["constraints"]:
                verdicts.update(row["verdicts"])
                assert row["podCount"] == sum(row["verdicts"].values())
            assert verdicts.keys() <= POSSIBLE
            assert verdicts.total() == len(names)
            seen += verdicts
    assert min(edits[act] for act in ("create", "relabel", "delete")) > 10
    assert seen.keys() == POSSIBLE


def test_a_report_is_one_state(moving: ControlPlane, behind: Faulty) -> None:
    """The reported pods are those of a list at the revision that the report names."""
    with motion(moving.api):
        report = check(behind.directly())
    revision = report["cluster"]["resourceVersions"]["pods"]
    query = {"resourceVersion": revision, "resourceVersionMatch": "Exact"}
    listed = moving.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods", **query)["items"]
    names = sorted(name for group in report["groups"] for name in group["pods"])
    assert names == sorted(pod["metadata"]["name"] for pod in listed)
