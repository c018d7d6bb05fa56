"""Fields with a wrong wire type, which parsers of protobuf skip as if they were unknown, and API servers refuse.

A page is parsed once more into a single message, where the values of all its objects are merged: parsing is cheap, and
looking at each object in Python is not. What the merged message does not know is either a field that no model declares,
of which most are learned from some objects at first, or a declared field with another wire type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from google.protobuf.message import DecodeError as ProtobufError
from google.protobuf.unknown_fields import UnknownFieldSet

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import Message
from kubectl_spread.sources.decode import descriptors
from kubectl_spread.sources.decode.descriptors import MANY, Skipped

MALFORMED: Final = "malformed or truncated protobuf"
_SAMPLES: Final = 16
"""How many objects of a list are looked at for fields that no model declares."""
_MOST_SKIPPED: Final = 500
"""How many of these fields are learned; others are looked at each time."""


class WireTypes:
    """Refuses what an API server's decoder would refuse, in messages of one type."""

    def __init__(self, root: type[Message]) -> None:
        """Prepare for messages of ``root``."""
        self._root = root
        self._declared = descriptors.declared(root)
        self._skipped: frozenset[Skipped] = frozenset()
        self._classes = descriptors.merged_classes(root)

    def check(self, name: str, body: bytes | bytearray) -> None:
        """Do nothing if all declared fields of a message have their wire type.

        Args:
            name: The name of the message: of the root, or of an envelope.
            body: The message.

        Raises:
            SourceError: A field has another wire type.
            ValueError: This is not a such message.
        """
        self._new(name, body)

    def check_list(self, body: bytes | bytearray, objects: Sequence[bytes]) -> None:
        """Do nothing if all declared fields of a list in its envelope, and of its objects, have their wire type.

        Raises:
            SourceError: A field has another wire type.
            ValueError: This is not a list.
        """
        if len(objects) > _SAMPLES and not self._skipped:
            for number in range(0, len(objects), len(objects) // _SAMPLES):
                self._learn(self._new(self._root.__name__, objects[number]))
        new = self._new(MANY, body)
        if len(objects) > _SAMPLES:
            self._learn(new)

    def _new(self, name: str, body: bytes | bytearray) -> frozenset[Skipped]:
        """Return the fields that were not met before."""
        try:
            message = self._classes[name].FromString(body)
        except ProtobufError as error:
            raise ValueError(MALFORMED) from error
        found = frozenset(_unknown(message))
        for field in sorted(found):
            declared = self._declared[field.message].get(field.number)
            if declared is not None:
                msg = (
                    "Server returned an unexpected response: "
                    f"the field {declared} of {field.message} has wire type {field.wire}"
                )
                raise SourceError(msg)
        return found

    def _learn(self, found: Iterable[Skipped]) -> None:
        known = {(field.message, field.number) for field in self._skipped}
        new = frozenset(
            field
            for field in found
            if (field.message, field.number) not in known and descriptors.is_known_wire(field.wire)
        )
        if new and len(self._skipped) + len(new) <= _MOST_SKIPPED:
            self._skipped |= new
            self._classes = descriptors.merged_classes(self._root, self._skipped)


@cache
def of(root: type[Message]) -> WireTypes:
    """Return what checks messages of a type; it knows the fields that were skipped before."""
    return WireTypes(root)


def _unknown(message: Any) -> Iterator[Skipped]:
    """Yield the fields that a message and those in it do not know."""
    unknown = UnknownFieldSet(message)
    for index in range(len(unknown)):
        field = unknown[index]
        yield Skipped(message.DESCRIPTOR.name, field.field_number, field.wire_type)
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            yield from _unknown(value)
