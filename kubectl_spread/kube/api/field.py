"""Field errors: one error of the API, with the texts of its types.

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
    """One error of the API: the field's path, and the whole text with path, type, value and detail."""

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
    """Return the error of a value that is wrong."""
    shown = _quoted(value) if isinstance(value, str) else value
    return FieldError(path, f"{path}: Invalid value: {shown}: {detail}")


def required(path: FieldPath, detail: str) -> FieldError:
    """Return the error of a value that is missing."""
    return FieldError(path, f"{path}: Required value: {detail}")


def forbidden(path: FieldPath, detail: str) -> FieldError:
    """Return the error of a field that must not be set."""
    return FieldError(path, f"{path}: Forbidden: {detail}")


def unsupported(path: FieldPath, value: str, supported: Iterable[str]) -> FieldError:
    """Return the error of a value that is none of the supported ones."""
    allowed = ", ".join(_quoted(one) for one in supported)
    return FieldError(path, f"{path}: Unsupported value: {_quoted(value)}: supported values: {allowed}")


def duplicate(path: FieldPath, value: str) -> FieldError:
    """Return the error of a value that appears twice."""
    return FieldError(path, f"{path}: Duplicate value: {_quoted(value)}")
