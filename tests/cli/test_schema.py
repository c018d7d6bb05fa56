"""The printed JSON Schemas, and documents that are valid for them; ``tests.contract`` validates many more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from jsonschema import ValidationError
from ruamel.yaml import YAML

from kubectl_spread.cli import cli
from tests import contract, schemas

GOLDEN = schemas.ROOT / "tests" / "render" / "golden"
THREADS = schemas.ROOT / "tests" / "threads"
HEALTHY = schemas.ROOT / "tests" / "e2e" / "healthy"
SAMPLE = schemas.ROOT / "examples" / "cluster.json"
REPORTS = [path for path in sorted(GOLDEN.glob("*.json")) if "." not in path.stem]
INPUTS = [SAMPLE, *sorted(THREADS.glob("*/*.yaml"))]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="kubectl spread")


@pytest.mark.parametrize("kind", schemas.KINDS)
def test_a_schema_is_printed_as_it_was_packaged(kind: str) -> None:
    packaged = (schemas.ROOT / schemas.path(kind)).read_text(encoding="utf-8")
    assert run("schema", kind).stdout == run("schema", kind.lower()).stdout == packaged
    assert json.loads(packaged)["$id"].endswith(f"/{kind}.json")


def test_the_reports_schema_is_the_default() -> None:
    assert run("schema").stdout == run("schema", "SpreadReport").stdout


def test_an_unknown_kind_is_an_error_that_lists_the_kinds() -> None:
    outcome = run("schema", "Report")
    kinds = ", ".join(schemas.KINDS)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == f'error: no schema of kind "Report" (there are {kinds}); did you mean "MergeReport"?\n'


@pytest.mark.parametrize("kind", schemas.KINDS)
def test_pages_describe_the_fields_of_each_type_and_no_others(kind: str) -> None:
    root, page = schemas.KINDS[kind]
    tables = schemas.documented(page)
    for name, definition in schemas.parts_of(root).items():
        title = kind if name == root.__name__ else name
        assert list(tables[title]) == list(definition["properties"]), f"{page}, {title}"


@pytest.mark.parametrize("golden", REPORTS, ids=lambda path: path.stem)
def test_golden_reports_keep_to_the_schema(golden: Path) -> None:
    report = contract.loaded(golden.read_text(encoding="utf-8"))
    assert YAML(typ="safe").load(golden.with_suffix(".yaml").read_text(encoding="utf-8")) == report


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_command_keeps_to_the_schema(path: Path) -> None:
    report = contract.loaded(run("check", "-A", "-f", str(path), "--to", "1.33", "--recreate", "-o", "json").stdout)
    for namespace, name in dict.fromkeys(workloads(report)):
        explained = run("explain", name, "-n", namespace, "-f", str(path), "--replicas", "+2", "-o", "json")
        contract.loaded(explained.stdout)
    for command in ("merge", "unmerge"):
        contract.loaded(run(command, "-f", str(path), "-o", "json").stdout)


def workloads(report: Any) -> Iterator[tuple[str, str]]:
    """Yield the namespace and TYPE/NAME of each workload."""
    for row in report["constraints"]:
        yield row["namespace"], f"{row['workload']['kind']}/{row['workload']['name']}"


def test_manifests_keep_to_the_schema() -> None:
    contract.loaded(run("check", "-f", str(HEALTHY), "-o", "json").stdout)
    contract.loaded(run("merge", "-f", str(HEALTHY), "-o", "json").stdout)


def test_rules_keep_to_the_schema() -> None:
    contract.loaded(run("rules", "-o", "json").stdout)
    contract.loaded(run("explain", "SPR101", "-o", "json").stdout)


@pytest.mark.parametrize("place", [(), ("summary", "findings"), ("constraints", 0, "selector", "stored")])
def test_a_field_that_the_schema_lacks_is_invalid(place: tuple[str | int, ...]) -> None:
    report = json.loads((GOLDEN / "several.json").read_text(encoding="utf-8"))
    part = report
    for step in place:
        part = part[step]
    part["surplus"] = 1
    with pytest.raises(ValidationError, match="surplus"):
        contract.loaded(json.dumps(report))


@pytest.mark.parametrize("field", ["apiVersion", "kind", "cluster", "findings"])
def test_a_field_that_is_always_printed_is_required(field: str) -> None:
    report = json.loads((GOLDEN / "several.json").read_text(encoding="utf-8"))
    del report[field]
    assert not contract.validator("SpreadReport").is_valid(report)
