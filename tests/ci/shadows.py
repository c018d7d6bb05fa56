"""A repository that tries to run its own code, by files that Python, pip or a shell may load instead of the real ones.

Each of them writes a mark, a file outside the repository, when it runs. Most then end the program with the exit
status 0, to make the check pass.
"""

from __future__ import annotations

import stat
import sys
import zipfile
from pathlib import Path
from typing import Final

IMPORTED: Final = ("click", "jinja2", "msgspec", "ruamel", "google", "yaml", "kubectl_spread")
"""Packages that the plugin imports, and the plugin itself."""
MODULES: Final = (
    *IMPORTED,
    *("contextlib", "json", "pathlib", "re", "sitecustomize", "typing", "usercustomize"),
    *("pip", "setup", "setuptools", "wheel"),
)
"""These packages, and the modules that the interpreter and pip import."""
PROGRAMS: Final = ("cat", "cp", "kubectl-spread", "python", "python3", "rm")
_MODULE: Final = """\
open({mark!r}, "w").close()
raise SystemExit(0)
"""


class Shadows:
    """The files, and the marks of those that ran."""

    def __init__(self, repository: Path, marks: Path) -> None:
        """Write files into a repository; ``marks`` is a directory outside it."""
        self._repository = repository
        self._marks = marks
        marks.mkdir()
        repository.mkdir(exist_ok=True)

    @property
    def ran(self) -> list[str]:
        """The names of the files that ran."""
        return sorted(path.name for path in self._marks.iterdir())

    def imports(self, names: tuple[str, ...] = MODULES) -> None:
        """Write modules, half of them as packages."""
        for number, name in enumerate(names):
            target = self._repository / f"{name}.py"
            if number % 2 or name == "kubectl_spread":
                target = self._repository / name / "__init__.py"
                target.parent.mkdir()
                (target.parent / "__main__.py").write_text(self._code(f"{name}.__main__"), encoding="utf-8")
            target.write_text(self._code(name), encoding="utf-8")

    def startup(self) -> None:
        """Write the files that Python loads at its start from virtual environments and user directories."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        for base in (self._repository, self._repository / ".venv"):
            packages = base / "lib" / version / "site-packages"
            packages.mkdir(parents=True)
            for directory in (packages, base):
                (directory / "shadow.pth").write_text(f"import os; {self._touch('pth')}\n", encoding="utf-8")
            (packages / "sitecustomize.py").write_text(self._code("site-packages"), encoding="utf-8")
            (base / "pyvenv.cfg").write_text("home = .\ninclude-system-site-packages = false\n", encoding="utf-8")
        (self._repository / "startup.py").write_text(self._code("startup"), encoding="utf-8")
        (self._repository / ".python-version").write_text("3.8\n", encoding="utf-8")

    def programs(self) -> None:
        """Write programs with the names that the commands call, for a shell with the directory in its PATH."""
        for directory in (self._repository, self._repository / ".venv" / "bin"):
            directory.mkdir(parents=True, exist_ok=True)
            for name in PROGRAMS:
                path = directory / name
                path.write_text(f"#!/bin/sh\n: > '{self._marks}/program-{name}'\n", encoding="utf-8")
                path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def packaging(self, *wheels: str) -> None:
        """Write files that pip reads or builds, and wheels with the names and versions of real ones."""
        root = str(self._repository)
        for name in ("pip.conf", "pip.ini", ".pip/pip.conf", ".config/pip/pip.conf"):
            path = self._repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"[install]\nfind-links = {root}\neditable = {root}\n", encoding="utf-8")
        (self._repository / "setup.cfg").write_text("[install]\nprefix = .\n", encoding="utf-8")
        build = '[build-system]\nrequires = []\nbuild-backend = "setup"\nbackend-path = ["."]\n'
        (self._repository / "pyproject.toml").write_text(build, encoding="utf-8")
        for wheel in wheels:
            name, version, _ = wheel.split("-", 2)
            with zipfile.ZipFile(self._repository / wheel, "w") as archive:
                archive.writestr(f"{name}.py", self._code(f"wheel-{name}"))
                information = f"{name}-{version}.dist-info"
                archive.writestr(
                    f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
                )
                archive.writestr(
                    f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
                )
                archive.writestr(f"{information}/RECORD", "")

    def all(self, *wheels: str) -> None:
        """Write all files."""
        self.imports()
        self.startup()
        self.programs()
        self.packaging(*wheels)

    def _code(self, name: str) -> str:
        return _MODULE.format(mark=str(self._marks / name))

    def _touch(self, name: str) -> str:
        return f"open({str(self._marks / name)!r}, 'w').close()"
