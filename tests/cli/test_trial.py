"""What ``check`` prints about the cluster of ``tests.trial``: short, the cause once, and a command near the top."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import trial
from tests.builders import Json
from tests.cli.test_check import run
from tests.terminals import printed


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trial") / "cluster.json"
    path.write_text(json.dumps(trial.capture()))
    return path


@pytest.fixture(scope="module")
def report(capture: Path) -> Json:
    loaded: Json = json.loads(run("check", "-f", str(capture), "-A", "-o", "json").stdout)
    return loaded


def test_the_cluster_is_that_of_the_trial(report: Json) -> None:
    assert {row["namespace"] for row in report["groups"]} <= {f"team-{index:02}" for index in range(1, 63)}
    assert (report["summary"]["pods"], report["summary"]["workloads"]) == (653, 203)
    assert trial.objects() == trial.objects()


def test_all_that_wait_for_the_closed_zone_are_one_group(report: Json) -> None:
    """There is one finding for each workload, and each names the nodes and the command."""
    waiting = [finding for finding in report["findings"] if "closed" in finding]
    assert len(waiting) == len({(finding["namespace"], finding["object"]["name"]) for finding in waiting}) == 115
    assert {finding["group"] for finding in waiting} == {waiting[0]["group"]}
    assert waiting[0]["closed"] == {
        "topologyKey": "topology.kubernetes.io/zone",
        "domains": ["b"],
        "nodes": ["b1", "b2", "b3"],
        "state": "cordoned",
        "lasting": False,
        "fix": "Open zone b: uncordon its nodes.",
        "commands": ["kubectl uncordon b1 b2 b3"],
    }
    assert [zone.get("closed") for zone in report["cluster"]["zones"]] == [None, "cordoned", None]


@pytest.mark.parametrize("width", [80, 140, None])
def test_the_answer_is_short_and_begins_with_the_command(width: int | None, capture: Path) -> None:
    command = ("check", "-A", "-f", str(capture), "--color", "never")
    text = run(*command).stdout if width is None else printed(width, *command, lines=24)
    lines = text.splitlines()
    first = next(index for index, line in enumerate(lines) if line.lstrip().startswith("$ "))
    # A pipe gets every row of the table first.
    rows = sum(line.startswith("team-") for line in lines)
    assert rows == (203 if width is None else 0)
    assert len(lines) - rows <= 60
    assert first - rows < 15
    assert lines[first] == "    $ kubectl uncordon b1 b2 b3"
    assert "zone b is cordoned" in lines[0] + lines[1]
    words = " ".join(text.split())
    assert words.count("Zone b is cordoned (b1, b2, b3): 119 pods of 107 workloads wait for it.") == 1
    assert text.count("kubectl patch deploy/web-") == 0
    pending_for_other_reasons = ("deploy/search-108",)
    assert all(name in text for name in pending_for_other_reasons)
    end = lines.index("Do this first:")
    assert lines[end + 1] == lines[first]
    assert len(lines) - end <= 4


def test_a_wrong_selector_is_the_only_finding_about_pods_on_one_node(report: Json) -> None:
    codes = {each["code"] for each in report["findings"] if each["object"]["name"].startswith("mail-")}
    assert codes == {"SPR204", "SPR205", "SPR206"}


@pytest.mark.parametrize("width", [80, 140])
def test_a_long_answer_is_shortened_from_its_end_and_says_how_to_list_all(width: int, capture: Path) -> None:
    """Of the last warnings it has only the titles; no escape sequence and no line of a patch is printed."""
    text = printed(width, "check", "-A", "-f", str(capture), "--color", "never", lines=24)
    lines = text.splitlines()
    assert "\x1b" not in text
    assert max(map(len, lines)) <= width
    assert "Hidden: 130 rows with findings, 73 rows without findings (--show all)" in lines
    titles = [line for line in lines if line.startswith(("error", "warning"))]
    assert [title.split()[1] for title in titles] == [
        "SPR303",
        "SPR303",
        "SPR502",
        "SPR501",
        "SPR101",
        "SPR204",
        "SPR205",
        "SPR206",
    ]
    assert "warning SPR206 self-mismatch: team-49/deploy/mail-111, 3 pods" in lines
    assert ("and 1 workload with other values" in text) == (width > 80)
    assert "-o wide lists all." in lines
    wide = run("check", "-A", "-f", str(capture), "-o", "wide").stdout
    assert "team-52/deploy/mail-114" in wide
    assert "wide lists all" not in wide


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_other_formats_say_the_cause_once(form: str, capture: Path) -> None:
    text = run("check", "-A", "-f", str(capture), "-o", form).stdout.replace("\\", "")
    assert "Zone b is cordoned (b1, b2, b3): 119 pods of 107 workloads wait for it" in text
    assert "kubectl uncordon b1 b2 b3" in text


def test_domains_say_which_zone_is_closed(capture: Path) -> None:
    text = run("domains", "-A", "-f", str(capture)).stdout
    assert "Zone b is cordoned, so no pod goes there.\n    $ kubectl uncordon b1 b2 b3\n" in text


def test_a_named_workload_has_the_answer_of_all_namespaces(capture: Path, report: Json) -> None:
    """Workloads out of scope take part, such as one whose new ReplicaSet has no pods yet."""
    command = ("check", "deploy/payments-107", "-n", "team-45", "-f", str(capture), "-o", "json")
    answer = run(*command)
    assert answer.exit_code == 1, answer.stderr
    (finding,) = json.loads(answer.stdout)["findings"]
    same = [each for each in report["findings"] if each["object"]["name"] == "payments-107"]
    assert [(each["code"], each["message"], each["fix"]) for each in same] == [
        (finding["code"], finding["message"], finding["fix"])
    ]
