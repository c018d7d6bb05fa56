"""The selector of default constraints, of a pod's Services and its controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kubectl_spread.kube.api.labels import describe
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import default_selector
from tests.builders import Json, decode_selector, requirement, selector

LABELS = {"app": "web", "rev": "r1"}


@pytest.mark.parametrize(
    ("services", "controller", "owner", "expected"),
    [
        pytest.param([], None, None, "{}", id="without Services and owner the selector is empty"),
        pytest.param(
            [{"app": "web"}, {"app": "db"}], None, None, "app=web", id="Services that select the pod add labels"
        ),
        pytest.param([{"app": "web", "x": "y"}], None, None, "{}", id="a Service must match with all labels"),
        pytest.param(
            [{"app": "web"}], {"rev": "r1"}, None, "app=web, rev=r1", id="a ReplicationController adds labels"
        ),
        pytest.param([{"app": "web"}], {"app": "other"}, None, "app=other", id="its labels replace those of Services"),
        pytest.param(
            [{"app": "web"}],
            None,
            selector({"app": "web"}, requirement("rev", "Exists")),
            "app=web, app In [web], rev Exists",
            id="a ReplicaSet or StatefulSet adds requirements",
        ),
        pytest.param(
            [{"app": "web"}],
            None,
            selector({"rev": "r1"}, requirement("rev", "Equals", "r1")),
            "app=web",
            id="a selector that cannot be parsed adds nothing",
        ),
    ],
)
def test_the_default_selector_joins_services_and_the_owner(
    services: Sequence[Mapping[str, str]], controller: Mapping[str, str] | None, owner: Json | None, expected: str
) -> None:
    deduced = default_selector(LABELS, services, controller=controller, owner=decode_selector(owner))
    assert describe(deduced) == expected
