"""Message classes for parsers, which have the declared fields of a type and skip all others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from kubectl_spread.kube.api.types import IntOrString, Message, ObjectMeta
from kubectl_spread.sources.decode.protobuf.declaration import Cardinality, DeclaredField, fields

Classes: TypeAlias = Mapping[str, Any]
"""Maps the name of a message to its class."""
_FieldProto = descriptor_pb2.FieldDescriptorProto

SCALARS: Final = {
    str: _FieldProto.TYPE_STRING,
    int: _FieldProto.TYPE_INT64,
    bool: _FieldProto.TYPE_BOOL,
}
_INT32: Final = (-(2**31), 2**31 - 1)
_COMMON: Final[Mapping[str, Mapping[str, Any]]] = {
    "Entry": {"key": str, "value": str},
    "Quantity": {"string": str},
    "QuantityEntry": {"key": str, "value": "Quantity"},
    "Time": {"seconds": int},
    IntOrString.__name__: {"type": int, "number": _FieldProto.TYPE_INT32, "text": str},
    "FieldsV1": {"raw": _FieldProto.TYPE_BYTES},
}
"""The messages that no type declares, with the types of their fields in the order of their numbers."""


@cache
def classes(root: type[Message]) -> Classes:
    """Return the message classes for ``root`` by name; the parts that pods of one template share stay bytes."""
    return _message_classes(_description(root, merged=False))


def shallow_classes(root: type[Message]) -> Classes:
    """Return classes whose messages merge all values of a field; the parts that pods of one template share stay bytes.

    Annotations are a map, so that one of them can be read without decoding the others.
    """
    file = _description(root, merged=True)
    metadata = next(message for message in file.message_type if message.name == ObjectMeta.__name__)
    entry = metadata.nested_type.add(name="AnnotationsEntry")
    entry.options.map_entry = True
    for number, name in enumerate(_COMMON["Entry"], 1):
        _add_field(entry, name, number, str)
    number = _remove_field(metadata, "annotations").number
    _add_field(metadata, "annotations", number, f"{metadata.name}.{entry.name}").label = _FieldProto.LABEL_REPEATED
    return _message_classes(file)


def partial_classes(root: type[Message], left_out: Mapping[str, Collection[str]]) -> Classes:
    """Return classes as ``classes`` does, without some fields; ``left_out`` maps the name of a message to these."""
    file = _description(root, merged=False)
    for message in file.message_type:
        for name in left_out.get(message.name, ()):
            _remove_field(message, name)
    return _message_classes(file)


def protobuf_fields(type_: type[Message]) -> list[DeclaredField]:
    """Return the fields that have a number in protobuf."""
    return [field for field in fields(type_) if field.number]


def class_name(type_: type) -> str:
    """Return the name of the message that holds values of a type."""
    return {datetime: "Time", msgspec.Raw: "FieldsV1"}.get(type_, type_.__name__)


def _description(root: type[Message], *, merged: bool) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name=root.__name__, package=root.__name__)
    # Like proto2, but a string that is not UTF-8 is refused; proto2 would return it as bytes.
    file.syntax, file.edition = "editions", descriptor_pb2.EDITION_2023
    for type_ in _reachable(root, {root: None}):
        message = file.message_type.add(name=type_.__name__)
        for field in protobuf_fields(type_):
            is_bytes = field.shared or (not merged and field.shape is Cardinality.MAP)
            added = _add_field(
                message, field.name, field.number, _FieldProto.TYPE_BYTES if is_bytes else _type_of(field)
            )
            if field.shape is not Cardinality.ONE and not merged:
                added.label = _FieldProto.LABEL_REPEATED
    for name, types in _COMMON.items():
        message = file.message_type.add(name=name)
        for number, (field_name, field_type) in enumerate(types.items(), 1):
            _add_field(message, field_name, number, field_type)
    return file


def _message_classes(file: descriptor_pb2.FileDescriptorProto) -> Classes:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        message.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{message.name}"))
        for message in file.message_type
    }


def _reachable(message: type[Message], messages: dict[type[Message], None]) -> Collection[type[Message]]:
    for field in fields(message):
        if issubclass(field.type, Message) and field.type not in messages:
            messages[field.type] = None
            _reachable(field.type, messages)
    return messages


def _type_of(field: DeclaredField) -> Any:
    if field.shape is Cardinality.MAP:
        return "QuantityEntry" if field.quantities else "Entry"
    # The lower 32 bits of a longer varint, as the API server decodes it.
    return _FieldProto.TYPE_INT32 if field.type is int and field.limits == _INT32 else field.type


def _add_field(
    message: descriptor_pb2.DescriptorProto, name: str, number: int, type_: Any
) -> descriptor_pb2.FieldDescriptorProto:
    field = message.field.add(name=name, number=number, label=_FieldProto.LABEL_OPTIONAL)
    if isinstance(type_, int):
        field.type = type_  # type: ignore[assignment]
    elif type_ in SCALARS:
        field.type = SCALARS[type_]
    else:
        field.type = _FieldProto.TYPE_MESSAGE
        field.type_name = type_ if isinstance(type_, str) else class_name(type_)
    return field


def _remove_field(message: descriptor_pb2.DescriptorProto, name: str) -> descriptor_pb2.FieldDescriptorProto:
    return message.field.pop(next(index for index, field in enumerate(message.field) if field.name == name))
