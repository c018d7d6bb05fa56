"""A real API server with strict validation refuses the fields and kinds that the plugin reports as unknown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from kubectl_spread.sources.files import rawobjects
from tests.builders import Json
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import ControlPlane
from tests.e2e.spread import Spread

pytestmark = pytest.mark.e2e

CASES = Path(__file__).parents[1] / "rules" / "SPR215"
UNKNOWN = re.compile(r'unknown field \\"([^\\]+)\\"')
TERM: Json = {"topologyKey": "zone", "labelSelector": {"matchLabels": {}, "matchlabels": {}}}
SPEC: Json = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "matchLabels": {}, "labelSelector": {"maxSkew": 1, "matchExpressions": [{"value": []}]}}
    ],
    "affinity": {
        "topologySpreadConstraints": [],
        "podAfinity": {},
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [TERM, {"weight": 1, "podAffinityTerm": TERM}],
            "preferredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "podAffinityTerm": TERM}],
        },
    },
    "podAntiAffinity": {},
    "containers": [{"name": "c", "topologySpreadConstraints": []}],
}
MISPLACED: Json = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "web", "affinity": {}},
    "topologySpreadConstraints": [],
    "spec": {
        "affinity": {},
        "jobTemplate": {
            "topologySpreadConstraints": [],
            "spec": {"topologySpreadConstraints": [], "template": {"topologySpreadConstraints": [], "spec": SPEC}},
        },
    },
}


def refused(cluster: ControlPlane, manifest: Json) -> set[str]:
    """Return the fields that strict validation does not know; nothing is stored."""
    path = f"/{cluster.api.collection(manifest)}".replace("//", "/")
    try:
        cluster.api.request("POST", f"{path}?fieldValidation=Strict&dryRun=All", manifest)
    except ApiError as error:
        return set(UNKNOWN.findall(str(error)))
    return set()


def reported_fields(spread: Spread, path: Path) -> set[str]:
    report = spread("check", "-f", str(path), "-o", "json", "--select", "SPR215").report
    return {finding["path"] for finding in report["findings"]}


@pytest.mark.parametrize("path", sorted(CASES.glob("bad-*.yaml")), ids=lambda path: path.stem)
def test_the_api_server_refuses_the_fields_of_the_rule(path: Path, control_plane: ControlPlane, spread: Spread) -> None:
    manifest = YAML(typ="safe").load(path)
    expected = refused(control_plane, manifest)
    assert expected
    assert reported_fields(spread, path) == expected


def test_the_right_names_are_known(control_plane: ControlPlane) -> None:
    assert refused(control_plane, YAML(typ="safe").load(CASES / "good-right-names.yaml")) == set()


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": SPEC}, id="pod"),
        pytest.param(MISPLACED, id="CronJob"),
    ],
)
def test_many_unknown_fields_at_once(
    manifest: Json, control_plane: ControlPlane, spread: Spread, tmp_path: Path
) -> None:
    path = tmp_path / "web.yaml"
    YAML(typ="safe").dump(manifest, path)
    expected = refused(control_plane, manifest)
    assert len(expected) > 5
    assert reported_fields(spread, path) == expected


def test_kinds_that_the_server_has_are_not_taken_for_misspelt_ones(control_plane: ControlPlane) -> None:
    versions = [
        "v1",
        *(group["preferredVersion"]["groupVersion"] for group in control_plane.api.get("/apis")["groups"]),
    ]
    seen = 0
    for version in versions:
        path = "/api/v1" if version == "v1" else f"/apis/{version}"
        for resource in control_plane.api.get(path)["resources"]:
            if "group" not in resource:
                rawobjects.type_of(version, resource["kind"])
                seen += 1
    assert seen > 50
