"""The lock files pin the dependencies of the project; `make lock` writes them."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.environments import ROOT


def _project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _pinned(lock: str) -> dict[str, list[str]]:
    """Map each package of a lock file to the versions that it pins, one for each environment."""
    text = (ROOT / "release" / "locks" / lock).read_text()
    versions: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==(\S+)", text, flags=re.MULTILINE):
        versions.setdefault(canonicalize_name(name), []).append(version)
    return versions


@pytest.mark.parametrize(
    ("lock", "groups"),
    [("archive.txt", ()), ("audit.txt", ("audit",)), ("development.txt", ("dev",)), ("release.txt", ("release",))],
)
def test_every_dependency_is_pinned(lock: str, groups: tuple[str, ...]) -> None:
    """If this fails, run ``make lock``."""
    project = _project()
    required = project["project"]["dependencies"] if lock in {"archive.txt", "development.txt"} else []
    pinned = _pinned(lock)
    for text in chain(required, *(project["dependency-groups"][group] for group in groups)):
        requirement = Requirement(text)
        versions = pinned.get(canonicalize_name(requirement.name), [])
        assert versions, f"{lock} does not pin {text}"
        assert all(requirement.specifier.contains(version) for version in versions), f"{lock}: {versions} for {text}"


@pytest.mark.parametrize("lock", ["archive.txt", "audit.txt", "development.txt", "release.txt"])
def test_every_package_has_a_hash(lock: str) -> None:
    """Installers refuse a file with another hash."""
    text = (ROOT / "release" / "locks" / lock).read_text()
    for entry in re.split(r"\n(?=[\w.-]+(?:\[[\w,]+\])?==)", text):
        assert "--hash=sha256:" in entry
