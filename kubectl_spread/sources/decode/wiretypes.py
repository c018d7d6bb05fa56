"""Fields with a wrong wire type, which parsers of protobuf skip as if they were unknown, and API servers refuse.

A page is parsed once more into a single message, in which the values of all its objects are merged, because parsing is
cheap and a test of each object in Python is not. Unknown fields of the merged message are either fields that no type
declares, most of which are learned from some objects first, or declared fields with another wire type.
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
"""The number of objects of a list that are searched for undeclared fields."""
_MOST_SKIPPED: Final = 500
"""The number of undeclared fields that are learned; others are tested each time."""


class WireTypes:
    """Refuses wire types that an API server's decoder would refuse, in messages of one type."""

    def __init__(self, root: type[Message]) -> None:
        """Prepare for messages of ``root``."""
        self._root = root
        self._declared = descriptors.declared(root)
        self._skipped: frozenset[Skipped] = frozenset()
        self._classes = descriptors.merged_classes(root)

    def check(self, name: str, body: bytes | bytearray) -> None:
        """Check that all declared fields of a message have their wire type.

        Args:
            name: The name of the message: of the root, or of an envelope.
            body: The message.

        Raises:
            SourceError: A field has another wire type.
            ValueError: It is not such a message.
        """
        self._new(name, body)

    def check_list(self, body: bytes | bytearray, objects: Sequence[bytes]) -> None:
        """Check that all declared fields of a list in its envelope, and of its objects, have their wire type.

        Raises:
            SourceError: A field has another wire type.
            ValueError: It is not a list.
        """
        if len(objects) > _SAMPLES and not self._skipped:
            for number in range(0, len(objects), len(objects) // _SAMPLES):
                self._learn(self._new(self._root.__name__, objects[number]))
        new = self._new(MANY, body)
        if len(objects) > _SAMPLES:
            self._learn(new)

    def _new(self, name: str, body: bytes | bytearray) -> frozenset[Skipped]:
        """Return the fields that are not known yet."""
        try:
            message = self._classes[name].FromString(body)
        except ProtobufError as error:
            raise ValueError(MALFORMED) from error
        new = frozenset(_unknown(message))
        for field in sorted(new):
            declared = self._declared[field.message].get(field.number)
            if declared is not None:
                msg = (
                    "Server returned an unexpected response: "
                    f"the field {declared} of {field.message} has wire type {field.wire}"
                )
                raise SourceError(msg)
        return new

    def _learn(self, fields: Iterable[Skipped]) -> None:
        skipped = {(field.message, field.number) for field in self._skipped}
        new = frozenset(
            field
            for field in fields
            if (field.message, field.number) not in skipped and descriptors.is_known_wire(field.wire)
        )
        if new and len(self._skipped) + len(new) <= _MOST_SKIPPED:
            self._skipped |= new
            self._classes = descriptors.merged_classes(self._root, self._skipped)


@cache
def of(root: type[Message]) -> WireTypes:
    """Return the check for messages of a type, which remembers the fields that it skipped."""
    return WireTypes(root)


def _unknown(message: Any) -> Iterator[Skipped]:
    """Yield the unknown fields of a message and of the messages in it."""
    unknown = UnknownFieldSet(message)
    for index in range(len(unknown)):
        field = unknown[index]
        yield Skipped(message.DESCRIPTOR.name, field.field_number, field.wire_type)
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            yield from _unknown(value)
