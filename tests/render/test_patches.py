"""Formats with a place for a patch have its operations."""

from __future__ import annotations

import csv
import io
import json
from typing import Final

import msgspec
import yaml

from kubectl_spread.render.ci.openreports import openreports
from kubectl_spread.render.ci.sarif import sarif
from kubectl_spread.render.spreadsheet import csv as spreadsheet
from kubectl_spread.report.model import Operation, Patch, Report
from tests.audits import reported
from tests.render.test_render import several

OPERATIONS: Final = [
    {"op": "test", "path": "/spec/template/spec/topologySpreadConstraints/0/maxSkew", "value": 1},
    {"op": "remove", "path": "/spec/template/spec/topologySpreadConstraints/0"},
]


def patched() -> Report:
    """Return a report whose only finding has a patch."""
    report = reported(several())
    patch = Patch(operations=msgspec.convert(OPERATIONS, list[Operation]))
    return msgspec.structs.replace(report, findings=[msgspec.structs.replace(report.findings[0], patch=patch)])


def test_sarif_has_the_patch() -> None:
    (result,) = json.loads(sarif(patched()))["runs"][0]["results"]
    assert json.loads(result["properties"]["patch"]) == OPERATIONS


def test_openreports_have_the_patch() -> None:
    results = [result for document in yaml.safe_load_all(openreports(patched())) for result in document["results"]]
    (patch,) = [result["properties"]["patch"] for result in results if "patch" in result["properties"]]
    assert json.loads(patch) == OPERATIONS


def test_a_spreadsheet_has_the_patch() -> None:
    patches = {row["patch"] for row in csv.DictReader(io.StringIO(spreadsheet(patched())))}
    assert {patch for patch in patches if patch and json.loads(patch) == OPERATIONS}
