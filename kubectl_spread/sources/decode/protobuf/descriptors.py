"""Message classes for parsers, which have the declared fields of a type and skip all others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from kubectl_spread.kube.api.types import IntOrString, ListMeta, Message, ObjectMeta, TypeMeta
from kubectl_spread.sources.decode.protobuf.declaration import Cardinality, DeclaredField, fields

Classes: TypeAlias = Mapping[str, Any]
"""Maps the name of a message to its class."""
_FieldProto = descriptor_pb2.FieldDescriptorProto

OBJECT_ENVELOPE: Final = "Unknown"
LIST_ENVELOPE: Final = "UnknownList"
"""The messages in which an API server sends one object or a list."""
SCALARS: Final = {
    str: _FieldProto.TYPE_STRING,
    int: _FieldProto.TYPE_INT64,
    bool: _FieldProto.TYPE_BOOL,
}
_INT32: Final = (-(2**31), 2**31 - 1)


@cache
def classes(root: type[Message]) -> Classes:
    """Return the message classes for ``root`` by name, among them the two envelopes.

    Parts that pods of one template share, and the objects of a list, stay bytes.
    """
    return _message_classes(_description(root, merged=False))


def shallow_classes(root: type[Message]) -> Classes:
    """Return classes whose messages merge all values of a field; the parts that pods of one template share stay bytes.

    Annotations are a map, so that one of them can be read without decoding the others.
    """
    file = _description(root, merged=True)
    by_name = {message.name: message for message in file.message_type}
    for type_ in _reachable(root, {root: None}):
        for field in protobuf_fields(type_):
            if field.shared:
                message = by_name[type_.__name__]
                _remove_field(message, field.name)
                _add_field(message, field.name, field.number, _FieldProto.TYPE_BYTES)
    _map_of_texts(by_name[ObjectMeta.__name__], "annotations")
    return _message_classes(file)


def partial_classes(root: type[Message], left_out: Mapping[str, Collection[str]]) -> Classes:
    """Return classes as ``classes`` does, without some fields; ``left_out`` maps the name of a message to these."""
    file = _description(root, merged=False)
    for message in file.message_type:
        for name in left_out.get(message.name, ()):
            _remove_field(message, name)
    return _message_classes(file)


def protobuf_fields(type_: type[Message]) -> list[DeclaredField]:
    """Return the fields that are protobuf_fields as protobuf."""
    return [field for field in fields(type_) if field.number]


def class_name(type_: type) -> str:
    """Return the name of the message that holds values of a type."""
    return {datetime: "Time", msgspec.Raw: "FieldsV1"}.get(type_, type_.__name__)


def _description(root: type[Message], *, merged: bool) -> descriptor_pb2.FileDescriptorProto:
    """Return a description of the messages of ``root``, which the caller may change."""
    file = descriptor_pb2.FileDescriptorProto()
    file.CopyFrom(_described(root, merged=merged))
    return file


@cache
def _described(root: type[Message], *, merged: bool) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name=root.__name__, package=root.__name__)
    # Like proto2, but a string that is not UTF-8 is refused; proto2 would return it as bytes.
    file.syntax, file.edition = "editions", descriptor_pb2.EDITION_2023
    messages = list(_reachable(root, {TypeMeta: None, ListMeta: None, root: None}))
    file.message_type.extend(_message(message, merged=merged) for message in messages)
    file.message_type.append(_declared_message("Entry", key=(1, SCALARS[str]), value=(2, SCALARS[str])))
    file.message_type.append(_declared_message("Quantity", string=(1, SCALARS[str])))
    file.message_type.append(_declared_message("QuantityEntry", key=(1, SCALARS[str]), value=(2, "Quantity")))
    file.message_type.append(_declared_message("Time", seconds=(1, SCALARS[int])))
    number_or_text = {"type": (1, SCALARS[int]), "number": (2, _FieldProto.TYPE_INT32), "text": (3, SCALARS[str])}
    file.message_type.append(_declared_message(IntOrString.__name__, **number_or_text))
    file.message_type.append(_declared_message("FieldsV1", raw=(1, _FieldProto.TYPE_BYTES)))
    object_type = root if merged else _FieldProto.TYPE_BYTES
    file.message_type.append(_declared_message("List", metadata=(1, ListMeta), items=(2, object_type)))
    if not merged:
        file.message_type[-1].field[-1].label = _FieldProto.LABEL_REPEATED
    # Upstream declares raw as bytes, which a parser would copy. A message has the same wire type.
    file.message_type.append(_declared_message(LIST_ENVELOPE, raw=(2, "List")))
    file.message_type.append(_declared_message(OBJECT_ENVELOPE, raw=(2, root)))
    return file


def _message_classes(file: descriptor_pb2.FileDescriptorProto) -> Classes:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        message.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{message.name}"))
        for message in file.message_type
    }


def _reachable(message: type[Message], messages: dict[type[Message], None]) -> Iterable[type[Message]]:
    for field in fields(message):
        if issubclass(field.type, Message) and field.type not in messages:
            messages[field.type] = None
            _reachable(field.type, messages)
    return messages


def _declared_message(name: str, **declared_fields: tuple[int, Any]) -> descriptor_pb2.DescriptorProto:
    message = descriptor_pb2.DescriptorProto(name=name)
    for field, (number, type_) in declared_fields.items():
        _add_field(message, field, number, type_)
    return message


def _message(type_: type[Message], *, merged: bool) -> descriptor_pb2.DescriptorProto:
    message = descriptor_pb2.DescriptorProto(name=type_.__name__)
    for field in protobuf_fields(type_):
        wire = _type_of(field) if merged or not _kept_as_bytes(field) else _FieldProto.TYPE_BYTES
        added = _add_field(message, field.name, field.number, wire)
        if field.shape is not Cardinality.ONE and not merged:
            added.label = _FieldProto.LABEL_REPEATED
    return message


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
    index = next(index for index, field in enumerate(message.field) if field.name == name)
    return message.field.pop(index)


def _map_of_texts(message: descriptor_pb2.DescriptorProto, name: str) -> None:
    """Declare a field, whose entries were bytes, as a map of texts."""
    entry = message.nested_type.add(name=f"{name.title()}Entry")
    entry.options.map_entry = True
    for number, part in enumerate(("key", "value"), 1):
        _add_field(entry, part, number, str)
    field = _add_field(message, name, _remove_field(message, name).number, f"{message.name}.{entry.name}")
    field.label = _FieldProto.LABEL_REPEATED


def _kept_as_bytes(field: DeclaredField) -> bool:
    return field.shared or field.seldom or field.shape is Cardinality.MAP
