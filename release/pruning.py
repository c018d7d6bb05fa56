"""Removes the modules of the kubernetes package that the plugin does not import.

The package has models and calls for each kind of object, twice: over 100 MB. The plugin imports it only to log in
within a pod, and that import needs the modules below.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

MODULES: Final = frozenset(
    {
        "client/__init__.py",
        "client/api_client.py",
        "client/api_response.py",
        "client/configuration.py",
        "client/exceptions.py",
        "client/rest.py",
        "utils/_retry_base.py",
        "utils/keepalive.py",
        "utils/retry.py",
    }
)
EMPTIED: Final = frozenset({"__init__.py", "client/models/__init__.py", "utils/__init__.py"})
"""Packages of modules that stay; their own code would import the modules that do not."""


def prune(packages: Path) -> None:
    """Remove the other modules of the kubernetes package from a directory of packages.

    Raises:
        FileNotFoundError: A module that must stay is missing.
    """
    package = packages / "kubernetes"
    for name in MODULES | EMPTIED:
        if not (package / name).is_file():
            raise FileNotFoundError(f"{package / name}: the kubernetes package is laid out in another way")
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        if name in EMPTIED:
            path.write_text("", encoding="utf-8")
        elif name not in MODULES and not name.startswith("config/"):
            path.unlink()
