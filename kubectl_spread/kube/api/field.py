"""Field paths, the steps from an object to one of its fields, and errors worded as the API server words them.

Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/util/validation/field, path.go and errors.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

_STEP: Final = re.compile(r"\[(\d+)\]|\[([^\]]*)\]|([^.\[\]]+)")


class MapKey(str):
    """A step to the value of a key of a map, which the API writes in brackets."""

    __slots__ = ()


class FieldPath(tuple[str | int, ...]):
    """A path whose text is the API's, such as ``spec.topologySpreadConstraints[0].matchLabelKeys``.

    Its steps are the names of fields, the indices of lists and the keys of maps.
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> FieldPath:
        """Parse the text of a path; the key of a map may not be a number or have a closing bracket."""
        return cls(int(index) if index else MapKey(key) if key else name for index, key, name in _STEP.findall(text))

    def __truediv__(self, step: str | int) -> FieldPath:
        return FieldPath((*self, step))

    def __str__(self) -> str:
        return "".join(f"[{step}]" if isinstance(step, MapKey | int) else f".{step}" for step in self).removeprefix(".")

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer (RFC 6901)."""
        return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in self)

    @property
    def order(self) -> tuple[tuple[bool, str | int], ...]:
        """A sort key: indices compare as numbers and precede names."""
        return tuple((isinstance(step, str), step) for step in self)

    def is_inside(self, root: FieldPath) -> bool:
        """Tell whether the path is of a field below ``root``."""
        return len(self) > len(root) and self[: len(root)] == root

    def moved(self, root: FieldPath, to: FieldPath) -> FieldPath:
        """Replace the beginning ``root`` with ``to``; other paths are unchanged."""
        return FieldPath((*to, *self[len(root) :])) if self[: len(root)] == root else self


def steps_of(pointer: str) -> list[str]:
    """Return the steps of a JSON pointer (RFC 6901)."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


POD_SPEC: Final = FieldPath(("spec",))
"""The path of a pod's spec in the pod."""


_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_LAST_OF_FOUR_DIGITS: Final = 0xFFFF


class FieldError(msgspec.Struct, frozen=True):
    """An error of the API: the path of the field, and the text with path, type, value and detail."""

    path: FieldPath
    message: str


def _quoted(value: str) -> str:
    """Quote as Go's ``%q`` does."""
    return f'"{"".join(_ESCAPES.get(char) or _escaped(char) for char in value)}"'


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x20 or code == 0x7F:  # noqa: PLR2004 - ASCII control characters
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_OF_FOUR_DIGITS else f"\\U{code:08x}"


def invalid(path: FieldPath, value: object, detail: str) -> FieldError:
    """Return the error of an invalid value: text, or what is JSON in the API."""
    quoted = _quoted(value) if isinstance(value, str) else msgspec.json.encode(value, order="deterministic").decode()
    return FieldError(path, f"{path}: Invalid value: {quoted}: {detail}")


def required(path: FieldPath, detail: str) -> FieldError:
    """Return the error of a missing value."""
    return FieldError(path, f"{path}: Required value: {detail}".removesuffix(": "))


def forbidden(path: FieldPath, detail: str) -> FieldError:
    """Return the error of a field that must not be set."""
    return FieldError(path, f"{path}: Forbidden: {detail}")


def unsupported(path: FieldPath, value: str, supported: Iterable[str]) -> FieldError:
    """Return the error of a value that is not supported."""
    allowed = ", ".join(_quoted(choice) for choice in supported)
    return FieldError(path, f"{path}: Unsupported value: {_quoted(value)}: supported values: {allowed}")


def duplicate(path: FieldPath, value: str) -> FieldError:
    """Return the error of a duplicate value."""
    return FieldError(path, f"{path}: Duplicate value: {_quoted(value)}")
