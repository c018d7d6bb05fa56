"""The value of ``--max-memory``: how much memory input may take."""

from __future__ import annotations

from kubectl_spread.errors import UsageError
from kubectl_spread.kube.api.quantity import thousandths
from kubectl_spread.sources import memory

_THOUSAND = 1000


def allow(size: str) -> None:
    """Set how much memory input may take.

    Args:
        size: A quantity of bytes, such as ``512Mi``.

    Raises:
        UsageError: It is not a size.
    """
    try:
        limit = thousandths(size) // _THOUSAND
    except ValueError:
        limit = 0
    if limit <= 0:
        raise UsageError(f'invalid size "{size}" of --max-memory: write a number of bytes such as 512Mi or 2Gi')
    memory.RUN.limit = limit
