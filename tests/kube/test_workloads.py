"""Every kind keeps its pod template somewhere."""

from __future__ import annotations

import msgspec
import pytest

from kubectl_spread.kube.api.workloads import EMPTY, KINDS, WorkloadObject
from tests.builders import Json

TEMPLATE: Json = {"metadata": {"labels": {"app": "web"}}, "spec": {"schedulerName": "mine"}}
PLACES: dict[str, Json] = {
    "CronJob": {"spec": {"jobTemplate": {"spec": {"template": TEMPLATE}}}},
    "PodTemplate": {"template": TEMPLATE},
}


@pytest.mark.parametrize("identity", KINDS, ids=lambda identity: identity[1])
def test_template(identity: tuple[str, str]) -> None:
    response = PLACES.get(identity[1], {"spec": {"template": TEMPLATE}})
    template = msgspec.convert(response, KINDS[identity]).template
    assert template.metadata.labels == {"app": "web"}
    assert template.spec.scheduler_name == "mine"


@pytest.mark.parametrize("identity", KINDS, ids=lambda identity: identity[1])
def test_template_that_is_absent_is_empty(identity: tuple[str, str]) -> None:
    assert msgspec.convert({}, KINDS[identity]).template == EMPTY


def test_a_workload_of_no_kind_has_no_template() -> None:
    with pytest.raises(NotImplementedError):
        WorkloadObject().template  # noqa: B018 - the property is asked
