"""The requests of pods, the amounts of nodes, and the reasons why a node has no room."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kubectl_spread.kube.api import quantity
from kubectl_spread.kube.api.quantity import Quantity
from kubectl_spread.kube.api.types import Container, Node, NodeStatus, PodSpec, ResourceRequirements
from kubectl_spread.kube.scheduler import resources


def listed(text: str) -> dict[str, Quantity]:
    """Return a list of resources: ``cpu=1 memory=1Gi``."""
    pairs = (word.partition("=") for word in text.split())
    return {name: Quantity(value) for name, _, value in pairs}


def requirements(requests: str = "", limits: str = "") -> ResourceRequirements:
    return ResourceRequirements(requests=listed(requests), limits=listed(limits))


def container(requests: str = "", limits: str = "") -> Container:
    return Container(resources=requirements(requests, limits))


def sidecar(requests: str) -> Container:
    return Container(resources=requirements(requests), restart_policy="Always")


def spec(
    containers: Sequence[Container] = (),
    init: Sequence[Container] = (),
    overhead: str = "",
    whole: ResourceRequirements | None = None,
) -> PodSpec:
    return PodSpec(
        containers=tuple(containers), init_containers=tuple(init), overhead=listed(overhead), resources=whole
    )


def amounts(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in listed(text).items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("2", 2000, id="whole"),
        pytest.param("100m", 100, id="thousandths"),
        pytest.param("0.1", 100, id="a fraction"),
        pytest.param(".5", 500, id="no digit before the point"),
        pytest.param("1.", 1000, id="no digit after the point"),
        pytest.param("1u", 1, id="millionths are rounded up"),
        pytest.param("1n", 1, id="billionths are rounded up"),
        pytest.param("1001u", 2, id="a remainder is rounded up"),
        pytest.param("-1001u", -2, id="away from zero"),
        pytest.param("1e3", 1_000_000, id="an exponent"),
        pytest.param("1E3", 1_000_000, id="a large exponent letter"),
        pytest.param("1E", 10**21, id="exa"),
        pytest.param("1e-3", 1, id="a negative exponent"),
        pytest.param("1e+3", 1_000_000, id="a signed exponent"),
        pytest.param("5k", 5_000_000, id="kilo"),
        pytest.param("3M", 3 * 10**9, id="mega"),
        pytest.param("3G", 3 * 10**12, id="giga"),
        pytest.param("3T", 3 * 10**15, id="tera"),
        pytest.param("3P", 3 * 10**18, id="peta"),
        pytest.param("1Ki", 1_024_000, id="kibi"),
        pytest.param("12Mi", 12 * 2**20 * 1000, id="mebi"),
        pytest.param("1.5Gi", 3 * 2**29 * 1000, id="one and a half gibi"),
        pytest.param("1Ti", 2**40 * 1000, id="tebi"),
        pytest.param("1Pi", 2**50 * 1000, id="pebi"),
        pytest.param("7Ei", 7 * 2**60 * 1000, id="exbi"),
        pytest.param("0.1Ki", 102_400, id="a fraction of kibi"),
        pytest.param("+1", 1000, id="a sign"),
        pytest.param("0010", 10_000, id="leading zeros"),
        pytest.param(" 1 ", 1000, id="space around it"),
        pytest.param("8Ei", (2**63 - 1) * 1000, id="more than 64 bits"),
        pytest.param("1e999999999", (2**63 - 1) * 1000, id="a very large exponent"),
        pytest.param("-1e999999999", -(2**63 - 1) * 1000, id="a very large negative number"),
        pytest.param("1e-999999999", 1, id="a very small exponent"),
        pytest.param("0e999999999", 0, id="zero with a very large exponent"),
    ],
)
def test_a_quantity_is_read_in_thousandths(text: str, expected: int) -> None:
    assert quantity.thousandths(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", " ", "abc", "1x", "1K", "1ki", "1mi", "1e", "1e1.5", "1.2.3", "--1", "1 Gi", "0x10", "\u0663", "1" * 257],
)
def test_a_text_that_is_not_a_quantity_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a quantity, such as 500m, 1\.5 or 2Gi$"):
        quantity.thousandths(text)


@pytest.mark.parametrize(
    ("pod_spec", "expected"),
    [
        pytest.param(spec(), "pods=1", id="a pod without containers"),
        pytest.param(
            spec([container("cpu=100m memory=1Mi"), container("cpu=0.25 memory=1Mi")]),
            "cpu=350 memory=2097152 pods=1",
            id="containers are added up",
        ),
        pytest.param(
            spec([container("memory=1500m")]), "memory=2 pods=1", id="units are rounded up once they are added up"
        ),
        pytest.param(
            spec([container("memory=1500m"), container("memory=1500m")]),
            "memory=3 pods=1",
            id="amounts are rounded after they are added up",
        ),
        pytest.param(
            spec([container("cpu=1")], [container("cpu=3"), container("cpu=2")]),
            "cpu=3000 pods=1",
            id="the largest init container, where it is more",
        ),
        pytest.param(
            spec([container("cpu=2")], [container("cpu=1 memory=5")]),
            "cpu=2000 memory=5 pods=1",
            id="resource by resource",
        ),
        pytest.param(
            spec([container("cpu=1")], [sidecar("cpu=2")]), "cpu=3000 pods=1", id="a sidecar runs next to containers"
        ),
        pytest.param(
            spec([container("cpu=1")], [sidecar("cpu=2"), container("cpu=5")]),
            "cpu=7000 pods=1",
            id="a sidecar runs next to later init containers",
        ),
        pytest.param(
            spec([container("cpu=1")], [container("cpu=5"), sidecar("cpu=2")]),
            "cpu=5000 pods=1",
            id="a sidecar does not run next to earlier init containers",
        ),
        pytest.param(
            spec([container("cpu=1")], overhead="cpu=250m memory=10"),
            "cpu=1250 memory=10 pods=1",
            id="overhead comes on top",
        ),
        pytest.param(
            spec([container("cpu=1", "cpu=2 memory=5")]),
            "cpu=1000 memory=5 pods=1",
            id="a limit stands for a missing request",
        ),
        pytest.param(
            spec([container("cpu=0", "cpu=2")]), "cpu=0 pods=1", id="a limit does not replace a request of zero"
        ),
        pytest.param(
            spec([container("cpu=1 memory=5")], overhead="cpu=1", whole=requirements("cpu=4")),
            "cpu=5000 memory=5 pods=1",
            id="requests of the pod replace those of its containers, and overhead is added",
        ),
        pytest.param(
            spec(whole=requirements("cpu=1", "cpu=4")),
            "cpu=1000 pods=1",
            id="a limit of the pod does not replace its request",
        ),
        pytest.param(
            spec([container("cpu=1")], whole=requirements("", "cpu=4 memory=5")),
            "cpu=1000 memory=5 pods=1",
            id="a limit of the pod stands for a request of no container",
        ),
        pytest.param(
            spec([container("", "hugepages-2Mi=2Mi")], whole=requirements("", "hugepages-2Mi=4Mi")),
            "hugepages-2Mi=4194304 pods=1",
            id="the limit of huge pages is that of the pod",
        ),
        pytest.param(
            spec([container("example.com/gpu=1")], whole=requirements("example.com/gpu=4 ephemeral-storage=9")),
            "example.com/gpu=1 pods=1",
            id="other requests of the pod are ignored",
        ),
        pytest.param(
            spec([container("example.com/gpu=1 kubernetes.io/x=2 attachable-volumes-csi=3 ephemeral-storage=4")]),
            "example.com/gpu=1 kubernetes.io/x=2 attachable-volumes-csi=3 ephemeral-storage=4 pods=1",
            id="extended resources are counted",
        ),
        pytest.param(
            spec([container("storage=1 pods=7 example.com/=1 requests.example.com/x=1 -x/y=1")]),
            "pods=1",
            id="resources that the scheduler does not count",
        ),
    ],
)
def test_the_requests_of_a_pod(pod_spec: PodSpec, expected: str) -> None:
    assert resources.pod_requests(pod_spec) == amounts(expected)


def test_the_error_on_a_quantity_names_its_resource() -> None:
    with pytest.raises(ValueError, match=r'^memory: "1 GB" is not a quantity'):
        resources.pod_requests(spec([Container(resources=ResourceRequirements(requests={"memory": Quantity("1 GB")}))]))


def test_amounts_are_added_resource_by_resource() -> None:
    requested = amounts("cpu=100 pods=1")
    resources.add(requested, amounts("cpu=200 memory=5 pods=1"))
    assert requested == amounts("cpu=300 memory=5 pods=2")


def test_allocatable_amounts_are_rounded_up_to_units() -> None:
    allocatable = resources.allocatable(listed("cpu=3920m memory=1Ki pods=110 example.com/gpu=2 storage=5"))
    assert allocatable == amounts("cpu=3920 memory=1024 pods=110 example.com/gpu=2")


NODE = "cpu=2000 memory=1000 ephemeral-storage=10 pods=3 example.com/gpu=1 hugepages-2Mi=4"


@pytest.mark.parametrize(
    ("requests", "requested", "expected"),
    [
        pytest.param("cpu=2000 memory=1000 pods=1", "", (), id="the whole node"),
        pytest.param("cpu=2001 pods=1", "", ("Insufficient cpu",), id="too much cpu"),
        pytest.param(
            "cpu=1500 pods=1", "cpu=501 pods=1", ("Insufficient cpu",), id="the requests of other pods leave too little"
        ),
        pytest.param("cpu=1500 pods=1", "cpu=500 pods=2", (), id="just enough is left"),
        pytest.param("pods=1", "pods=3", ("Too many pods",), id="too many pods"),
        pytest.param("cpu=0 pods=1", "cpu=5000", (), id="a request of zero always fits"),
        pytest.param(
            "example.com/tpu=1 pods=1", "", ("Insufficient example.com/tpu",), id="a resource that the node lacks"
        ),
        pytest.param("example.com/tpu=0 pods=1", "", (), id="a request of zero of a resource that the node lacks"),
        pytest.param(
            "hugepages-2Mi=5 example.com/gpu=2 ephemeral-storage=11 memory=1001 cpu=2001 pods=1",
            "pods=3",
            (
                "Too many pods",
                "Insufficient cpu",
                "Insufficient memory",
                "Insufficient ephemeral-storage",
                "Insufficient example.com/gpu",
                "Insufficient hugepages-2Mi",
            ),
            id="reasons come in the scheduler's order",
        ),
    ],
)
def test_the_reasons_are_worded_as_by_the_scheduler(requests: str, requested: str, expected: tuple[str, ...]) -> None:
    assert resources.fits(amounts(requests), amounts(NODE), amounts(requested)) == expected


def test_a_node_without_allocatable_amounts_has_no_room() -> None:
    assert resources.fits({"cpu": 1, "pods": 1}, {}, {}) == ("Too many pods", "Insufficient cpu")


@pytest.mark.parametrize("text", ["4 cores", "0x4", "${CPU}", "", "-1", "1e", "two", "1,5"])
def test_a_quantity_that_cannot_be_read_is_named(text: str) -> None:
    unreadable = {"cpu": Quantity(text), "memory": Quantity("1Gi")}
    node = Node(status=NodeStatus(allocatable=unreadable))
    whole = ResourceRequirements(requests=unreadable)
    pod = PodSpec(
        containers=(Container(), Container(resources=ResourceRequirements(limits=unreadable))), resources=whole
    )
    assert [str(error.path) for error in resources.unreadable_amounts(node)] == ["status.allocatable[cpu]"]
    assert [str(error.path) for error in resources.unreadable_requests(pod)] == [
        "spec.containers[1].resources.limits[cpu]",
        "spec.resources.requests[cpu]",
    ]
    assert resources.allocatable_of(node) is None
    with pytest.raises(ValueError, match=r"^cpu: "):
        resources.pod_requests(pod)


def test_a_node_without_amounts_is_named() -> None:
    (error,) = resources.unreadable_amounts(Node())
    assert error.message == "status.allocatable is missing"
    assert not [*resources.unreadable_amounts(Node(status=NodeStatus(capacity=listed("cpu=4"))))]
