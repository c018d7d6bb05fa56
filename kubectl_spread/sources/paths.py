"""Paths and addresses: questions about them, answered even where pathlib raises, and addresses without secrets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from kubectl_spread.errors import SourceError


def absolute(path: str | Path) -> Path:
    """Return a path that does not depend on the working directory.

    Raises:
        SourceError: The path is relative and the working directory no longer exists.
    """
    try:
        return Path(path).absolute()
    except OSError as error:
        raise SourceError(f"{path} is a relative path, and the working directory cannot be found") from error


def reason(error: OSError | ValueError) -> str:
    """Return why a path cannot be used, as the operating system words it."""
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return "a path cannot contain such a character"


_USER_INFORMATION: Final = re.compile(r"//[^/?#\s]*@")
_QUERY: Final = re.compile(r"[?#]\S*")


def without_secrets(text: str) -> str:
    """Return a text without the users in its addresses."""
    return _USER_INFORMATION.sub("//", text)


def without_query(address: str) -> str:
    """Return an address without user, query and fragment, which may contain tokens."""
    return _QUERY.sub("", without_secrets(address))
