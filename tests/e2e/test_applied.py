"""kube-apiserver refuses the manifests that ``simulate --apply`` refuses, for the same fields and reasons."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Json
from tests.controlplane.client import INVALID
from tests.controlplane.cluster import ControlPlane
from tests.e2e.spread import Answer, Spread
from tests.simulate.applied import REFUSED, WORKLOADS, Refused

pytestmark = pytest.mark.e2e

SAME = "as far as it is read"


def test_the_same_manifests_are_refused(
    control_plane: ControlPlane, namespace: str, spread: Spread, tmp_path: Path
) -> None:
    """Each is a change of a stored workload, which has the defaults of the API server."""
    api = control_plane.api
    for manifest in WORKLOADS.values():
        api.create(_in(namespace, manifest))
    for case in REFUSED:
        manifest = _in(namespace, case.manifest())
        new, path = case.path == "metadata.name", api.collection(manifest)
        place = path if new else f"{path}/{case.workload}"
        answer = api.answer("POST" if new else "PUT", f"{place}?dryRun=All", manifest)
        text = answer.body["message"]
        assert answer.status == INVALID, (case, text)
        assert all(part in text for part in case.expected), (case, text)
        ours = _applied(spread, manifest, tmp_path)
        assert ours.status == 2, case
        assert all(part in ours.stderr for part in case.expected), (case, ours.stderr)
    for name, manifest in WORKLOADS.items():
        assert SAME in _applied(spread, _in(namespace, manifest), tmp_path).stdout, name
    newer = Refused("web", "spec.template.spec.containers.0.image", "app:2", "").manifest()
    assert SAME not in _applied(spread, _in(namespace, newer), tmp_path).stdout


def _applied(spread: Spread, manifest: Json, directory: Path) -> Answer:
    path, namespace = directory / "manifest.json", manifest["metadata"]["namespace"]
    path.write_text(json.dumps(manifest), encoding="utf-8")
    return spread("simulate", "--apply", str(path), "-n", namespace, "--runs", "1")


def _in(namespace: str, manifest: Json) -> Json:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}
