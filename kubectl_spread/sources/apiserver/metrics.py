"""The feature gates in an API server's metrics, line by line."""

from __future__ import annotations

import re
from typing import Final

_METRIC: Final = b"kubernetes_feature_enabled{"
_NAME: Final = re.compile(rb'(?:^|,)\s*name="(\w+)"')
_VALUE: Final = re.compile(rb" ([01])\b")


def feature_gates(metrics: bytes | bytearray) -> dict[str, bool]:
    """Return the feature gates, in time linear in the text."""
    gates = {}
    start = metrics.find(_METRIC)
    while start >= 0:
        end = metrics.find(b"\n", start)
        end = len(metrics) if end < 0 else end
        if start == 0 or metrics[start - 1 : start] == b"\n":
            labels, _, value = bytes(metrics[start + len(_METRIC) : end]).partition(b"}")
            name, on = _NAME.search(labels), _VALUE.match(value)
            if name and on:
                gates[name[1].decode()] = on[1] == b"1"
        start = metrics.find(_METRIC, end)
    return gates
