"""Digests: sixteen bytes that stand for a value among all others of its kind, where values are many and large."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import msgspec

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def digest(value: object) -> bytes:
    """Return the same bytes for equal values; what of a value is written as JSON decides what is equal."""
    return blake2b(_ENCODER.encode(value), digest_size=16).digest()
