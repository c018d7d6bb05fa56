"""The notes of a release: the section of its version in CHANGELOG.md."""

from __future__ import annotations

import re
from typing import Final

from kubectl_spread import __version__
from release.environments import REPOSITORY, ROOT

_SECTION: Final = r"^## {version}(?: [^\n]*)?\n(.*?)(?=^## |\Z)"
_RELATIVE: Final = re.compile(r"(?<=\]\()(?!\w+:)(?=[^)\s])")


def notes(changelog: str, version: str) -> str:
    """Return the section of a version, whose links are made absolute: a page of releases has no directory.

    Raises:
        LookupError: The changelog has no such section, or an empty one.
    """
    section = re.search(_SECTION.format(version=re.escape(version)), changelog, re.MULTILINE | re.DOTALL)
    if section is None or not section[1].strip():
        raise LookupError(f'CHANGELOG.md has no text below "## {version}"')
    return _RELATIVE.sub(f"{REPOSITORY}/blob/v{version}/", section[1].strip()) + "\n"


def current() -> str:
    """Return the notes of the version in the checkout."""
    return notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), __version__)
