"""Lists that say one thing and hold another: of another kind, or shorter than they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.decode.resources import NODES, PODS, SPARSE_PODS, WORKLOADS, Resource
from tests.builders import Json
from tests.sources.server import Reply, connect, listed, page, serve

RECORDED = Path(__file__).parent / "recorded"
PROTOBUF = "application/vnd.kubernetes.protobuf"
UNEXPECTED = "Server returned an unexpected response: "


def folded(*replies: Reply, resource: Resource[Any] = PODS, chunk_size: int = 500) -> list[str]:
    with serve(*replies) as server:
        return connect(server, chunk_size=chunk_size).fold(
            resource, list[str], lambda match, objects: match.extend(manifest.metadata.name for manifest in objects)
        )


def refused(*replies: Reply, resource: Resource[Any] = PODS) -> str:
    with pytest.raises(SourceError) as error:
        folded(*replies, resource=resource)
    message = str(error.value)
    assert message.startswith(UNEXPECTED)
    assert message.endswith(f" (the list of {resource.plural} is not complete)")
    return message.removeprefix(UNEXPECTED).partition(" (the list of ")[0]


def recorded(name: str) -> Reply:
    return Reply(body=(RECORDED / f"{name}.pb").read_bytes(), content_type=PROTOBUF)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        pytest.param(listed(kind="NodeList"), "NodeList (v1)", id="another kind"),
        pytest.param(
            listed(kind="PartialObjectMetadataList", version="meta.k8s.io/v1"),
            "PartialObjectMetadataList (meta.k8s.io/v1)",
            id="metadata alone",
        ),
        pytest.param(listed(kind="Status"), "Status (v1)", id="a Status without status code"),
        pytest.param(listed(version="v2"), "PodList (v2)", id="another version"),
        pytest.param(listed(version=""), "PodList (no apiVersion)", id="no version"),
        pytest.param(listed(kind="Pod"), "Pod (v1)", id="one object"),
        pytest.param(recorded("nodes"), "NodeList (v1)", id="another kind, in protobuf"),
        pytest.param(recorded("deployments"), "DeploymentList (apps/v1)", id="another group, in protobuf"),
        pytest.param(recorded("notfound"), "Status (v1)", id="a Status, in protobuf"),
    ],
)
def test_a_list_of_something_else_is_refused(reply: Reply, kind: str) -> None:
    """Issue 13, section 8: it passed for an empty list of pods."""
    assert refused(reply) == f"{kind} instead of PodList (v1)"


def test_pages_of_any_size_are_read_into_the_memory_of_earlier_ones() -> None:
    sizes = [3, 1, 40, 2, 2, 60, 1]
    names = [[f"p{number}-{index:02}" for index in range(size)] for number, size in enumerate(sizes)]
    pages = [page(*each, token=str(number)) for number, each in enumerate(names[:-1], 1)]
    assert folded(*pages, page(*names[-1])) == [name for each in names for name in each]


def test_every_page_is_checked() -> None:
    assert refused(page("a", token="t"), listed(kind="NodeList")) == "NodeList (v1) instead of PodList (v1)"


def test_a_list_without_kind_is_refused() -> None:
    assert refused(listed(kind="")) == "not a Kubernetes object (application/json)"


@pytest.mark.parametrize("resource", [NODES, *WORKLOADS], ids=lambda resource: resource.full_name)
def test_each_resource_has_its_own_list(resource: Resource[Any]) -> None:
    version = f"{resource.group}/v1" if resource.group else "v1"
    assert folded(
        listed({"metadata": {"name": "a"}, "spec": {}}, kind=f"{resource.kind}List", version=version), resource=resource
    )
    assert refused(listed(), resource=resource).startswith("PodList (v1) instead of ")


@pytest.mark.parametrize("items", ["", '"items": null', '"items": []'])
def test_a_list_has_items(items: str) -> None:
    head = '"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}'
    reply = Reply(body=f"{{{head}{', ' if items else ''}{items}}}".encode())
    if items:
        assert folded(reply) == []
    else:
        assert refused(reply) == "items: is missing"


@pytest.mark.parametrize("spec", [{}, {"spec": None}])
@pytest.mark.parametrize("resource", [PODS, SPARSE_PODS, *WORKLOADS], ids=lambda resource: resource.full_name)
def test_an_item_without_spec_is_refused(resource: Resource[Any], spec: Json) -> None:
    version = f"{resource.group}/v1" if resource.group else "v1"
    reply = listed({"metadata": {"name": "a"}, **spec}, kind=f"{resource.kind}List", version=version)
    assert refused(reply, resource=resource) == "spec: is missing"


def test_items_of_all_namespaces_may_be_in_any() -> None:
    assert folded(listed(pod("a"), pod("b", "other"))) == ["a", "b"]


def test_names_for_completion_are_of_the_kind_that_was_asked_for() -> None:
    metadata = listed({"metadata": {"name": "a"}}, kind="PartialObjectMetadataList", version="meta.k8s.io/v1")
    with serve(metadata, page("b"), listed(kind="NodeList")) as server:
        cluster = connect(server)
        assert cluster.names(PODS, "", 5) == ["a"]
        assert cluster.names(PODS, "", 5) == ["b"]
        with pytest.raises(SourceError, match=r"NodeList \(v1\) instead of PodList \(v1\)"):
            cluster.names(PODS, "", 5)


def pod(name: str, namespace: str = "shop", **labels: str) -> Json:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": {}}


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        pytest.param([page("a", remaining=3)], "1 objects in a list of 4", id="the last page says that more follow"),
        pytest.param(
            [page("a", "b", token="t", remaining=3), page("c", "d")], "4 objects in a list of 5", id="one is missing"
        ),
        pytest.param(
            [page("a", token="t"), page("b", token="u", remaining=2), page("c")],
            "3 objects in a list of 4",
            id="a later page says so",
        ),
        pytest.param([page("a", token="t", remaining=1), page()], "1 objects in a list of 2", id="an empty last page"),
    ],
)
def test_a_list_that_is_longer_than_what_came_is_refused(pages: list[Reply], message: str) -> None:
    assert refused(*pages) == message


@pytest.mark.parametrize(
    "pages",
    [
        pytest.param([page("a", token="t", remaining=2), page("b", "c")], id="exact"),
        pytest.param([page("a", token="t"), page("b", "c")], id="not said, as with selectors"),
        pytest.param([page("a", token="t", remaining=1), page("b", "c")], id="less than came"),
        pytest.param([page("a", token="t", remaining=2), page("b", token="u", remaining=1), page("c")], id="each page"),
        pytest.param([page("a", "b", "c", remaining=0)], id="nothing follows"),
        pytest.param([page("a", token="t", remaining=-1), page("b", "c")], id="a negative number"),
    ],
)
def test_a_list_that_is_as_long_as_it_says_is_read(pages: list[Reply]) -> None:
    assert folded(*pages) == ["a", "b", "c"]
