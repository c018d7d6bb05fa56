"""Addresses that may be shown: user names and secrets are removed."""

from __future__ import annotations

import re
from typing import Final

_USER_INFORMATION: Final = re.compile(r"//[^/?#\s]*@")
_QUERY: Final = re.compile(r"[?#]\S*")


def without_secrets(text: str) -> str:
    """Return a text without the users in its addresses."""
    return _USER_INFORMATION.sub("//", text)


def without_query(address: str) -> str:
    """Return an address without user, query and fragment, which may contain tokens."""
    return _QUERY.sub("", without_secrets(address))
