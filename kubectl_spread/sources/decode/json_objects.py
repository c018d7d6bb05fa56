"""Typed objects from JSON; an error names the exact field whose value its declaration does not allow."""

from __future__ import annotations

import json
import math
import re
from datetime import datetime
from threading import Lock
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from kubectl_spread.errors import SpreadError
from kubectl_spread.kube.api.field import FieldPath, MapKey
from kubectl_spread.kube.api.types import IntOrString, ListMeta, Message, Pod, Time, TypeMeta
from kubectl_spread.kube.api.workloads import WorkloadObject
from kubectl_spread.sources.decode.protobuf.declaration import Cardinality, DeclaredField, fields
from kubectl_spread.sources.decode.resources import Page

T = TypeVar("T", bound=Message)
Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices that lead from an object to one of its fields."""
Json: TypeAlias = bytes | bytearray | memoryview | msgspec.Raw
ITEMS: Final = ("items",)
"""The path of the objects of a list."""
MOST_LEVELS: Final = 200
"""The most levels of lists and objects in a value that is followed by recursion."""
_TYPES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)
_NULL: Final = b"null"
_ZEROS: Final[dict[type, object]] = {str: "", int: 0, bool: False}
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
_DECODERS: Final[dict[type[Message], msgspec.json.Decoder[Any]]] = {}
_PREPARING: Final = Lock()


class MalformedFieldError(SpreadError):
    """A field has a value that its declaration does not allow.

    Attributes:
        path: The path to the field; empty for the object itself.
        problem: The problem, such as ``expected integer, got string``.
    """

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{format_path(path)}: {problem}")
        self.path = path
        self.problem = problem


class ListPage(TypeMeta, frozen=True):
    """One page of a list, its objects undecoded."""

    metadata: ListMeta = ListMeta()
    items: tuple[msgspec.Raw, ...] = ()


def field_path(path: Path) -> FieldPath:
    """Return a path whose text is the API's. A step that cannot be a field is the key of a map."""
    return FieldPath(step if isinstance(step, int) or _IDENTIFIER.fullmatch(step) else MapKey(step) for step in path)


def format_path(path: Path) -> str:
    """Write a path as the API does: ``spec.tolerations[0].key``."""
    return str(field_path(path))


def is_too_deep(value: object) -> bool:
    """Tell whether a JSON value is nested more deeply than ``MOST_LEVELS``."""
    level = [value]
    for _ in range(MOST_LEVELS + 1):
        collections = [outer for outer in level if isinstance(outer, dict | list)]
        level = [inner for outer in collections for inner in (outer.values() if isinstance(outer, dict) else outer)]
    return bool(level)


def decode(body: Json, type_: type[T]) -> T:
    """Decode one object; a null field counts as absent, as it does for Kubernetes.

    Raises:
        MalformedFieldError: A field has the wrong JSON type or an impossible number, or is nested too deeply.
        msgspec.DecodeError: The body is not JSON.
        UnicodeDecodeError: A string is not UTF-8.
    """
    try:
        try:
            return _decoder(type_).decode(body)
        except msgspec.ValidationError:
            # Rare: a null, which the fast decoder refuses, or a fault, whose place in a map it does not report.
            return _message(values(body), type_, ())
    except RecursionError as error:
        raise MalformedFieldError((), "nested too deeply") from error


def _decoder(type_: type[T]) -> msgspec.json.Decoder[T]:
    """Return the decoder of a type, which one thread prepares while all others wait.

    The first decoder of a type also prepares the type and the types of its fields. msgspec (0.22) lets other threads
    use these before they are complete, and the process then ends with a segmentation fault.
    """
    decoder = _DECODERS.get(type_)
    if decoder is None:
        with _PREPARING:
            decoder = _DECODERS[type_] = msgspec.json.Decoder(type_)
    return decoder


def decode_item(body: Json, type_: type[T]) -> T:
    """Decode an item of a list as ``decode`` does; every item that an API server lists has its spec.

    Raises:
        MalformedFieldError: It is a pod or workload without one, or as ``decode`` does.
        msgspec.DecodeError: The body is not JSON.
        UnicodeDecodeError: A string is not UTF-8.
    """
    decoded = decode(body, type_)
    if isinstance(decoded, Pod | WorkloadObject):
        spec = decoded.spec if isinstance(decoded, Pod) else decoded.template.spec
        # Only a spec without containers may be an absent one.
        if not spec.containers and is_null(fields_of(body).get(decoded.required)):
            raise MalformedFieldError((decoded.required,), "is missing")
    return decoded


def fields_of(body: Json) -> dict[str, msgspec.Raw]:
    """Return the undecoded fields of an object.

    Raises:
        MalformedFieldError: It is not an object.
        msgspec.DecodeError: The body is not JSON.
        UnicodeDecodeError: A key is not UTF-8.
    """
    try:
        return dict(msgspec.json.decode(body, type=dict[str, msgspec.Raw]))
    except msgspec.ValidationError as error:
        raise MalformedFieldError((), "expected object") from error


def is_null(body: Json | None) -> bool:
    """Tell whether a value is null or absent."""
    return body is None or bytes(body) == _NULL


def values(body: Json | None) -> Any:
    """Return JSON values, None for an absent one; numbers may have any size, as in fields that are not read.

    Raises:
        MalformedFieldError: It is nested too deeply.
        UnicodeDecodeError: A string is not UTF-8.
        ValueError: The body is not JSON.
    """
    if body is None:
        return None
    try:
        text = bytes(body).decode(errors="surrogatepass")
        return _LOOSE.decode(_HALF_OF_A_PAIR.sub("\N{REPLACEMENT CHARACTER}", text))
    except RecursionError as error:
        raise MalformedFieldError((), "nested too deeply") from error


def _integer(digits: str) -> float:
    """Return an integer, or one that has more digits than any field takes as a fraction."""
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)


def _fraction(digits: str) -> float:
    """Return a number, as int if it is one, as YAML has it."""
    value = float(digits)
    return int(value) if value.is_integer() else value


_LONGEST_INTEGER: Final = 19
_HALF_OF_A_PAIR: Final = re.compile(
    r"(?i)[\ud800-\udfff]|(?<!\\)\\u(?:d[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2}\\u)d[c-f][0-9a-f]{2})"
)
"""A surrogate without its other half, as an escape or not, which no output can have; Go reads U+FFFD too."""
_LOOSE: Final = json.JSONDecoder(parse_int=_integer, parse_float=_fraction)


def list_page(body: bytes) -> ListPage:
    """Decode one page of a list; its items may be null, as Go writes an empty list.

    Raises:
        MalformedFieldError: It has no items, or a field has another type.
        msgspec.DecodeError: The body is not JSON.
        UnicodeDecodeError: A string is not UTF-8.
    """
    listed = decode(body, ListPage)
    if not listed.items and ITEMS[0] not in fields_of(body):
        raise MalformedFieldError(ITEMS, "is missing")
    return listed


def page(listed: ListPage, type_: type[T]) -> Page[T]:
    """Return a page whose objects are decoded when they are reached, with the errors of ``decode_item``."""
    return Page(listed.metadata, listed.items, lambda record: decode_item(bytes(record), type_))


def _message(value: object, type_: type[T], path: Path) -> T:
    mapping = _expect(value, dict, path)
    return type_(
        **{
            field.name: _field(mapping[field.json_name], field, (*path, field.json_name))
            for field in fields(type_)
            if mapping.get(field.json_name) is not None
        }
    )


def _field(value: object, field: DeclaredField, path: Path) -> object:
    match field.shape:
        case Cardinality.ONE:
            return _within(_value(value, field.type, path), field.limits, path)
        case Cardinality.MANY:
            elements = enumerate(_expect(value, list, path))
            return tuple(_value(element, field.type, (*path, index)) for index, element in elements)
        case Cardinality.MAP:
            entries = _expect(value, dict, path).items()
            read = _quantity if field.quantities else _text
            return {key: read(entry, (*path, key)) for key, entry in entries}


def _within(value: object, limits: tuple[int, int] | None, path: Path) -> object:
    if limits is not None and isinstance(value, int) and not limits[0] <= value <= limits[1]:
        raise MalformedFieldError(path, f"integer is out of the range of int{1 + limits[1].bit_length()}")
    return value


def _text(value: object, path: Path) -> object:
    return _value(value, str, path)


def _quantity(value: object, path: Path) -> object:
    """Return a quantity as text; the API also accepts numbers, and null for zero."""
    if value is None:
        return "0"
    return str(_finite(value, path)) if type(value) in {int, float} else _text(value, path)


def _finite(value: object, path: Path) -> object:
    if isinstance(value, float) and math.isinf(value):
        raise MalformedFieldError(path, "number is out of range")
    return value


def _value(value: object, type_: type, path: Path) -> object:
    if issubclass(type_, msgspec.Raw):
        return msgspec.Raw(msgspec.json.encode(value))
    if issubclass(type_, Message):
        return _message({} if value is None else value, type_, path)
    if value is None:
        # Go decodes a null in a list or map as the zero value of the type.
        value = _ZEROS[type_]
    if issubclass(type_, datetime):
        return _time(value, path)
    if type_ is IntOrString:
        type_ = str if isinstance(value, str) else int
    if type_ is int and isinstance(value, float) and value.is_integer():
        # kubectl decodes 1.0 as a number and sends 1.
        return int(value)
    return _expect(value, type_, path)


def _expect(value: object, type_: type, path: Path) -> Any:
    if type(_finite(value, path)) is not type_:
        raise MalformedFieldError(path, f"expected {_name(type_)}, got {_name(type(value))}")
    return value


def _time(value: object, path: Path) -> datetime:
    try:
        return msgspec.convert(value, Time)
    except msgspec.ValidationError as error:
        raise MalformedFieldError(path, "expected a time as in RFC 3339") from error


def _name(type_: type) -> str:
    return next((name for python_type, name in _TYPES if python_type is type_), "null")
