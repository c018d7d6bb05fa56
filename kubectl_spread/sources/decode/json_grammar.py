"""The grammar of JSON: where a value ends in a text that may be cut off, why it is not JSON, where its fields begin."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from kubectl_spread.sources.decode.json_objects import Path

TRUNCATED: Final = "input data was truncated"
NO_KEY: Final = "object keys must be strings"
_MOST_LEVELS: Final = 1000
"""Decoders that follow brackets by recursion refuse deeper values."""
_HOPELESS: Final = 1 << 20
"""The number of levels at which the search for the end of a value is given up."""

_BLANKS: Final = rb"[ \t\r\n]*+"
_HEX: Final = rb"[0-9a-fA-F]"
_ESCAPE: Final = (
    rb'\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])' + _HEX + rb"{4}"
    rb"|u[dD][89abAB]" + _HEX + rb"{2}\\u[dD][c-fC-F]" + _HEX + rb"{2})"
)
_CHARACTERS: Final = rb'(?:[^"\\\x00-\x1f]++|' + _ESCAPE + rb")*+"
_STRING: Final = rb'"' + _CHARACTERS + rb'"'
_NUMBER: Final = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?(?![-+.0-9eE])"
_SCALAR: Final = rb"(?:" + _STRING + rb"|" + _NUMBER + rb"|true|false|null)"


def _with_brackets(value: bytes) -> bytes:
    """Return a pattern for ``value``, for lists of such values and objects of them: one match saves many steps."""
    member = _STRING + _BLANKS + rb":" + _BLANKS + value + _BLANKS
    mapping = rb"\{" + _BLANKS + rb"(?:" + member + rb"(?:," + _BLANKS + member + rb")*+)?+\}"
    element = value + _BLANKS
    sequence = rb"\[" + _BLANKS + rb"(?:" + element + rb"(?:," + _BLANKS + element + rb")*+)?+\]"
    return rb"(?:" + value + rb"|" + mapping + rb"|" + sequence + rb")"


_SHALLOW: Final = _with_brackets(_with_brackets(_SCALAR))
_CUT_OFF: Final = (
    _BLANKS + rb'(?:"' + _CHARACTERS + rb'(?:\\[^"\n]{0,11})?|-?[-+.0-9eE]*|t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?)\Z'
)
"""Matches the possible beginning of a token at the end of a text."""
_FAULTY_STRING: Final = _BLANKS + rb'"' + _CHARACTERS
_LOOSE_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_BRACKET: Final = rb"[{}\[\]]|" + _LOOSE_STRING
_TOKEN: Final = rb'[{}\[\],]|[^\s{}\[\],":]+|' + _LOOSE_STRING


class _State(Enum):
    """The next token: a pattern whose group is a mark of structure, and the problem if it does not match.

    A pattern is compiled when it is first needed, because that takes up to 20 ms, and YAML needs none.
    """

    VALUE = (rb"(?:" + _SHALLOW + rb"|([{\[]))", "invalid character")
    FIRST_ITEM = (rb"(?:" + _SHALLOW + rb"|([{\[\]]))", "invalid character")
    KEY = (rb"()" + _STRING, NO_KEY)
    FIRST_KEY = (rb"(?:(})|" + _STRING + rb")", NO_KEY)
    COLON = (rb"(:)", "expected ':'")
    IN_OBJECT = (rb"([,}])", "expected ',' or '}'")
    IN_ARRAY = (rb"([,\]])", "expected ',' or ']'")

    def __init__(self, pattern: bytes, problem: str) -> None:
        self._pattern = pattern
        self.problem = problem

    @cached_property
    def match(self) -> Callable[[bytearray, int], re.Match[bytes] | None]:
        return re.compile(_BLANKS + self._pattern).match


_OPENING: Final = {b"{": _State.FIRST_KEY, b"[": _State.FIRST_ITEM}
_INSIDE: Final = {ord("{"): (_State.IN_OBJECT, _State.KEY), ord("["): (_State.IN_ARRAY, _State.VALUE)}
"""Maps an open bracket to the state after a value inside it, and to the state after a comma."""


class Fault(NamedTuple):
    """The problem of a text that is not JSON, and the offset of the byte where it shows."""

    problem: str
    offset: int


class Scanner:
    """Follows one value from its first byte to its end, while more of the text is appended.

    Attributes:
        size: How many bytes of the value were read.
    """

    def __init__(self) -> None:
        """Start before the value."""
        self.size = 0
        self._state = _State.VALUE
        self._open = bytearray()
        self._depth = 0

    @property
    def is_too_deep(self) -> bool:
        """Whether nothing can decode the value, whatever else is wrong with it."""
        return self._depth > _MOST_LEVELS

    def reaches_end(self, body: bytearray, start: int, *, is_all: bool) -> bool | Fault:
        """Tell whether the value that begins at ``start`` ends in ``body``, or return the fault that it has.

        Args:
            body: The text. Between two calls more may be appended to it, and bytes before the value may be cut off.
            start: Where the value begins.
            is_all: Whether nothing more will be appended.
        """
        while token := self._state.match(body, start + self.size):
            end = token.end() - start
            if end + start == len(body) and body[-1:] not in b'"]}' and not is_all:
                return False
            if self._follow(token[1] or b"", end):
                return True
            if self._depth > _HOPELESS:
                break
        if re.compile(_CUT_OFF).match(body, start + self.size):
            return Fault(TRUNCATED, len(body) - start) if is_all else False
        return self._fault(body, start)

    def _follow(self, mark: bytes, end: int) -> bool:
        """Continue after a token that ends at ``end``; tell whether the value ends there, too."""
        self.size = end
        if mark in _OPENING:
            self._open += mark
            self._depth = max(self._depth, len(self._open))
            self._state = _OPENING[mark]
            return False
        if mark in (b"}", b"]"):
            self._open.pop()
        elif mark == b":":
            self._state = _State.VALUE
            return False
        elif self._state in (_State.KEY, _State.FIRST_KEY):
            self._state = _State.COLON
            return False
        if not self._open:
            return True
        self._state = _INSIDE[self._open[-1]][mark == b","]
        return False

    def _fault(self, body: bytearray, start: int) -> Fault:
        here = start + self.size
        blanks = re.compile(_BLANKS).match(body, here)
        where = blanks.end() if blanks else here
        problem = self._state.problem
        if string := re.compile(_FAULTY_STRING).match(body, here):
            if self._state in (_State.VALUE, _State.FIRST_ITEM, _State.KEY, _State.FIRST_KEY):
                where = string.end()
                problem = "invalid escaped character" if body[where] == ord("\\") else "invalid character"
        elif self._state in (_State.VALUE, _State.FIRST_ITEM) and body[where] in b"-0123456789":
            problem = "invalid number"
        elif self._state is _State.KEY and body[where] == ord("}"):
            problem = "trailing comma in object"
        elif self._state is _State.VALUE and self._open[-1:] == b"[" and body[where] == ord("]"):
            problem = "trailing comma in array"
        return Fault(problem, where - start)


def deepest(text: memoryview) -> int:
    """Return the offset of the bracket that first reaches the greatest depth."""
    depth, greatest, where = 0, 0, 0
    for token in re.finditer(_BRACKET, text):
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token[0], 0)
        if depth > greatest:
            greatest, where = depth, token.start()
    return where


def offset(raw: bytes, path: Path) -> int:
    """Return the offset of the field at ``path``: of its key, or of the item of a list.

    A field that the JSON value lacks has the offset of the innermost field around it.
    """
    begins, depth = 0, 0
    here: list[str | int | None] = []
    for token in re.finditer(_TOKEN, raw):
        text = token[0]
        if text in b"}]":
            here.pop()
        elif text == b",":
            # In a list the next index follows, in an object the next key, which is not read yet.
            here[-1] = here[-1] + 1 if isinstance(here[-1], int) else None
        else:
            is_key = bool(here) and here[-1] is None
            if is_key:
                here[-1] = key(text)
            if depth < len(here) and tuple(here) == path[: len(here)]:
                begins, depth = token.start(), len(here)
            if text in b"{[" and not is_key:
                here.append(None if text == b"{" else 0)
        if depth == len(path):
            break
    return begins


def key(text: bytes) -> str:
    """Return a key without its quotes and escapes; "" if it is not UTF-8."""
    try:
        return msgspec.json.decode(text, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # A decoder skips the keys of fields that no type declares, whatever their bytes.
        return ""
