"""The pod template of each kind of workload."""

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
def test_each_kind_has_its_template_in_its_place(identity: tuple[str, str]) -> None:
    manifest = PLACES.get(identity[1], {"spec": {"template": TEMPLATE}})
    template = msgspec.convert(manifest, KINDS[identity]).template
    assert template.metadata.labels == {"app": "web"}
    assert template.spec.scheduler_name == "mine"


@pytest.mark.parametrize("identity", KINDS, ids=lambda identity: identity[1])
def test_an_absent_template_is_empty(identity: tuple[str, str]) -> None:
    assert msgspec.convert({}, KINDS[identity]).template == EMPTY


def test_a_workload_without_a_kind_has_no_template() -> None:
    with pytest.raises(NotImplementedError):
        WorkloadObject().template  # noqa: B018 - reading the property raises
