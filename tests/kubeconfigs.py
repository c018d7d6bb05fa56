"""Kubeconfigs with one context: the cluster is called ``c``, the user ``u`` and the context ``x``."""

from __future__ import annotations

from pathlib import Path

from tests.builders import Json


def config(address: str, authority: Path | None, user: Json, **cluster: object) -> Json:
    """Return a kubeconfig; a ``cluster`` field is written with ``_`` for ``-``."""
    fields = {name.replace("_", "-"): value for name, value in cluster.items()}
    trusted = {} if authority is None else {"certificate-authority": str(authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": address, **trusted, **fields}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
