"""Kubeconfigs with embedded certificates, which can be copied anywhere."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

from tests.controlplane.certificates import KeyPair


def write(path: Path, server: str, authority: Path, credential: KeyPair | str) -> Path:
    """Write a kubeconfig for a client certificate, or for a bearer token when given a string."""
    if isinstance(credential, str):
        user = {"token": credential}
    else:
        user = {
            "client-certificate-data": _encoded(credential.certificate),
            "client-key-data": _encoded(credential.key),
        }
    cluster = {"server": server, "certificate-authority-data": _encoded(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": cluster}],
        "users": [{"name": "tests", "user": user}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
        "current-context": "tests",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    # JSON is YAML, so kubectl reads it.
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path


def _encoded(path: Path) -> str:
    return b64encode(path.read_bytes()).decode()
