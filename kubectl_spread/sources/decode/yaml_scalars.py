"""The values of YAML scalars for Kubernetes, which reads YAML 1.1 as go-yaml v2 does.

Source: sigs.k8s.io/yaml v1.6.0, goyaml.v2/resolve.go.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final, TypeAlias

Scalar: TypeAlias = str | int | float | bool | None

INT: Final = "tag:yaml.org,2002:int"
FLOAT: Final = "tag:yaml.org,2002:float"
BOOL: Final = "tag:yaml.org,2002:bool"
NULL: Final = "tag:yaml.org,2002:null"
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    INT: (int,),
    FLOAT: (int, float),
    BOOL: (bool,),
    NULL: (type(None),),
}

_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE"), True),
    **dict.fromkeys(("on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE"), False),
    **dict.fromkeys(("off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)"
    r"|0[oO]?(?P<octal>[0-7]+)|(?P<decimal>0|[1-9][0-9]{0,19}))"
)
_BASES: Final = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_MIN: Final = -(2**63)
_MAX: Final = 2**64 - 1


@lru_cache(maxsize=4096)
def plain(text: str) -> Scalar:
    """Return the value of a scalar written without quotes and without a tag."""
    if text in _WORDS:
        return _WORDS[text]
    if not text[0].isascii() or text[0] not in "0123456789+-.":
        return text
    number = text.replace("_", "") if text[0] != "." else text
    integer = _integer(number)
    if integer is not None:
        return integer
    value = float(number) if _FLOAT.fullmatch(number) else math.inf
    return _as_json(value) if math.isfinite(value) else text


def tagged(text: str, tag: str) -> Scalar:
    """Return the value of a scalar with a tag; a tag that YAML does not define changes nothing.

    Raises:
        ValueError: The value does not have the type of the tag.
    """
    if tag not in _TYPES:
        return text
    value = plain(text)
    if type(value) not in _TYPES[tag]:
        raise ValueError(f"cannot decode the value as a !!{tag.rpartition(':')[2]}")
    return value


def as_key(value: Scalar) -> str:
    """Return the name of a key in JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _integer(text: str) -> int | None:
    """Read an integer of 64 bits as Go does with base 0; None: the text is not such an integer."""
    match = _INTEGER.fullmatch(text)
    if not match:
        return None
    kind = next(name for name in _BASES if match[name] is not None)
    value = int(match["sign"] + match[kind], _BASES[kind])
    return value if _MIN <= value <= _MAX else None


def _as_json(value: float) -> int | float:
    """Return an integral number as int, as Go writes it in JSON."""
    return int(value) if value.is_integer() else value
