"""The declared fields of the types in ``kube.api``, in a form for decoders."""

from __future__ import annotations

from enum import Enum, auto
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from kubectl_spread.kube.api.quantity import Quantity
from kubectl_spread.kube.api.types import SHARED, IntOrString, Message


class Cardinality(Enum):
    """How a field holds values of its type."""

    ONE = auto()
    MANY = auto()
    MAP = auto()


class DeclaredField(msgspec.Struct, frozen=True):
    """A field of a message.

    Attributes:
        name: Its name in Python.
        json_name: Its name in JSON and YAML.
        number: Its number in protobuf; 0 in messages that are never protobuf.
        shape: Whether it holds one value, many, or a map from string to string.
        type: The type of one value: a ``Message``, str, int, bool, ``datetime``, ``IntOrString`` or ``msgspec.Raw``.
        optional: Whether absent and empty values differ.
        shared: Whether pods of one template share it.
        limits: The smallest and the largest integer; None for any, or for other types.
        quantities: Whether the values of a map are quantities, which are messages in protobuf and may be numbers in
            JSON; they are text here.
    """

    name: str
    json_name: str
    number: int
    shape: Cardinality
    type: type
    optional: bool
    shared: bool
    limits: tuple[int, int] | None
    quantities: bool


@cache
def fields(message: type[Message]) -> tuple[DeclaredField, ...]:
    """Return the fields of ``message`` in the order of their declaration."""
    return tuple(_field(info.name, info.encode_name, info.type) for info in msgspec.structs.fields(message))


def _field(name: str, json_name: str, hint: Any) -> DeclaredField:
    notes: tuple[object, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        notes = tuple(rest)
    optional = get_origin(hint) in {Union, UnionType}
    if optional:
        choices = [choice for choice in get_args(hint) if choice is not NoneType]
        if len(choices) > 1:
            notes += tuple(note for choice in choices for note in get_args(choice)[1:])
        hint = choices[0] if len(choices) == 1 else IntOrString
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        notes += tuple(rest)
    shape = {tuple: Cardinality.MANY, dict: Cardinality.MAP}.get(get_origin(hint), Cardinality.ONE)
    return DeclaredField(
        name=name,
        json_name=json_name,
        number=next((note for note in notes if isinstance(note, int)), 0),
        shape=shape,
        type=hint if shape is Cardinality.ONE else get_args(hint)[0],
        optional=optional,
        shared=SHARED in notes,
        limits=next(filter(None, map(_limits, notes)), None),
        quantities=Quantity in get_args(hint),
    )


def _limits(note: object) -> tuple[int, int] | None:
    if isinstance(note, msgspec.Meta) and isinstance(note.ge, int) and isinstance(note.le, int):
        return note.ge, note.le
    return None
