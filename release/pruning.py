"""Of the kubernetes package, what reads kubeconfigs and sends requests.

It has models and calls for every kind of object, twice: over 100 MB that the plugin, which decodes
answers itself, never imports. What stays is found by the imports of ``kubectl_spread.sources``.
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
"""Packages of modules that stay, which would import those that do not."""


def prune(packages: Path) -> None:
    """Cut the kubernetes package in a directory of packages down.

    Raises:
        FileNotFoundError: It has not the modules that it is known for.
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
