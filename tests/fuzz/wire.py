"""Protobuf that is parsed without a schema, changed, and encoded again with right lengths."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final, TypeAlias

from tests.fuzz.hostile import TEXTS

_LENGTHS: Final = (0, 1, 127, 2**31 - 1, 2**32, 2**63, 2**64 - 1)
_BYTES: Final = 2
_FIXED: Final = {1: 8, 5: 4}

Value: TypeAlias = "int | bytes | list[Field]"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message: its number, its wire type and its value, where a list is a message."""

    number: int
    wire: int
    value: Value


def varint(number: int) -> bytes:
    """Encode a number below 2**64."""
    buffer = bytearray()
    while number > 0x7F:
        buffer.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*buffer, number])


def parse(body: bytes) -> list[Field] | None:
    """Return the fields of a message, or None if the bytes are not a message."""
    fields: list[Field] = []
    at = 0
    while at < len(body):
        tag, at = _varint(body, at)
        number, wire = tag >> 3, tag & 7
        size = _FIXED.get(wire, 0)
        value: Value = 0
        if wire in (0, _BYTES):
            if at == len(body):
                return None
            value, at = _varint(body, at)
            size = value if wire == _BYTES else 0
        if not number or wire not in (0, 1, 2, 5) or at + size > len(body):
            return None
        if wire:
            part = body[at : at + size]
            value = (parse(part) if wire == _BYTES and part else None) or part
            at += size
        fields.append(Field(number, wire, value))
    return fields


def encode(fields: list[Field]) -> bytes:
    """Return the bytes of a message."""
    return b"".join(_encoded(field) for field in fields)


def odd(fields: list[Field], chance: random.Random) -> list[Field]:
    """Return the fields of a message with one change at any depth."""
    index = chance.randrange(len(fields)) if fields else 0
    before, behind = fields[:index], fields[index + 1 :]
    field = fields[index] if fields else Field(1, 0, 0)
    if isinstance(field.value, list) and chance.random() < 0.85:
        return [*before, Field(field.number, field.wire, odd(field.value, chance)), *behind]
    match chance.randrange(7):
        case 0:
            return [*before, *behind]
        case 1:
            return [*before, *[field] * chance.choice((2, 50)), *behind]
        case 2:
            number = chance.choice((1, 2, 3, 8, 15, 16, 536_870_911))
            return [*before, Field(number, field.wire, field.value), *behind]
        case 3:
            return [*before, Field(field.number, 0, chance.choice(_LENGTHS)), *behind]
        case 4:
            return [*before, Field(field.number, _BYTES, chance.choice(TEXTS).encode()), *behind]
        case 5:
            return [*before, Field(field.number, _BYTES, chance.randbytes(chance.randrange(20))), *behind]
    deep = field
    for _ in range(chance.choice((5, 90, 110, 3000))):
        deep = Field(field.number, _BYTES, encode([deep]))
    return [*before, deep, *behind]


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """Return a number and its end; for a number that is cut off, 0 and the end of the body."""
    number = 0
    for index in range(at, min(at + 10, len(body))):
        number |= (body[index] & 0x7F) << 7 * (index - at)
        if body[index] < 0x80:
            return number, index + 1
    return 0, len(body)


def _encoded(field: Field) -> bytes:
    tag = varint(field.number << 3 | field.wire)
    if isinstance(field.value, int):
        return tag + varint(field.value)
    body = encode(field.value) if isinstance(field.value, list) else field.value
    return tag + varint(len(body)) + body if field.wire == _BYTES else tag + body
