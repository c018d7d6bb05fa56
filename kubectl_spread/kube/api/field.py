"""Field errors of the API, worded as the API server words them.

Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from kubectl_spread.kube.api.fieldpath import FieldPath

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


def invalid(path: FieldPath, value: str | int, detail: str) -> FieldError:
    """Return the error of an invalid value."""
    quoted = _quoted(value) if isinstance(value, str) else value
    return FieldError(path, f"{path}: Invalid value: {quoted}: {detail}")


def required(path: FieldPath, detail: str) -> FieldError:
    """Return the error of a missing value."""
    return FieldError(path, f"{path}: Required value: {detail}")


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
