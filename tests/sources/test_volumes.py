"""Claims and volumes are the same from JSON and from protobuf."""

from __future__ import annotations

import msgspec
import pytest

from kubectl_spread.kube.api.storage import PersistentVolume, PersistentVolumeClaim
from kubectl_spread.kube.api.types import Message
from kubectl_spread.kube.api.workloads import StatefulSet
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.protobuf.decoder import MAGIC, Decoder
from tests.builders import Json
from tests.sources.test_quantities import field

VOLUME = field(1, b"www") + field(2, field(10, field(1, b"assets")))
SCRATCH = field(1, b"tmp") + field(2, field(29, b""))
TEMPLATE = field(2, field(1, VOLUME) + field(1, SCRATCH))
STATEFUL_SET = field(2, field(3, TEMPLATE) + field(4, field(1, field(1, b"data"))) + field(11, b"\x08\x03"))
REQUIREMENT = field(1, b"zone") + field(2, b"In") + field(3, b"a")


@pytest.mark.parametrize(
    ("type_", "wire", "written"),
    [
        pytest.param(
            PersistentVolumeClaim,
            field(1, field(1, b"data")) + field(2, field(1, b"ReadWriteOnce") + field(3, b"pv")),
            {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "pv"}},
            id="claim",
        ),
        pytest.param(
            PersistentVolume,
            field(2, field(9, field(1, field(1, field(1, REQUIREMENT))))),
            {
                "spec": {
                    "nodeAffinity": {
                        "required": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
                            ]
                        }
                    }
                }
            },
            id="volume",
        ),
    ],
)
def test_objects_are_the_same(type_: type[Message], wire: bytes, written: Json) -> None:
    binary = Decoder(type_).decode_response(MAGIC + field(2, wire))
    assert binary == json_objects.decode(msgspec.json.encode(written), type_)
    assert binary != type_()


def test_the_claims_of_a_stateful_set_are_the_same() -> None:
    """In protobuf the source of a volume is a message of its own."""
    volumes = [
        {"name": "www", "persistentVolumeClaim": {"claimName": "assets"}},
        {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {}}},
    ]
    spec = {
        "template": {"spec": {"volumes": volumes}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
        "ordinals": {"start": 3},
    }
    text = json_objects.decode(msgspec.json.encode({"spec": spec}), StatefulSet)
    binary = Decoder(StatefulSet).decode_response(MAGIC + field(2, STATEFUL_SET))
    assert binary.claims == text.claims
    assert binary.claims.of("db-3") == ("data-db-3", "assets")
    assert binary.claims.start == 3
    assert [volume.is_ephemeral for volume in binary.template.spec.volumes] == [False, True]
    assert [volume.is_ephemeral for volume in text.template.spec.volumes] == [False, True]
