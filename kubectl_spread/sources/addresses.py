"""Addresses as they may be shown: what they say about users is taken out."""

from __future__ import annotations

import re
from typing import Final

_USER_INFORMATION: Final = re.compile(r"//[^/?#\s]*@")
_QUERY: Final = re.compile(r"[?#]\S*")


def without_secrets(text: str) -> str:
    """Return a text without what the addresses in it say about users."""
    return _USER_INFORMATION.sub("//", text)


def without_query(address: str) -> str:
    """Return an address without user, query and fragment, in which tokens may be."""
    return _QUERY.sub("", without_secrets(address))
