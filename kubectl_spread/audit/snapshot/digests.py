"""Digests: sixteen bytes that identify a value, where values are many and large."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import msgspec

ENCODER: Final = msgspec.json.Encoder(order="deterministic")
"""Encodes equal values to equal bytes."""


def digest(value: object) -> bytes:
    """Return the same bytes for equal values; values with the same JSON are equal."""
    return blake2b(ENCODER.encode(value), digest_size=16).digest()


class Digests:
    """The digests of a series of values, where consecutive values often share their objects."""

    def __init__(self) -> None:
        self._last: tuple[object] = (None,)
        self._digest = digest(None)

    def of(self, value: object) -> bytes:
        """Return the digest of a value."""
        # Tuples compare their items by identity first, which is enough for pods of one template.
        if (value,) != self._last:
            self._last, self._digest = (value,), digest(value)
        return self._digest
