"""Go's durations, as in ``--request-timeout``."""

from __future__ import annotations

import math
import re
from typing import Final

from kubectl_spread.errors import UsageError

_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION: Final = re.compile(rf"\+?(?:{_PART.pattern})+")
_SECONDS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_LONGEST_IN_GO: Final = (2**63 - 1) / 1e9
_LONGEST: Final = 24 * 24 * 3600.0
"""Sockets count milliseconds in 31 bits."""


def seconds(text: str) -> float:
    """Return a duration such as ``1m30s``, or a plain number of seconds, in seconds; at most 24 days.

    Raises:
        UsageError: It is neither, or longer than Go can count.

    Source: kubernetes v1.37.1 client-go/tools/clientcmd/helpers.go, ParseTimeout.
    """
    number_of_seconds = math.inf
    if text.isascii() and text.isdigit():
        number_of_seconds = float(text)
    elif _DURATION.fullmatch(text):
        number_of_seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    if number_of_seconds > _LONGEST_IN_GO:
        msg = (
            "Invalid timeout value. Timeout must be a single integer in seconds, or an integer "
            "followed by a corresponding time unit (e.g. 1s | 2m | 3h)"
        )
        raise UsageError(msg)
    return min(number_of_seconds, _LONGEST)
