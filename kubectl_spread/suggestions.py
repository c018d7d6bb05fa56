"""The nearest right word for a misspelt one, for error messages: commands, options, formats, kinds and rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_CLOSE: Final = 0.7
"""The similarity, by difflib, from which a word counts as misspelt; at 0.6 ``all`` would be near ``ml``."""


def nearest(word: str, names: Iterable[str], *, close: float = _CLOSE) -> str:
    """Return the name that is most similar to a word, in any letter case; "" if none is similar."""
    from difflib import get_close_matches  # noqa: PLC0415 - only errors need it

    spelt = {name.lower(): name for name in names}
    return next((spelt[match] for match in get_close_matches(word.lower(), spelt, n=1, cutoff=close)), "")


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return the end of an error message that suggests the nearest name; "" if none is similar."""
    name = nearest(word, names)
    return f'; did you mean "{name}"?' if name else ""
