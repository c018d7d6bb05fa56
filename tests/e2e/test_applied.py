"""kube-apiserver refuses the manifests that ``simulate --apply`` refuses, for the same fields and reasons."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Json
from tests.controlplane.client import INVALID
from tests.controlplane.cluster import ControlPlane
from tests.simulate.applied import REFUSED, WORKLOADS
from tests.simulate.clusters import command, nodes

pytestmark = pytest.mark.e2e

NODES = nodes("a1", "b1", "c1")


def test_the_same_manifests_are_refused(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """Each is a change of a stored workload, which has the defaults of the API server."""
    api = control_plane.api
    stored = [api.create(_in(namespace, manifest)) for manifest in WORKLOADS.values()]
    for case in REFUSED:
        manifest = _in(namespace, case.manifest())
        new, path = case.path == "metadata.name", api.collection(manifest)
        place = path if new else f"{path}/{case.workload}"
        answer = api.answer("POST" if new else "PUT", f"{place}?dryRun=All", manifest)
        text = answer.body["message"]
        assert answer.status == INVALID, (case, text)
        assert all(part in text for part in case.expected), (case, text)
        assert _apply([*NODES, *stored], manifest, tmp_path)[0] == 2, case
    for name, manifest in WORKLOADS.items():
        assert "same pod template" in _apply([*NODES, *stored], _in(namespace, manifest), tmp_path)[1], name


def _apply(cluster: list[Json], manifest: Json, directory: Path) -> tuple[int, str]:
    path = directory / "manifest.json"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    answer = command(cluster, "--apply", str(path))
    return answer.exit_code, answer.stdout


def _in(namespace: str, manifest: Json) -> Json:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}
