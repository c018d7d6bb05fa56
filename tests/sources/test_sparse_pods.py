"""Sparse pods equal the pods that a full decoder reads, and share most of their objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kubectl_spread.kube.api.sparse import DetailedPod, SparsePod, alone
from kubectl_spread.kube.api.types import Pod
from kubectl_spread.sources.decode.protobuf.decoder import MAGIC, Decoder
from kubectl_spread.sources.decode.protobuf.sparse_pods import SparsePods
from tests.fuzz import corpus
from tests.fuzz.wire import Field, encode

PAGE = corpus.pages()["pods"]
BYTES = 2


def message(number: int, *fields: Field) -> Field:
    return Field(number, BYTES, list(fields))


def text(number: int, value: str) -> Field:
    return Field(number, BYTES, value.encode())


def label(key: str, value: str) -> Field:
    return message(11, text(1, key), text(2, value))


def pinned_to(node: str) -> Field:
    """Return the node affinity that the controller of a DaemonSet writes."""
    requirement = message(2, text(1, "metadata.name"), text(2, "In"), text(3, node))
    return message(18, message(1, message(1, message(1, requirement))))


def selecting(node: str) -> Field:
    """Return a node affinity that a user wrote."""
    requirement = message(1, text(1, "kubernetes.io/hostname"), text(2, "In"), text(3, node))
    return message(18, message(1, message(1, message(1, requirement))))


def pod(
    name: str, *metadata: Field, spec: tuple[Field, ...] = (), status: tuple[Field, ...] = (), node: str = "n"
) -> bytes:
    """Return a pod on a node; ``node`` is "" for a pending pod, or where ``spec`` names one."""
    bound = (*spec, text(10, node)) if node else spec
    return encode([message(1, text(1, name), text(3, "shop"), *metadata), message(2, *bound), message(3, *status)])


def page(*pods: bytes) -> bytes:
    items = [Field(2, BYTES, body) for body in pods]
    return MAGIC + encode([message(2, message(1, text(2, "1")), *items)])


def sparse(*pods: bytes) -> list[SparsePod]:
    return list(SparsePods().page(page(*pods)))


def as_read(pod: SparsePod) -> Pod:
    """Return the pod that a sparse pod represents."""
    like = pod.like
    replace = msgspec.structs.replace
    return replace(
        like,
        metadata=replace(
            like.metadata, name=pod.name, generation=pod.generation, creation_timestamp=pod.created, uid="?"
        ),
        spec=replace(like.spec, node_name=pod.node_name),
    )


def as_decoded(pod: Pod) -> Pod:
    """Return a pod without the fields that no check reads."""
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    replace = msgspec.structs.replace
    return replace(
        pod,
        metadata=replace(metadata, annotations={}, managed_fields=(), deletion_timestamp=None, uid="?"),
        spec=replace(spec, volumes=(), service_account_name="", host_network=False),
        status=replace(status, pod_ip="", nominated_node_name=""),
    )


def test_sparse_pods_represent_the_decoded_pods() -> None:
    full = [read_pod for read_pod in Decoder(Pod).page(PAGE) if read_pod.spec.node_name]
    pods = [read_pod for read_pod in SparsePods().page(PAGE) if read_pod.node_name]
    assert [as_read(read_pod) for read_pod in pods] == [as_decoded(read_pod) for read_pod in full]
    assert [read_pod.decode() for read_pod in pods] == full
    assert [read_pod.claims for read_pod in pods] == [read_pod.claims for read_pod in map(alone, full)]
    assert [read_pod.key for read_pod in pods] == [read_pod.key for read_pod in full]
    assert all(read_pod.has_managed_fields and not read_pod.terminating for read_pod in pods)


def test_pending_pods_are_read_in_detail() -> None:
    """Their conditions say why the scheduler refused them."""
    condition = message(2, text(1, "PodScheduled"), text(2, "False"), text(5, "Unschedulable"), text(6, "0/1 nodes"))
    pending, bound = sparse(pod("a", status=(condition,), node=""), pod("b", status=(condition,)))
    assert isinstance(pending.like, DetailedPod)
    assert pending.like.unscheduled is not None
    assert pending.like.unscheduled.message == "0/1 nodes"
    assert pending.like == Decoder(DetailedPod).decode(pod("a", status=(condition,), node=""))
    assert not isinstance(bound.like, DetailedPod)


def test_pods_of_one_template_share_one_pod() -> None:
    first, second, third = sparse(
        pod("a", label("app", "web"), Field(7, 0, 1), message(8, Field(1, 0, 60)), node="n1"),
        pod("b", label("app", "web"), Field(7, 0, 2), message(8, Field(1, 0, 90)), node="n2"),
        pod("c", label("app", "db"), node="n2"),
    )
    assert first.like is second.like
    assert third.like.metadata.labels == {"app": "db"}
    assert [(read_pod.name, read_pod.node_name, read_pod.generation) for read_pod in (first, second, third)] == [
        ("a", "n1", 1),
        ("b", "n2", 2),
        ("c", "n2", 0),
    ]
    assert [read_pod.created and read_pod.created.second for read_pod in (first, second, third)] == [0, 30, None]


@pytest.mark.parametrize(
    ("first_fields", "second_fields"),
    [
        pytest.param({"metadata": (label("a", "1"),)}, {"metadata": (label("a", "2"),)}, id="labels"),
        pytest.param({"metadata": (text(5, "uid"),)}, {}, id="stored or not"),
        pytest.param({}, {"node": ""}, id="bound or not"),
        pytest.param({"metadata": (text(14, "f"),)}, {}, id="finalizers"),
        pytest.param({"metadata": (message(13, text(3, "rs")),)}, {}, id="owner"),
        pytest.param({"spec": (text(19, "other"),)}, {}, id="scheduler"),
        pytest.param({"spec": (message(18),)}, {}, id="affinity that is empty"),
        pytest.param({"spec": (message(38, text(1, "gate")),)}, {}, id="scheduling gates"),
        pytest.param({"spec": (message(2, message(8)),)}, {}, id="containers"),
        pytest.param({"spec": (message(2, message(6, Field(2, 0, 80))),)}, {"spec": (message(2),)}, id="a host port"),
        pytest.param({"spec": (message(2, text(24, "Always")),)}, {"spec": (message(2),)}, id="a container's policy"),
        pytest.param({"spec": (message(40),)}, {}, id="resources of the pod"),
        pytest.param({"status": (text(1, "Failed"),)}, {}, id="phase"),
        pytest.param(
            {"spec": (selecting("n1"),), "node": "n1"},
            {"spec": (selecting("n2"),), "node": "n2"},
            id="node affinity of a user",
        ),
    ],
)
def test_pods_that_differ_in_a_field_that_a_check_reads_share_no_pod(
    first_fields: dict[str, Any], second_fields: dict[str, Any]
) -> None:
    first, second = (
        read_pod(*fields.pop("metadata", ()), **fields) for read_pod, fields in _makers(first_fields, second_fields)
    )
    both = sparse(first, second)
    full = [read_pod for read_pod in Decoder(Pod).page(page(first, second)) if read_pod.spec.node_name]
    bound = [read_pod for read_pod in both if read_pod.node_name]
    assert both[0].like is not both[1].like
    assert [as_read(read_pod) for read_pod in bound] == [as_decoded(read_pod) for read_pod in full]


def _makers(*fields: dict[str, Any]) -> list[tuple[Callable[..., bytes], dict[str, Any]]]:
    def named(name: str) -> Callable[..., bytes]:
        return lambda *metadata, **others: pod(name, *metadata, **others)

    return [(named(f"p{index}"), dict(read_pod)) for index, read_pod in enumerate(fields)]


def test_pods_of_a_daemonset_share_one_pod_although_each_names_its_node() -> None:
    first, second, longer = sparse(
        *(pod(f"p-{node}", spec=(pinned_to(node),), node=node) for node in ("n1", "n2", "node-3"))
    )
    assert first.like is second.like
    assert longer.like is not first.like


def test_a_pod_on_another_node_than_its_affinity_names_shares_no_pod() -> None:
    first, second, third = sparse(
        pod("a", spec=(pinned_to("n1"),), node="n1"),
        pod("b", spec=(pinned_to("n1"),), node="n2"),
        pod("c", spec=(pinned_to("n1"),), node=""),
    )
    assert len({id(read_pod.like) for read_pod in (first, second, third)}) == 3


@pytest.mark.parametrize("name", ["kubectl-spread/ignore", "kubernetes.io/config.mirror"])
def test_an_annotation_that_decides_the_evaluation_is_kept(name: str) -> None:
    first, second = sparse(
        pod("a", message(12, text(1, name), text(2, "SPR301"))), pod("b", message(12, text(1, "other"), text(2, "x")))
    )
    assert first.like.metadata.annotations == {name: "SPR301"}
    assert second.like.metadata.annotations == {}


def volume(name: str, *source: Field) -> Field:
    return message(1, text(1, name), message(2, *source))


def test_each_pod_has_its_own_claims() -> None:
    """A replica has a volume with a name of its own, for its token; pods with claims share the other fields too."""
    token = Field(26, BYTES, [message(1, message(1))])
    pods = sparse(
        pod("a", spec=(volume("api-x1", token), volume("tmp", message(2)))),
        pod("b", spec=(volume("api-x2", token), volume("tmp", message(2)))),
        pod("c", spec=(volume("data", message(10, text(1, "data-c"))), volume("www", message(10, text(1, "www"))))),
        pod("d", spec=(volume("tmp", message(29)),), node=""),
        pod("e", spec=(volume("tmp", message(29)),)),
    )
    assert [read_pod.claims for read_pod in pods] == [(), (), ("data-c", "www"), ("d-tmp",), ()]
    assert len({id(read_pod.like) for read_pod in pods[:3]}) == 1


def test_a_pod_with_a_deletion_timestamp_is_terminating() -> None:
    first, second = sparse(pod("a", message(9, Field(1, 0, 60))), pod("b"))
    assert [read_pod.terminating for read_pod in (first, second)] == [True, False]
    assert first.like is second.like
