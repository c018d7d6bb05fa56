"""Digests: sixteen bytes that stand for a value among all others of its kind, where values are many and large."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import msgspec

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def digest(value: object) -> bytes:
    """Return the same bytes for equal values; what of a value is written as JSON decides what is equal."""
    return blake2b(_ENCODER.encode(value), digest_size=16).digest()


class Digests:
    """The digests of values that come one after the other, neighbours often of the same objects."""

    def __init__(self) -> None:
        """Start without any."""
        self._last: tuple[object] = (None,)
        self._digest = digest(None)

    def of(self, value: object) -> bytes:
        """Return the digest of a value."""
        # What is in a tuple is compared by identity first, which is all it takes for pods of one template.
        if (value,) != self._last:
            self._last, self._digest = (value,), digest(value)
        return self._digest
