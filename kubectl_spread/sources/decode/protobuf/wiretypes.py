"""Fields with a wrong wire type: parsers of protobuf skip them as if they were unknown, and API servers refuse them.

A page is parsed once more into a single message, in which the values of all its objects are merged, because parsing is
cheap and a test of each object in Python is not. An unknown field of the merged message is either undeclared or a
declared field with another wire type. Most undeclared fields are learned from some objects first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from google.protobuf.message import DecodeError as ProtobufError
from google.protobuf.unknown_fields import UnknownFieldSet

from kubectl_spread.errors import SourceError
from kubectl_spread.kube.api.types import Message
from kubectl_spread.sources.decode.protobuf import descriptors
from kubectl_spread.sources.decode.protobuf.descriptors import LIST_ENVELOPE, Skipped
from kubectl_spread.sources.decode.protobuf.envelope import MALFORMED

_SAMPLES: Final = 16
"""The number of objects of a list that are searched for undeclared fields."""
_MOST_SKIPPED: Final = 500
"""The number of undeclared fields that are learned at most; other ones are tested each time."""


class WireTypes:
    """Refuses wire types that an API server's decoder would refuse, in messages of one type.

    Attributes:
        skipped: The undeclared fields that were learned.
    """

    def __init__(self, root: type[Message]) -> None:
        """Prepare for messages of ``root``."""
        self._root = root
        self.skipped: frozenset[Skipped] = frozenset()
        self._classes = descriptors.merged_classes(root)
        self._declared = {
            name: {field.number: field.name for field in message.DESCRIPTOR.fields}
            for name, message in self._classes.items()
        }

    def check(self, name: str, body: bytes | bytearray) -> frozenset[Skipped]:
        """Check that all declared fields of a message have their wire type.

        Args:
            name: The name of the message: of the root, or of an envelope.
            body: The message.

        Returns:
            The undeclared fields of the message that were not learned before.

        Raises:
            SourceError: A declared field has another wire type.
            ValueError: The bytes are not such a message.
        """
        parse = self._classes[name].FromString
        try:
            message = parse(body)
        except ProtobufError as error:
            raise ValueError(MALFORMED) from error
        return self.check_parsed(parse(body)) if _has_unknown(message) else frozenset()

    def check_parsed(self, message: Any) -> frozenset[Skipped]:
        """Check a parsed message as ``check`` does, except for the objects in it that are bytes."""
        unknown = frozenset(_unknown(message))
        for field in sorted(unknown):
            declared = self._declared[field.message].get(field.number)
            if declared is not None:
                msg = (
                    "Server returned an unexpected response: "
                    f"the field {declared} of {field.message} has wire type {field.wire}"
                )
                raise SourceError(msg)
        return unknown

    def check_list(self, body: bytes | bytearray, objects: Sequence[bytes]) -> None:
        """Check a list in its envelope and the objects in it as ``check`` does.

        Raises:
            SourceError: A declared field has another wire type.
            ValueError: The bytes are not a list.
        """
        self.learn(objects)
        undeclared = self.check(LIST_ENVELOPE, body)
        if len(objects) > _SAMPLES:
            self._learn(undeclared)

    def learn(self, objects: Sequence[bytes]) -> None:
        """Learn undeclared fields from some objects of a longer list, unless that was done before.

        Raises:
            SourceError: A declared field has another wire type.
            ValueError: The bytes of an object are not such an object.
        """
        if len(objects) > _SAMPLES and not self.skipped:
            step = len(objects) // _SAMPLES
            self.learn_from(objects[number] for number in range(0, len(objects), step))

    def learn_from(self, objects: Iterable[bytes]) -> None:
        """Check objects as ``check`` does, and learn their undeclared fields."""
        name = self._root.__name__
        self._learn(field for undecoded in objects for field in self.check(name, undecoded))

    def _learn(self, fields: Iterable[Skipped]) -> None:
        learned = {(field.message, field.number) for field in self.skipped}
        new = frozenset(
            field
            for field in fields
            if (field.message, field.number) not in learned and field.wire in descriptors.WIRES
        )
        if new and len(self.skipped) + len(new) <= _MOST_SKIPPED:
            self.skipped |= new
            self._classes = descriptors.merged_classes(self._root, self.skipped)


@cache
def of(root: type[Message]) -> WireTypes:
    """Return the only ``WireTypes`` of a type, so that all lists of the type share the learned fields."""
    return WireTypes(root)


def _has_unknown(message: Any) -> bool:
    """Tell whether a message, or a message in it, has unknown fields, and discard these."""
    size = message.ByteSize()
    message.DiscardUnknownFields()
    smaller: bool = message.ByteSize() < size
    return smaller


def _unknown(message: Any) -> Iterator[Skipped]:
    """Yield the unknown fields of a message and of the messages in it."""
    descriptor = message.DESCRIPTOR
    unknown = UnknownFieldSet(message)
    for index in range(len(unknown)):
        field = unknown[index]
        yield Skipped(descriptor.name, field.field_number, field.wire_type)
    for name in _messages_in(descriptor):
        if message.HasField(name):
            yield from _unknown(getattr(message, name))


@cache
def _messages_in(descriptor: Any) -> tuple[str, ...]:
    """Return the names of the fields that hold messages."""
    return tuple(field.name for field in descriptor.fields if field.message_type is not None)
