"""Random changes of bytes and JSON values."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any, Final

from tests.fuzz import corpus
from tests.fuzz.hostile import NUMBERS, TEXTS, TOKENS, WRITTEN

_MOST: Final = 4
_PLACE: Final = "@written@"


def damaged(body: bytes, chance: random.Random) -> bytes:
    """Return the bytes with a few changes."""
    for _ in range(chance.randint(1, _MOST)):
        start = chance.randint(0, len(body))
        end = min(len(body), start + chance.choice((0, 1, 1, 2, 8, 64, 512)))
        body = chance.choice(_DAMAGES)(body, start, end, chance)
    return body


def _put(body: bytes, start: int, _end: int, chance: random.Random) -> bytes:
    return body[:start] + chance.choice(TOKENS) + body[start:]


def _overwrite(body: bytes, start: int, end: int, chance: random.Random) -> bytes:
    return body[:start] + chance.choice(TOKENS) + body[end:]


def _flip(body: bytes, start: int, end: int, chance: random.Random) -> bytes:
    return body[:start] + bytes(byte ^ 1 << chance.randrange(8) for byte in body[start:end]) + body[end:]


def _cut(body: bytes, start: int, end: int, _chance: random.Random) -> bytes:
    return body[:start] + body[end:]


def _end(body: bytes, start: int, _behind: int, _chance: random.Random) -> bytes:
    return body[:start]


def _repeat(body: bytes, start: int, end: int, chance: random.Random) -> bytes:
    return body[:start] + body[start:end] * chance.choice((2, 3, 100)) + body[end:]


def _splice(body: bytes, start: int, _end: int, chance: random.Random) -> bytes:
    donor = chance.choice(corpus.texts())
    return body[:start] + donor[chance.randint(0, len(donor)) :]


_DAMAGES: Final[tuple[Callable[[bytes, int, int, random.Random], bytes], ...]] = (
    _put,
    _put,
    _overwrite,
    _flip,
    _cut,
    _end,
    _repeat,
    _splice,
)


def odd(value: Any, chance: random.Random) -> Any:
    """Return a copy of a JSON value with a few changes."""
    for _ in range(chance.randint(1, _MOST)):
        value = _changed(value, chance, chance.randint(0, 9))
    return value


def _changed(value: Any, chance: random.Random, depth: int) -> Any:
    """Return a copy with one change, ``depth`` levels down or at the last level."""
    if depth and isinstance(value, dict) and value:
        key = chance.choice(list(value))
        return {**value, key: _changed(value[key], chance, depth - 1)}
    if depth and isinstance(value, list) and value:
        index = chance.randrange(len(value))
        return [*value[:index], _changed(value[index], chance, depth - 1), *value[index + 1 :]]
    if isinstance(value, dict) and chance.random() < 0.7:
        return _changed_keys(value, chance)
    if isinstance(value, list) and chance.random() < 0.5:
        return value * chance.choice((0, 2, 50)) if chance.random() < 0.5 else [*value, _hostile(chance)]
    if isinstance(value, str) and chance.random() < 0.4:
        return value + chance.choice(TEXTS)
    return _hostile(chance)


def _changed_keys(value: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    donor = chance.choice(corpus.objects())
    match chance.randrange(5):
        case 0 if value:
            gone = chance.choice(list(value))
            return {key: field for key, field in value.items() if key != gone}
        case 1 if value:
            renamed = chance.choice(list(value))
            return {chance.choice(TEXTS) if key == renamed else key: field for key, field in value.items()}
        case 2:
            return {**value, chance.choice(TEXTS): chance.choice(TEXTS)}
        case 3:
            key = chance.choice(list(donor))
            return {**value, key: donor[key]}
    return {**value, chance.choice(list(value) or ["kind"]): _hostile(chance)}


def _hostile(chance: random.Random) -> Any:
    match chance.randrange(8):
        case 0 | 1:
            return chance.choice(NUMBERS)
        case 2 | 3:
            return f"{_PLACE}{chance.randrange(len(WRITTEN))}{_PLACE}"
        case 4:
            return chance.choice((None, True, False, [], {}, [None], {"": None}))
        case 5:
            return chance.choice(corpus.objects())
    return chance.choice(TEXTS)


def written(text: str) -> str:
    """Return JSON or YAML with the values for which ``_hostile`` has put placeholders."""
    for index, value in enumerate(WRITTEN):
        text = re.sub(f"[\"']{_PLACE}{index}{_PLACE}[\"']", lambda _: value, text)  # noqa: B023 - used at once
    return text
