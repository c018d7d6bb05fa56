"""A git repository with a copy of the shipped files, and its installation without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Final

from tests.generated import ROOT

_SHIPPED: Final = (".pre-commit-hooks.yaml", "CHANGELOG.md", "LICENSE", "README.md", "action.yml", "pyproject.toml")
_NOT_BORROWED: Final = ("kubectl_spread", "pip")
OFFLINE: Final = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_BUILD_ISOLATION": "0",
    "PIP_NO_DEPS": "1",
    "PIP_NO_INDEX": "1",
}
"""Makes pip install only the plugin, with the installed build backend; a value of 0 sets this flag of pip."""
_NOBODY: Final = {
    "GIT_AUTHOR_NAME": "tests",
    "GIT_AUTHOR_EMAIL": "tests@localhost",
    "GIT_COMMITTER_NAME": "tests",
    "GIT_COMMITTER_EMAIL": "tests@localhost",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


def copied(directory: Path) -> Path:
    """Copy the shipped files into a new directory, and return it."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("kubectl_spread", "release/locks"):
        shutil.copytree(ROOT / name, directory / name, ignore=ignored)
    for name in _SHIPPED:
        shutil.copy(ROOT / name, directory / name)
    return directory


def environment() -> dict[str, str]:
    """Return an environment without the git configuration of the user."""
    remaining = {
        name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PIP_", "PRE_COMMIT"))
    }
    return {**remaining, **_NOBODY}


def commit(directory: Path) -> str:
    """Commit all files of a directory, which becomes a git repository, and return the commit."""
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "as it is"]):
        subprocess.run(["git", *command], cwd=directory, env=environment(), check=True)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=directory, env=environment(), check=True, capture_output=True
    )
    return head.stdout.decode().strip()


def borrowed(directory: Path) -> Path:
    """Fill a directory with links to the installed dependencies of the plugin, for an environment without a network."""
    directory.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if path.suffix != ".pth" and not path.name.startswith(_NOT_BORROWED):
            (directory / path.name).symlink_to(path)
    return directory


def lend(repository: Path, packages: Path) -> None:
    """Let an installation of ``repository`` import the packages of another directory, in isolated mode too."""
    (repository / "borrowed.pth").write_text(f"{packages}\n", encoding="utf-8")
    with (repository / "pyproject.toml").open("a", encoding="utf-8") as project:
        project.write('\n[tool.hatch.build.targets.wheel.force-include]\n"borrowed.pth" = "borrowed.pth"\n')
