"""The components of an archive, as CycloneDX."""

from __future__ import annotations

import json
import ssl
from collections.abc import Sequence
from importlib.metadata import Distribution
from pathlib import Path
from platform import python_version
from typing import Any

from kubectl_spread import __version__
from release.bundling import forget_others
from release.environments import ROOT, Environment


def write(target: Path, tools: Environment, environment: Environment, parts: Sequence[Distribution]) -> None:
    """Write the components of an archive, whose other distributions are removed from ``environment``."""
    forget_others(environment.packages, parts)
    options = ("--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible", "--mc-type", "application")
    document = json.loads(tools.run("-m", "cyclonedx_py", "environment", *options, str(environment.python)))
    document["components"] += _interpreter()
    # The version is in the code, not in the project file.
    document["metadata"]["component"]["version"] = __version__
    target.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8", newline="\n")


def _interpreter() -> list[dict[str, Any]]:
    """Return the components that are not Python packages."""
    openssl = ssl.OPENSSL_VERSION.split()[1]
    return [
        _component("cpython", python_version(), "python:python"),
        _component("openssl", openssl, "openssl:openssl"),
    ]


def _component(name: str, version: str, product: str) -> dict[str, Any]:
    return {
        "bom-ref": f"{name}=={version}",
        "cpe": f"cpe:2.3:a:{product}:{version}:*:*:*:*:*:*:*",
        "name": name,
        "purl": f"pkg:generic/{name}@{version}",
        "type": "library",
        "version": version,
    }
