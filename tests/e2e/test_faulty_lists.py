"""Lists with pages that do not fit together are read again or refused; a part of a list is never reported."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable

import pytest

from tests.builders import Json
from tests.controlplane.cluster import ControlPlane
from tests.e2e.faulty import INCOMPLETE, PODS, UNEXPECTED, Faulty, assert_complete, assert_refused
from tests.faults import steps
from tests.faults.proxy import Exchange, Step, passed

pytestmark = pytest.mark.e2e

EXPIRED = "Error from server (Expired): The provided continue parameter is too old"


@pytest.fixture(scope="module")
def compacted(faulty_cluster: ControlPlane) -> None:
    """Compact etcd, as the apiserver does every five minutes, and empty the cache of the apiserver."""
    revision = faulty_cluster.api.get("/api/v1/pods", limit="1")["metadata"]["resourceVersion"]
    body = json.dumps({"revision": revision, "physical": True}).encode()
    urllib.request.urlopen(f"{faulty_cluster._etcd.url}/v3/kv/compaction", data=body, timeout=10).close()
    faulty_cluster.restart_apiserver()


def test_a_list_that_expires_is_read_again(behind: Faulty, compacted: None) -> None:
    """It is read from its beginning, which is reported."""
    behind.proxy.script("pods", passed, passed, steps.expired)
    answer = behind.check()
    assert_complete(answer)
    assert answer.error.startswith(EXPIRED)
    assert answer.error.endswith(": the list of pods is read again from its beginning")
    assert len(behind.proxy.requests_for("pods")) == 3 + 5


def test_a_list_that_expires_twice_is_refused(behind: Faulty, compacted: None) -> None:
    behind.proxy.script("pods", passed, passed, steps.expired, passed, passed, steps.expired)
    assert_refused(behind.check(), EXPIRED)


def test_json_instead_of_protobuf_is_read(behind: Faulty) -> None:
    behind.proxy.script("pods", *[steps.edited(lambda _: None)] * 5)
    assert_complete(behind.check())
    behind.proxy.script("pods", passed, steps.edited(lambda _: None))
    assert_complete(behind.check())


def test_an_empty_page_is_not_the_end(behind: Faulty) -> None:
    """A page without objects may have a token."""
    behind.proxy.script("pods", steps.edited(steps.no_objects))
    assert_complete(behind.check())
    assert len(behind.proxy.requests_for("pods")) == 6


def test_a_page_that_repeats_its_token_is_refused(behind: Faulty) -> None:
    """The token leads to the same page again."""
    behind.proxy.script("pods", passed, *[_with_token(behind)] * 100)
    assert_refused(behind.check(), f"{UNEXPECTED}the API server repeated a continue token", INCOMPLETE)


def _with_token(behind: Faulty) -> Callable[..., None]:
    def repeat(document: Json) -> None:
        document["metadata"]["continue"] = behind.proxy.requests_for("pods")[1].token

    return steps.edited(repeat)


def _of_another_revision(document: Json) -> None:
    document["metadata"]["resourceVersion"] = "1"


def test_pages_of_two_states_are_read_again_once_and_then_refused(behind: Faulty) -> None:
    """A pod may be on both pages or on neither."""
    behind.proxy.script("pods", passed, steps.edited(_of_another_revision))
    answer = behind.check()
    assert_complete(answer)
    assert answer.error.startswith(f"{UNEXPECTED}pages of the revisions ")
    behind.proxy.script("pods", *[passed, steps.edited(_of_another_revision)] * 2)
    assert_refused(behind.check(), f"{UNEXPECTED}pages of the revisions ")


def _wrong_type(document: Json) -> None:
    document["items"][3]["spec"]["nodeName"] = 5


def test_a_pod_with_a_field_of_another_type_is_refused(behind: Faulty) -> None:
    behind.proxy.script("pods", passed, steps.edited(_wrong_type))
    assert_refused(behind.check(), f"{UNEXPECTED}spec.nodeName: expected string, got integer", INCOMPLETE)


def _of_nodes(exchange: Exchange) -> None:
    exchange.send(exchange.forward("/api/v1/nodes"))


def _of_kind(kind: str, version: str = "v1") -> Step:
    return steps.edited(lambda document: document.update(kind=kind, apiVersion=version, items=[]))


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        pytest.param(_of_nodes, "NodeList (v1)", id="nodes, in protobuf"),
        pytest.param(_of_kind("NodeList"), "NodeList (v1)", id="nodes, in JSON"),
        pytest.param(
            _of_kind("PartialObjectMetadataList", "meta.k8s.io/v1"),
            "PartialObjectMetadataList (meta.k8s.io/v1)",
            id="metadata alone",
        ),
        pytest.param(_of_kind("Status"), "Status (v1)", id="a Status"),
    ],
)
def test_a_list_of_another_kind_is_refused(behind: Faulty, step: Step, kind: str) -> None:
    """None of these is an empty list of pods."""
    behind.proxy.script("pods", step)
    assert_refused(behind.check(), f"{UNEXPECTED}{kind} instead of PodList (v1)", INCOMPLETE)
    behind.proxy.script("pods", passed, step)
    assert_refused(behind.check(), f"{UNEXPECTED}{kind} instead of PodList (v1)", INCOMPLETE)


def _two_fewer(document: Json) -> None:
    del document["items"][:2]


def test_a_list_that_is_shorter_than_it_says_is_refused(behind: Faulty) -> None:
    """A list of nodes says how many nodes follow a page, and a proxy removes some of these."""
    behind.proxy.script("nodes", passed, steps.edited(_two_fewer))
    answer = behind.check("--chunk-size=3")
    assert_refused(answer, f"{UNEXPECTED}4 objects in a list of 6 (the list of nodes is not complete)")
    behind.proxy.script("nodes")
    assert_complete(behind.check("--chunk-size=3"))


def _without_nodes(document: Json) -> None:
    document["items"].clear()


def _of_other_nodes(document: Json) -> None:
    for node in document["items"]:
        node["metadata"]["name"] = f"other-{node['metadata']['name']}"


@pytest.mark.parametrize(("change", "nodes"), [(_without_nodes, "0 nodes"), (_of_other_nodes, "6 nodes")])
def test_placement_is_not_evaluated_without_any_node_of_the_pods(
    behind: Faulty, change: Callable[[Json], None], nodes: str
) -> None:
    """The exit status is 2."""
    behind.proxy.script("nodes", steps.edited(change))
    answer = behind.check("--fail-on", "never")
    assert answer.status == 2
    assert f"{PODS} bound pods run on nodes not among the {nodes} that were read (" in answer.error
    assert answer.report["cluster"]["nodes"] == "none"
    assert ["domains" in row for row in answer.report["constraints"]] == [False]


def test_pods_on_a_node_that_was_deleted_are_reported_as_not_counted(behind: Faulty) -> None:
    """A warning has the number of these pods, and says that they would change the skew."""
    behind.proxy.script("nodes", steps.edited(lambda document: document["items"].pop()))
    answer = behind.check()
    (finding,) = [finding for finding in answer.report["findings"] if finding["code"] == "SPR312"]
    assert (answer.status, finding["severity"]) == (0, "warning")
    uncounted = "The constraint does not count 5 matching pods on nodes that are not in the node list"
    assert finding["message"].startswith(uncounted)
