"""A real apiserver stores the output of ``check -o openreports`` and returns it unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests import openreports as api
from tests.builders import Json, constraint
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import ControlPlane, KubectlError
from tests.e2e.manifests import deployment
from tests.e2e.spread import Spread
from tests.generated import ROOT

pytestmark = pytest.mark.e2e

GOLDEN: Final = ROOT / "tests/render/golden"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AWKWARD: Final = ("no", "1e3", "0x1f")
"""Names of namespaces that YAML takes for something else where they are not quoted."""


@pytest.fixture(scope="module")
def served(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Return the control plane of all tests while it has the resources of OpenReports."""
    kinds = {"Report": True, "ClusterReport": False}
    definitions = [api.definition(kind, namespaced=namespaced) for kind, namespaced in kinds.items()]
    control_plane.api.create_all(definitions)
    try:
        control_plane.wait_for(lambda: _is_served(control_plane), what="OpenReports")
        yield control_plane
    finally:
        for definition in definitions:
            control_plane.api.request("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}")


def _is_served(cluster: ControlPlane) -> bool:
    try:
        resources = cluster.api.get(f"/apis/{api.GROUP}/{api.VERSION}")["resources"]
    except ApiError:
        return False
    return {"reports", "clusterreports"} <= {resource["name"] for resource in resources}


def applied(cluster: ControlPlane, text: str) -> list[Json]:
    """Apply manifests with strict validation of fields, and return the stored objects."""
    cluster.kubectl("apply", "--validate=strict", "-f", "-", input=text)
    stored = cluster.kubectl("get", "-f", "-", "-o", "json", input=text).stdout
    document = json.loads(stored)
    return list(document["items"]) if document["kind"] == "List" else [document]


def same(stored: Json, printed: Json) -> bool:
    """Tell whether a stored object has all printed fields, and no further results."""
    parts = ("apiVersion", "kind", "source", "summary", "results")
    metadata = printed["metadata"]
    remaining = {name: stored["metadata"].get(name) for name in metadata}
    # kubectl apply adds an annotation of its own.
    remaining["annotations"] = {name: remaining["annotations"].get(name) for name in metadata["annotations"]}
    return all(stored[part] == printed[part] for part in parts) and remaining == metadata


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in sorted(GOLDEN.glob("*.openreports.yaml"))
        if path.stem.partition(".")[0] not in ("hostile", "nothing")
    ],
    ids=lambda path: path.name,
)
def test_the_apiserver_stores_the_printed_reports_unchanged(served: ControlPlane, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    printed = list(yaml.safe_load_all(text))
    stored = applied(served, text)
    assert len(stored) == len(printed) > 0
    assert all(map(same, stored, printed))


def test_a_live_report_is_applied_again_and_again(served: ControlPlane, spread: Spread) -> None:
    """The name is the same each time, so that a new report replaces the last one."""
    with served.namespace() as namespace:
        served.apply(deployment(constraints=[constraint(match=["nope"])], labels={"app": "web"}, namespace=namespace))
        served.wait_for(lambda: served.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"], what="pods")
        for _ in range(2):
            answer = spread("check", "-n", namespace, "-o", "openreports")
            assert answer.status in (0, 1), answer.stderr
            (report, *_) = applied(served, answer.stdout)
        (only,) = served.api.get(f"/apis/{api.GROUP}/{api.VERSION}/namespaces/{namespace}/reports")["items"]
    assert (only["metadata"]["name"], only["source"]) == ("kubectl-spread", "kubectl-spread")
    assert "SPR107" in {result["policy"] for result in only["results"]}
    assert report["metadata"]["uid"] == only["metadata"]["uid"]


@pytest.mark.parametrize("namespace", AWKWARD)
def test_names_that_yaml_takes_for_something_else(
    served: ControlPlane, spread: Spread, tmp_path: Path, namespace: str
) -> None:
    pod = deployment(constraints=[constraint()], labels={"app": "web"}, namespace=namespace)
    manifest = tmp_path / "pod.json"
    manifest.write_text(json.dumps(pod), encoding="utf-8")
    text = spread("check", "-f", str(manifest), "-o", "openreports").stdout
    served.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    try:
        stored = applied(served, text)
    finally:
        served.api.request("DELETE", f"/api/v1/namespaces/{namespace}")
    assert namespace in {report["metadata"].get("namespace") for report in stored}


def test_unknown_fields_would_be_noticed(served: ControlPlane) -> None:
    text = (GOLDEN / "several.openreports.yaml").read_text(encoding="utf-8")
    with pytest.raises(KubectlError, match="unknown field"):
        served.kubectl("apply", "--validate=strict", "-f", "-", input=text.replace("  rule:", "  rul:"))
