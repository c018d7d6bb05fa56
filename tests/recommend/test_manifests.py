"""Services that do not exist yet: the lines to write, and the whole manifest with its comments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests import contract
from tests.builders import Json
from tests.cli.test_check import run
from tests.recommend.asked import NINE, SPREAD, spread
from tests.simulate.clusters import budget, deployment

MANIFEST = """\
# The shop's front
apiVersion: apps/v1
kind: Deployment
metadata:
  name: front  # its name
  namespace: shop
spec:
  replicas: 6
  selector:
    matchLabels: {app: front}
  template:
    metadata:
      labels: {app: front}
    spec:
      topologySpreadConstraints:
        # over zones
        - maxSkew: 1
          topologyKey: topology.kubernetes.io/zone
          whenUnsatisfiable: DoNotSchedule  # hard
          labelSelector:
            matchLabels: {app: front}
      containers:
        - name: app
          image: app
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: shop}
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Return the options for a manifest and a captured cluster."""
    return written(tmp_path, MANIFEST, NINE)


def written(directory: Path, manifest: str, objects: list[Json]) -> list[str]:
    """Write a manifest and a capture, and return the options for both."""
    web, cluster = directory / "web.yaml", directory / "cluster.json"
    web.write_text(manifest, encoding="utf-8")
    cluster.write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
    return ["-f", str(web), "-f", str(cluster)]


def test_the_lines_to_write_have_their_places(files: list[str]) -> None:
    report = contract.loaded(run("recommend", *files, "--runs", "3", "-o", "json").stdout)
    first = report["change"]["lines"][0]
    assert (Path(first["file"]).name, first["line"]) == ("web.yaml", 17)
    assert first["action"] == "add in spec.template.spec.topologySpreadConstraints[0]"
    assert first["yaml"] == "nodeTaintsPolicy: Honor\n"
    assert report["change"]["commands"] == []


def test_the_whole_manifest_keeps_its_comments(files: list[str]) -> None:
    answer = run("recommend", *files, "--runs", "3", "-o", "yaml")
    assert answer.exit_code == 1
    before, after = MANIFEST.splitlines(), answer.stdout.splitlines()
    assert [line for line in after if line in before] == before
    constraint = next(yaml.safe_load_all(answer.stdout))["spec"]["template"]["spec"]["topologySpreadConstraints"][0]
    assert constraint["nodeTaintsPolicy"] == "Honor"


def test_the_recommended_manifest_needs_no_change(tmp_path: Path, files: list[str]) -> None:
    """Its own answer is nothing to change, so the manifest is printed as it is."""
    better = run("recommend", *files, "--runs", "5", "-o", "yaml").stdout
    (tmp_path / "better").mkdir()
    again = run("recommend", *written(tmp_path / "better", better, NINE), "--runs", "5", "-o", "yaml")
    assert again.exit_code == 0, again.output
    assert again.stdout == better


def test_a_new_budget_follows_the_manifest(tmp_path: Path) -> None:
    soft = MANIFEST.replace("DoNotSchedule", "ScheduleAnyway")
    options = written(tmp_path, soft, [each for each in NINE if each["metadata"]["name"].endswith("1")])
    answer = run("recommend", *options, "--runs", "3", "--survive", "drain", "--keep", "5", "-o", "yaml")
    *_, last = yaml.safe_load_all(answer.stdout)
    assert last["kind"] == "PodDisruptionBudget"
    assert last["spec"] == {"selector": {"matchLabels": {"app": "front"}}, "maxUnavailable": 1}


def test_a_budget_of_the_manifest_counts(tmp_path: Path) -> None:
    """It stops each drain, as six pods have to stay."""
    limit = {**budget("front", minAvailable=6)}
    del limit["metadata"]["uid"]
    options = written(tmp_path, f"{MANIFEST}---\n{json.dumps(limit)}\n", NINE)
    report = contract.loaded(run("recommend", *options, "--runs", "1", "--survive", "drain", "-o", "json").stdout)
    assert {event["now"].get("budget") for event in report["events"]} == {"front"}


def test_a_captured_object_is_printed_without_what_the_server_wrote(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    objects = [*NINE, *deployment("web", SPREAD, topologySpreadConstraints=[spread()])]
    path.write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
    answer = run("recommend", "deploy/web", "-f", str(path), "--runs", "5", "-o", "yaml")
    document = yaml.safe_load(answer.stdout)
    assert document["metadata"] == {"name": "web", "namespace": "shop"}
    constraint, _ = document["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert (constraint["nodeTaintsPolicy"], constraint["matchLabelKeys"]) == ("Honor", ["pod-template-hash"])


def test_a_manifest_that_the_api_would_refuse_is_an_error(tmp_path: Path) -> None:
    options = written(tmp_path, MANIFEST.replace("maxSkew: 1", "maxSkew: 0"), NINE)
    answer = run("recommend", *options)
    assert answer.exit_code == 2
    assert "web.yaml:17" in answer.stderr
    assert "the API server would refuse deploy/front" in answer.stderr


def test_markdown_and_html_have_the_answer(files: list[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    answer = run("recommend", *files, "--runs", "1", "-o", "markdown", "-o", f"html={page}")
    assert "| lose any zone | 4 of 6, 2 wait (zone a) | 4 at once, 6 after |" in answer.stdout
    assert "nodeTaintsPolicy: Honor" in answer.stdout
    assert '<td data-column="With the patch">4 at once, 6 after</td>' in page.read_text(encoding="utf-8")
