"""Charts and kustomizations, rendered by the real helm and the real kubectl; ``docs/offline.md`` shows two of them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import answers
from tests.contract import loaded
from tests.controlplane import binaries
from tests.e2e import go_programs
from tests.e2e.shell import paste
from tests.e2e.spread import Answer, Plugin, Spread
from tests.generated import CHART, KUSTOMIZATION, RENDERED, ROOT
from tests.terminals import printed

pytestmark = pytest.mark.e2e

PAGE = (ROOT / "docs" / "offline.md").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def environment(plugin: Plugin) -> Mapping[str, str]:
    """Return an environment with helm, kubectl and the plugin on PATH, and no cluster."""
    programs = (plugin.directory, go_programs.binary(*go_programs.HELM).parent, binaries.kubectl().parent)
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "KUBECONFIG": os.devnull}


@pytest.fixture
def spread(plugin: Plugin, environment: Mapping[str, str]) -> Spread:
    """Return ``kubectl spread`` without any cluster."""
    return Spread(plugin.directory, environment)


def helm(environment: Mapping[str, str], arguments: str) -> bytes:
    """Return the output of helm, which runs in the checkout."""
    command = ["helm", *shlex.split(arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment, cwd=ROOT, timeout=120).stdout


def kustomization(directory: Path, text: str = "", **files: str) -> str:
    """Write a kustomization of files, each of which is a resource, and return its directory."""
    directory.mkdir()
    resources = json.dumps([f"{name}.yaml" for name in files])
    (directory / "kustomization.yaml").write_text(f"resources: {resources}\n{text}", encoding="utf-8")
    for name, manifest in files.items():
        (directory / f"{name}.yaml").write_text(manifest, encoding="utf-8")
    return str(directory)


def workload(name: str, kind: str = "Deployment", app: str = "web") -> str:
    """Return a workload of three pods with a constraint that selects an app."""
    return f"""\
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}}}
spec:
  replicas: 3
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {{matchLabels: {{app: {app}}}}}
        matchLabelKeys: [pod-template-hash]
      containers:
      - {{name: {name}, image: 'registry.example/{name}:1'}}
"""


def test_the_page_shows_what_helm_and_kubectl_render(environment: Mapping[str, str]) -> None:
    rendered = helm(environment, CHART)
    assert rendered == (RENDERED / "chart.yaml").read_bytes()
    assert answers.piped_block(f"helm {CHART}", printed(100, *answers.NOTES, "-f", "-", stdin=rendered)) in PAGE
    answer = printed(100, *answers.NOTES, "-k", KUSTOMIZATION, path=environment["PATH"])
    assert answers.kustomized_block(KUSTOMIZATION, answer) in PAGE


def test_the_commands_of_the_page_run_as_they_are_written(environment: Mapping[str, str]) -> None:
    lines = [
        line.removeprefix("$ ")
        for line in PAGE.splitlines()
        if line.startswith(("$ helm", "$ kubectl spread check --sev"))
    ]
    chart, overlay = (paste(line, ROOT, environment) for line in lines)
    assert (chart.returncode, chart.stderr) == (0, "")
    assert "warning SPR107 absent-key: sts/shop-db (STDIN:64)" in chart.stdout
    assert (overlay.returncode, overlay.stderr) == (1, "")
    assert f"error SPR201 refused: deploy/web ({KUSTOMIZATION}:20)" in overlay.stdout


def test_a_chart_whose_values_are_right_has_no_findings(environment: Mapping[str, str], spread: Spread) -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "matchLabelKeys": ["app.kubernetes.io/component"],
    }
    values = shlex.quote(f"topologySpreadConstraints={json.dumps([constraint])}")
    rendered = helm(environment, f"{CHART} --set-json {values}").decode()
    answer = spread("check", "-f", "-", "-o", "json", input=rendered)
    assert (answer.status, answer.report["findings"]) == (0, [])
    assert answer.report["summary"]["templates"] == 2


def test_a_directory_is_checked_as_kubectl_renders_it(spread: Spread, tmp_path: Path) -> None:
    """The overlay gives the pods another label, and kustomize changes the selectors with it."""
    kustomization(tmp_path / "base", web=workload("web"), db=workload("db", "StatefulSet", app="db"))
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text(
        "resources: [../base]\nnamespace: shop\nnamePrefix: new-\n"
        "labels: [{pairs: {app: new}, includeSelectors: true}]\n",
        encoding="utf-8",
    )
    answer = spread("check", "-k", str(overlay), "-o", "json")
    findings = {
        (finding["code"], finding["namespace"], finding["object"]["name"]) for finding in answer.report["findings"]
    }
    assert findings == {("SPR107", "shop", "new-db"), ("SPR314", "shop", "new-db")}
    rendered = _rendered(str(overlay)).splitlines()
    for finding in answer.report["findings"]:
        assert finding["source"]["file"] == str(overlay)
        assert rendered[finding["source"]["line"] - 1] == "      - labelSelector:"


def _rendered(directory: str) -> str:
    command = [str(binaries.kubectl()), "kustomize", directory]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.parametrize("command", ["merge", "unmerge"])
def test_filters_write_what_kubectl_renders(spread: Spread, tmp_path: Path, command: str) -> None:
    directory = kustomization(tmp_path / "base", web=workload("web"))
    assert spread(command, "-k", directory).stdout == _rendered(directory)


def test_explain_takes_a_directory(spread: Spread, tmp_path: Path) -> None:
    directory = kustomization(tmp_path / "base", web=workload("web", app="api"))
    answer = spread("explain", "deploy/web", "-k", directory)
    assert answer.status == 0
    assert answer.stdout.startswith("deploy/web in default: 1 warning.\n\nwarning SPR206 self-mismatch, pod template\n")


def test_warnings_of_kubectl_are_printed(spread: Spread, tmp_path: Path) -> None:
    directory = kustomization(tmp_path / "base", "commonLabels: {team: shop}\n", web=workload("web"))
    answer = spread("check", "-k", directory)
    assert answer.status == 0
    assert answer.stderr.startswith("# Warning: 'commonLabels' is deprecated.")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("resources: [none.yaml]\n", "none.yaml"),
        ("resources: {}\n", "resources"),
        ("", "kustomization.yaml is empty"),
        ("helmCharts: [{name: shop}]\n", "must specify --enable-helm"),
    ],
)
def test_errors_of_kubectl_are_printed(spread: Spread, tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "kustomization.yaml").write_text(text, encoding="utf-8")
    answer = spread("check", "-k", str(tmp_path))
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.error.startswith("error: ")
    assert problem in answer.error


def test_a_directory_without_kustomization_is_an_error(spread: Spread, tmp_path: Path) -> None:
    assert "unable to find one of 'kustomization.yaml'" in spread("check", "-k", str(tmp_path)).error


def test_a_secret_of_a_kustomization_is_not_printed(spread: Spread, tmp_path: Path) -> None:
    """Except by the filters, which print manifests."""
    generator = "secretGenerator:\n- name: db\n  literals: [password=hunter2]\n"
    directory = kustomization(tmp_path / "base", generator, web=workload("web", app="api"))
    assert "aHVudGVyMg==" in _rendered(directory)
    answers_of_spread: list[Answer] = [
        spread(*command.split(), "-k", directory)
        for command in (
            "check",
            "check -o json",
            "check -o html",
            "explain deploy/web",
            "check -o yaml",
            "explain sts/web",
        )
    ]
    printed_texts = "".join(answer.stdout + answer.stderr for answer in answers_of_spread)
    assert "hunter2" not in printed_texts
    assert "aHVudGVyMg" not in printed_texts


def test_a_baseline_may_be_standard_input(spread: Spread, tmp_path: Path) -> None:
    """The directory is not read from there."""
    directory = kustomization(tmp_path / "base", web=workload("web", app="api"))
    baseline = spread("check", "-k", directory, "-o", "json").stdout
    answer = spread("check", "-k", directory, "-o", "json", "--baseline", "-", input=baseline)
    assert loaded(answer.stdout)["findings"] == []
    assert loaded(answer.stdout)["summary"]["known"] == 1
