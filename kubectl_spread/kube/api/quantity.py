"""Quantities: which numbers do the texts of resources, percentages and counts stand for?

Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go and pkg/util/intstr/intstr.go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NewType

Quantity = NewType("Quantity", str)
"""A quantity as it is written, such as ``500m`` or ``1.5Gi``; a message in protobuf, a string or number in JSON."""

_QUANTITY: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)")
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_LONGEST: Final = 256
_LARGEST_EXPONENT: Final = 2 * _LONGEST
_LARGEST: Final = (2**63 - 1) * 1000
PERCENT: Final = re.compile("([0-9]{1,9})%")
"""A percentage."""
_HUNDRED: Final = 100
_MOST_DIGITS: Final = 19
"""The digits of the largest number of 64 bits; Python refuses to convert thousands of them."""


@lru_cache(maxsize=4096)
def thousandths(text: str) -> int:
    """Return a quantity in thousandths, rounded away from zero as the API stores it.

    A number that exceeds the scheduler's 64 bits becomes the largest or smallest number of 64 bits.

    Raises:
        ValueError: The text is not a quantity.

    Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go, ParseQuantity, and
    pkg/apis/core/v1/defaults.go, SetDefaults_ResourceList.
    """
    stripped = text.strip()
    match = _QUANTITY.fullmatch(stripped) if 0 < len(stripped) <= _LONGEST else None
    scale = None if match is None else _scale(match[4])
    if match is None or scale is None:
        raise ValueError(f'"{text}" is not a quantity, such as 500m, 1.5 or 2Gi')
    sign, whole, fraction = match[1], match[2], match[3] or ""
    twos, tens = scale
    number = int(f"0{whole}{fraction}") << twos
    tens += 3 - len(fraction)
    number = number * 10**tens if tens >= 0 else divide_up(number, 10**-tens)
    number = min(number, _LARGEST)
    return -number if sign == "-" else number


def comparable(text: str) -> int | str:
    """Return a value that is equal for equal amounts: their thousandths, or the text where it is not a quantity."""
    try:
        return thousandths(text)
    except ValueError:
        return text


def _scale(suffix: str) -> tuple[int, int] | None:
    """Return the powers of two and of ten that a suffix stands for; None if it is not a suffix."""
    if suffix in _DECIMAL:
        return 0, _DECIMAL[suffix]
    if suffix in _BINARY:
        return _BINARY[suffix], 0
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        return None
    # Beyond this exponent every number is too large or too small for the API.
    return 0, max(-_LARGEST_EXPONENT, min(int(exponent[1]), _LARGEST_EXPONENT))


def scaled(amount: int | str, total: int | None, *, up: bool = True) -> int | None:
    """Return a number, or a percentage of ``total`` rounded up or down; None for another text or an unknown total.

    Source: kubernetes v1.37.1 staging/src/k8s.io/apimachinery/pkg/util/intstr/intstr.go,
    GetScaledValueFromIntOrPercent.
    """
    if isinstance(amount, int):
        return amount
    percent = PERCENT.fullmatch(amount)
    if percent is None or total is None:
        return None
    hundredths = int(percent[1]) * total
    return divide_up(hundredths, _HUNDRED) if up else hundredths // _HUNDRED


def whole_number(text: str, most: int | None = None) -> int | None:
    """Return the number that ASCII digits stand for; None for another text, and for more than ``most`` or 64 bits."""
    if len(text) > _MOST_DIGITS or not (text.isascii() and text.isdecimal()):
        return None
    number = int(text)
    return None if most is not None and number > most else number


def divide_up(number: int, divisor: int) -> int:
    """Return a quotient, rounded up."""
    return -(-number // divisor)
