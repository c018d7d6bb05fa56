"""What ``check`` prints about captured clusters, on terminals and to a pipe; the files in ``screens/`` are reviewed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import pytest

from tests.builders import Json
from tests.cli.test_check import run
from tests.conftest import Golden
from tests.generated import ROOT, SAMPLE
from tests.terminals import printed

SCREENS: Final = Path(__file__).parent / "screens"
OBJECTS: Final[list[Json]] = json.loads((ROOT / SAMPLE).read_text())["items"]
NODES: Final = [manifest for manifest in OBJECTS if manifest["kind"] == "Node"]
WIDTHS: Final = {"80": 80, "120": 120, "200": 200, "pipe": None}
FLAGS: Final = ("--server-version", "1.37", "--cluster-name", "prod-eu", "--color", "never")


def called(app: str, name: str, namespace: str = "shop") -> list[Json]:
    """Return the objects of an app of the sample, with another name and in another namespace."""
    objects = [manifest for manifest in OBJECTS if manifest["metadata"]["name"].split("-")[0] == app]
    text = re.sub(rf"\b{app}\b", name, json.dumps([each for each in objects if each["kind"] != "Event"]))
    text = text.replace('"namespace": "shop"', f'"namespace": "{namespace}"')
    renamed: list[Json] = json.loads(re.sub(r'"uid": "([^"]*)"', rf'"uid": "\1-{name}-{namespace}"', text))
    return renamed


def several(names: Iterable[str], app: str) -> list[Json]:
    """Return an app under several names."""
    return [manifest for name in names for manifest in called(app, name)]


def one_bad() -> list[Json]:
    """Return a workload with one bad pod, and five healthy workloads."""
    return [*NODES, *called("cart", "cart"), *several(("auth", "blog", "news", "store", "web"), "web")]


def namespaces() -> list[Json]:
    """Return 60 namespaces with the same three faults."""
    faulty = [
        called(app, app, f"team-{index:02}") for index in range(60) for app in ("api", "cart", "mail", "search", "web")
    ]
    return [*NODES, *(manifest for objects in faulty for manifest in objects)]


def wrong_key() -> list[Json]:
    """Return 16 workloads with the same key in matchLabelKeys that their pods do not have."""
    return [*NODES, *several((f"search{index}" for index in range(16)), "search")]


def healthy() -> list[Json]:
    return [*NODES, *called("web", "web")]


def unconstrained() -> list[Json]:
    """Return a healthy workload without its constraints."""
    text = json.dumps(healthy()).replace('"topologySpreadConstraints"', '"unknown"')
    manifests: list[Json] = json.loads(text)
    for manifest in manifests:
        manifest["spec"].get("template", manifest)["spec"].pop("unknown", None)
    return manifests


CLUSTERS: Final[dict[str, Callable[[], list[Json]]]] = {
    "one-bad": one_bad,
    "namespaces": namespaces,
    "wrong-key": wrong_key,
    "healthy": healthy,
    "unconstrained": unconstrained,
}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory with a capture of each cluster."""
    directory = tmp_path_factory.mktemp("captures")
    for name, objects in CLUSTERS.items():
        items = {"apiVersion": "v1", "kind": "List", "items": objects()}
        (directory / f"{name}.json").write_text(json.dumps(items))
    return directory


def screen(capture: Path, width: int | None, *arguments: str) -> str:
    """Return what ``check`` prints about a capture, on a terminal of 24 lines or to a pipe."""
    command = ("check", "-f", str(capture), *FLAGS, *arguments)
    return run(*command).stdout if width is None else printed(width, *command, lines=24)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_screens_match_their_golden_files(cluster: str, width: str, captures: Path, golden: Golden) -> None:
    text = screen(captures / f"{cluster}.json", WIDTHS[width])
    golden(SCREENS / f"{cluster}.{width}.txt", text.replace(f"{captures}/", ""))
    if columns := WIDTHS[width]:
        assert max(len(line) for line in text.splitlines() if not line.lstrip().startswith("$ ")) <= columns


@pytest.mark.parametrize("width", WIDTHS)
def test_faults_of_60_namespaces_are_fewer_than_60_lines(width: str, captures: Path) -> None:
    """The worst finding is on the first screen of 24 lines; a pipe gets every row above it."""
    lines = screen(captures / "namespaces.json", WIDTHS[width]).splitlines()
    worst = next(index for index, line in enumerate(lines) if line.startswith("warning SPR"))
    assert len(lines[worst:]) < 60
    assert worst < 20 or not WIDTHS[width]


@pytest.mark.parametrize("form", ["table", "wide"])
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_no_message_appears_twice(cluster: str, form: str, captures: Path) -> None:
    file = str(captures / f"{cluster}.json")
    messages = {finding["message"] for finding in json.loads(run("check", "-f", file, "-o", "json").stdout)["findings"]}
    text = run("check", "-f", file, "--severity", "info", "-o", form).stdout
    assert all(text.count(f"  {message}\n") == 1 for message in messages)


@pytest.mark.parametrize("cluster", ["one-bad", "namespaces", "wrong-key"])
def test_a_row_has_the_name_of_its_finding(cluster: str, captures: Path) -> None:
    """Every word in the column STATUS other than ``ok`` is the name of a finding."""
    text = screen(captures / f"{cluster}.json", None, "--severity", "info")
    table, *blocks = text.split("\n\n")[1:]
    rows = [line.split() for line in table.splitlines()[1:] if not line.startswith("Hidden")]
    statuses = {words[-2] if "/" in words[-1] else words[-1] for words in rows}
    assert statuses - {"ok"}
    assert statuses - {"ok"} <= {block.split()[2].rstrip(":") for block in blocks[:-1]}


def test_nothing_to_check_is_not_called_healthy(captures: Path) -> None:
    assert "1 note hidden" in screen(captures / "unconstrained.json", None)
    empty = captures / "empty.json"
    empty.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": NODES}))
    outcome = run("check", "-f", str(empty), *FLAGS)
    assert outcome.stdout == ""
    assert outcome.stderr == "no pods or pod templates in 1 file (6 objects of other kinds)\n"


def test_a_report_of_files_says_its_version_once(captures: Path) -> None:
    for arguments in ((), ("--no-headers",), ("-o", "json"), ("-o", "markdown")):
        outcome = run("check", "-f", str(captures / "healthy.json"), *arguments)
        assert outcome.output.count("--server-version changes it") == 1
    chosen = run("check", "-f", str(captures / "healthy.json"), "--server-version", "1.37")
    assert "--server-version" not in chosen.output
