"""Files that a kustomization in a directory lists as patches are parts of manifests, and not checked as such."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli
from tests import contract

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway,
         labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [pod-template-hash]}
      containers: [{name: app, image: registry.example/app}]
"""
PATCH = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
"""
LISTS = {
    "patches": "patches:\n- path: {}\n  target: {{kind: Deployment}}\n",
    "patchesStrategicMerge": "patchesStrategicMerge:\n- {}\n",
    "patchesJson6902": "patchesJson6902:\n- target: {{kind: Deployment, name: web, version: v1}}\n  path: {}\n",
}


def write(directory: Path, **files: str) -> None:
    for name, text in files.items():
        path = directory / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def check(*arguments: str) -> tuple[int, list[str], list[str], dict[str, int]]:
    """Return the exit status, the codes of findings, the notes and the numbers of what was skipped."""
    outcome = CliRunner().invoke(cli, ["check", "-o", "json", *arguments])
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), outcome.exception
    report: Any = {"findings": [], "summary": {"skipped": {}}}
    if outcome.stdout:
        report = contract.loaded(outcome.stdout)
    notes = [line for line in outcome.stderr.splitlines() if not line.startswith("evaluated as")]
    codes = [finding["code"] for finding in report["findings"]]
    return outcome.exit_code, codes, notes, report["summary"]["skipped"]


@pytest.mark.parametrize("field", LISTS)
@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
def test_a_patch_is_named_and_not_checked(field: str, name: str, tmp_path: Path) -> None:
    write(tmp_path, base__web=DEPLOYMENT)
    (tmp_path / "base/web").rename(tmp_path / "base/web.yaml")
    overlay = tmp_path / "overlays/prod"
    overlay.mkdir(parents=True)
    patch = overlay / "patches/spread.yaml"
    patch.parent.mkdir()
    patch.write_text(PATCH)
    (overlay / name).write_text("resources: [../../base]\n" + LISTS[field].format("patches/spread.yaml"))
    status, codes, notes, skipped = check("-R", "-f", str(tmp_path))
    assert (status, codes) == (0, [])
    rendered = "-k DIRECTORY checks the manifests that kustomize makes of them"
    assert notes == [f"not checked: 1 Kustomize patch ({patch}); {rendered}"]
    assert skipped["kustomizePatch"] == 1


def test_patches_outside_of_the_directory_of_the_kustomization(tmp_path: Path) -> None:
    component = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
    for name, text in (
        ("base/web.yaml", DEPLOYMENT),
        ("shared/spread.yaml", PATCH),
        ("shared/op.json", json.dumps([{"op": "remove", "path": "/spec/replicas"}])),
        ("component/kustomization.yaml", json.dumps({**component, "patches": [{"path": "../shared/spread.yaml"}]})),
        ("overlay/kustomization.yaml", "patches:\n- {path: ./../shared/op.json}\n- patch: |-\n    - op: add\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    status, codes, notes, skipped = check("-R", "-f", f"{tmp_path}/")
    assert (status, codes, len(notes)) == (0, [], 1)
    assert skipped["kustomizePatch"] == 2
    outcome = CliRunner().invoke(cli, ["check", "-R", "-f", str(tmp_path)])
    assert "2 Kustomize patches" in outcome.stdout.splitlines()[-1]


def test_a_file_that_is_named_or_is_also_a_resource_is_checked(tmp_path: Path) -> None:
    (tmp_path / "spread.yaml").write_text(PATCH)
    kustomization = tmp_path / "kustomization.yaml"
    kustomization.write_text("patches: [{path: spread.yaml}]\n")
    assert check("-f", str(tmp_path))[1] == []
    assert check("-f", str(tmp_path), "-f", str(tmp_path / "spread.yaml"))[1] == ["SPR204"]
    kustomization.write_text("patches: [{path: spread.yaml}]\nresources: [spread.yaml]\n")
    assert check("-f", str(tmp_path))[1] == ["SPR204"]


@pytest.mark.parametrize(
    "text",
    ["patches: spread.yaml\n", "patches: [{path: 1}, {target: {}}, null]\n", "- patches\n", "patches:\n\t- a\n", ""],
)
def test_a_kustomization_without_patches_hides_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "spread.yaml").write_text(PATCH)
    (tmp_path / "kustomization.yaml").write_text(text)
    assert check("-f", str(tmp_path))[1] == ["SPR204"]


def test_patches_alone_are_never_healthy(tmp_path: Path) -> None:
    (tmp_path / "spread.yaml").write_text(PATCH)
    (tmp_path / "Kustomization").write_text("patches: [{path: spread.yaml}]\n")
    assert check("-f", str(tmp_path))[0] == 2
