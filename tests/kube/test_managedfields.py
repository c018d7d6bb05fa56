"""The owners of labels, and whether they wrote them when the pod was created."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from kubectl_spread.kube.api.managedfields import LabelOwner, label_owners
from kubectl_spread.kube.api.types import ManagedFieldsEntry, ObjectMeta
from tests.builders import Json

CREATED = datetime(2026, 9, 1, 10, tzinfo=UTC)
LATER = CREATED + timedelta(minutes=31)
CREATOR_FIELDS: Json = {"f:topologySpreadConstraints": {}}


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
    ("label_entry", "at_creation"),
    [
        pytest.param(entry("create", "rev", spec=CREATOR_FIELDS), True, id="the entry that created the pod"),
        pytest.param(entry("create", "rev", spec={"f:affinity": {}}), True, id="affinity also identifies the creator"),
        pytest.param(
            entry("create", "rev", spec=CREATOR_FIELDS, time=CREATED - timedelta(seconds=2)),
            True,
            id="webhooks may run between the entry's time and creationTimestamp",
        ),
        pytest.param(
            entry("create", "rev", spec=CREATOR_FIELDS, time=CREATED + timedelta(seconds=1)),
            True,
            id="one second later",
        ),
        pytest.param(
            entry("create", "rev", spec=CREATOR_FIELDS, time=CREATED + timedelta(seconds=2)),
            False,
            id="the creator may have changed the label later",
        ),
        pytest.param(entry("kubectl-label", "rev", time=LATER), False, id="kubectl label"),
        pytest.param(entry("kubectl-label", "rev"), False, id="another manager within the same second"),
        pytest.param(entry("kubelet", "rev", spec=CREATOR_FIELDS, subresource="status"), False, id="pods/status"),
        pytest.param(entry("kubectl", "rev", spec=CREATOR_FIELDS, time=None), False, id="an entry without time"),
    ],
)
def test_a_label_was_written_at_creation_if_its_entry_created_the_pod(
    label_entry: ManagedFieldsEntry, at_creation: bool
) -> None:
    assert owners(label_entry) == [LabelOwner("rev", label_entry.manager, label_entry.time, at_creation)]


def test_without_a_creation_time_no_label_was_written_at_creation() -> None:
    (owner,) = owners(entry("create", "rev", spec=CREATOR_FIELDS), created=None)
    assert not owner.at_creation


def test_several_owners_come_in_the_order_of_managed_fields() -> None:
    owner_entries = owners(entry("b", "rev", time=LATER), entry("c", "app"), entry("a", "rev"))
    assert [owner.manager for owner in owner_entries] == ["b", "a"]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(b"{}", id="empty"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[]", id="not an object"),
        pytest.param(b"{", id="broken"),
        pytest.param(b'{"a\xff": {}}', id="not UTF-8"),
        pytest.param(b'{"f:metadata": {"f:labels": null}}', id="labels null"),
        pytest.param(b'{"f:metadata": "x"}', id="metadata not an object"),
        pytest.param(b'{"f:metadata": {"f:labels": {"f:app": {}}}}', id="other labels only"),
        pytest.param(b'{"f:metadata": {"f:annotations": {"f:rev": {}}}}', id="an annotation of that name"),
    ],
)
def test_fields_without_the_label_have_no_owner(fields: bytes) -> None:
    assert owners(ManagedFieldsEntry(manager="m", time=CREATED, fields_v1=msgspec.Raw(fields))) == []


def test_without_managed_fields_there_are_no_owners() -> None:
    assert owners() == []
