"""Who wrote a label, and whether that was at creation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from kubectl_spread.kube.api.managedfields import LabelOwner, label_owners
from kubectl_spread.kube.api.types import ManagedFieldsEntry, ObjectMeta
from tests.builders import Json

CREATED = datetime(2026, 9, 1, 10, tzinfo=UTC)
LATER = CREATED + timedelta(minutes=31)
MADE_THE_POD: Json = {"f:topologySpreadConstraints": {}}


def entry(
    manager: str, *keys: str, time: datetime | None = CREATED, spec: object = None, subresource: str = ""
) -> ManagedFieldsEntry:
    labels: Json = {".": {}, **{f"f:{key}": {} for key in keys}}
    fields = {"f:metadata": {"f:labels": labels}, **({} if spec is None else {"f:spec": spec})}
    return ManagedFieldsEntry(
        manager=manager,
        time=time,
        fields_v1=msgspec.Raw(msgspec.json.encode(fields)),
        subresource=subresource,
    )


def owners(*entries: ManagedFieldsEntry, created: datetime | None = CREATED) -> list[LabelOwner]:
    return list(label_owners(ObjectMeta(creation_timestamp=created, managed_fields=entries), ["rev"]))


@pytest.mark.parametrize(
    ("actual_entry", "at_creation"),
    [
        pytest.param(entry("create", "rev", spec=MADE_THE_POD), True, id="the entry that made the pod"),
        pytest.param(entry("create", "rev", spec={"f:affinity": {}}), True, id="affinity tells the creator too"),
        pytest.param(
            entry("create", "rev", spec=MADE_THE_POD, time=CREATED - timedelta(seconds=2)),
            True,
            id="webhooks may run between the entry's time and creationTimestamp",
        ),
        pytest.param(
            entry("create", "rev", spec=MADE_THE_POD, time=CREATED + timedelta(seconds=1)), True, id="one second later"
        ),
        pytest.param(
            entry("create", "rev", spec=MADE_THE_POD, time=CREATED + timedelta(seconds=2)),
            False,
            id="the creator wrote again: perhaps this label",
        ),
        pytest.param(entry("kubectl-label", "rev", time=LATER), False, id="kubectl label"),
        pytest.param(entry("kubectl-label", "rev"), False, id="another manager within the same second"),
        pytest.param(entry("kubelet", "rev", spec=MADE_THE_POD, subresource="status"), False, id="pods/status"),
        pytest.param(entry("kubectl", "rev", spec=MADE_THE_POD, time=None), False, id="an entry without time"),
    ],
)
def test_label_owners(actual_entry: ManagedFieldsEntry, at_creation: bool) -> None:
    assert owners(actual_entry) == [LabelOwner("rev", actual_entry.manager, actual_entry.time, at_creation)]


def test_label_owners_without_creation_time_prove_nothing() -> None:
    (actual,) = owners(entry("create", "rev", spec=MADE_THE_POD), created=None)
    assert not actual.at_creation


def test_label_owners_may_be_several_in_the_order_of_managed_fields() -> None:
    owner_entries = owners(entry("b", "rev", time=LATER), entry("c", "app"), entry("a", "rev"))
    assert [owner.manager for owner in owner_entries] == ["b", "a"]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(b"{}", id="empty"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b"{", id="broken"),
        pytest.param(b'{"a\xff": {}}', id="not UTF-8"),
        pytest.param(b'{"f:metadata": {"f:labels": null}}', id="labels null"),
        pytest.param(b'{"f:metadata": "x"}', id="metadata no object"),
        pytest.param(b'{"f:metadata": {"f:labels": {"f:app": {}}}}', id="other labels only"),
        pytest.param(b'{"f:metadata": {"f:annotations": {"f:rev": {}}}}', id="an annotation of that name"),
    ],
)
def test_label_owners_of_what_cannot_be_read_are_none(fields: bytes) -> None:
    assert owners(ManagedFieldsEntry(manager="m", time=CREATED, fields_v1=msgspec.Raw(fields))) == []


def test_label_owners_without_managed_fields_are_none() -> None:
    assert owners() == []
