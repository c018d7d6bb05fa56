"""``check --baseline`` and ``--severity``: what is known, what is gone, and what is less than asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.audits import deployment
from tests.builders import Json, constraint, node_json, pod_json, requirement, selector
from tests.cli.test_check import JUDGED, MALFORMED, PENDING, SIBLING, WEB, healthy, run, stale

VERSION = ("--server-version", "1.37")
BASELINE = "base.json"
SKEWED = [
    *(pod_json(f"web-{index}", node="a1", constraints=[constraint()], owner="ReplicaSet/web") for index in range(3)),
    node_json("a1"),
    node_json("b1"),
]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory that commands run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def named(name: str, **fields: Any) -> Json:
    """Return a pod with a stale label of which managedFields say something."""
    return stale(name, metadata={"managedFields": [{"manager": "kubectl", "operation": "Update"}]}, **fields)


def check(objects: Sequence[Json], *arguments: str) -> Result:
    """Run ``check`` on objects in a file."""
    Path("now.json").write_text("\n".join(json.dumps(manifest) for manifest in objects))
    return run("check", "-f", "now.json", *VERSION, *arguments)


def remember(objects: Sequence[Json], form: str = "json") -> None:
    """Write the baseline of objects."""
    Path(BASELINE).write_text(check(objects, "-o", form).stdout)


def against(objects: Sequence[Json], *arguments: str) -> Any:
    """Return the report of objects against the baseline."""
    return json.loads(check(objects, "--baseline", BASELINE, "-o", "json", *arguments).stdout)


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_what_is_known_is_counted_and_does_not_fail(form: str) -> None:
    remember([named("old")], form)
    assert check([named("old")], "--fail-on", "info").exit_code == 1
    result = check([named("old")], "--baseline", BASELINE, "--fail-on", "info")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "SPR101" not in result.stdout
    assert result.stdout.endswith("no new findings; 1 known (baseline); placement not evaluated: no nodes\n")
    actual_result = against([named("old")])
    assert actual_result["findings"] == []
    assert actual_result["summary"] == {
        "pods": 1,
        "workloads": 1,
        "constraints": 1,
        "findings": {"error": 0, "warning": 0, "info": 0},
        "silenced": 0,
        "known": 1,
        "gone": 0,
        "skipped": {},
    }
    assert actual_result["pods"][0]["verdict"] == "stale-label"


@pytest.mark.usefixtures("directory")
def test_what_is_new_is_shown_and_fails() -> None:
    remember([named("old")])
    result = check([named("old"), named("new")], "--baseline", BASELINE, "--fail-on", "info")
    assert result.exit_code == 1
    assert "SPR101 stale-label  po/new" in result.stdout
    assert "SPR101 stale-label  po/old" not in result.stdout
    assert "1 info; 1 known (baseline)" in result.stdout
    assert check([named("old"), named("new")], "--baseline", BASELINE, "-o", "name").stdout == "po/new\n"


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("before", "now", "existing"),
    [
        pytest.param(named("p"), named("p"), 1, id="the same"),
        pytest.param(named("p", node=""), named("p"), 1, id="it got better"),
        pytest.param(named("p"), named("p", node=""), 0, id="it got worse"),
        pytest.param(named("p", namespace="a"), named("p", namespace="b"), 0, id="another namespace"),
        pytest.param(named("p"), named("q"), 0, id="another object"),
        pytest.param(named("p"), named("p", owner="ReplicaSet/p"), 0, id="the same name of another kind"),
        pytest.param(
            named("p"), pod_json("p", node="a1", constraints=[constraint(match=["nope"])]), 0, id="another rule"
        ),
    ],
)
def test_what_makes_a_finding_known(before: Json, now: Json, existing: int) -> None:
    remember([before])
    result = against([now])
    assert result["summary"]["known"] == existing
    assert len(result["findings"]) == 1 - existing


@pytest.mark.usefixtures("directory")
def test_another_path_is_new() -> None:
    made = stale("p")["spec"]["topologySpreadConstraints"]
    remember([{**named("p"), "spec": {"topologySpreadConstraints": made}}])
    both = [constraint(), *made]
    result = against([{**named("p"), "spec": {"topologySpreadConstraints": both}}])
    assert [finding["path"] for finding in result["findings"]] == ["spec.topologySpreadConstraints[1]"]
    assert (result["summary"]["known"], result["summary"]["gone"]) == (0, 1)


@pytest.mark.usefixtures("directory")
def test_more_pods_do_not_make_a_finding_new() -> None:
    remember([named("web-1", owner="ReplicaSet/web")])
    result = against([named("web-1", owner="ReplicaSet/web"), named("web-2", owner="ReplicaSet/web")])
    assert (result["findings"], result["summary"]["known"]) == ([], 1)


@pytest.mark.usefixtures("directory")
def test_without_a_baseline_nothing_is_known_or_gone() -> None:
    summary = json.loads(check([named("p")], "-o", "json").stdout)["summary"]
    assert not {"known", "gone"} & summary.keys()
    assert "known" not in check([named("p")]).stdout


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("now", "arguments", "output"),
    [
        pytest.param([named("a"), named("b")], (), "", id="nothing is gone"),
        pytest.param([named("a"), healthy("b")], (), "1 finding of the baseline is gone\n", id="one"),
        pytest.param([healthy("a"), healthy("b")], (), "2 findings of the baseline are gone\n", id="two"),
        pytest.param([named("a"), named("b")], ("--ignore", "SPR101"), "", id="silenced is not gone"),
        pytest.param([named("a"), named("b")], ("--severity", "error"), "", id="nor is what is less than asked for"),
        pytest.param([healthy("a")], ("--select", "SPR102"), "", id="a rule that did not run"),
        pytest.param([healthy("a")], ("-n", "default"), "2 findings of the baseline are gone\n", id="its namespace"),
        pytest.param([healthy("a"), healthy("s", namespace="shop")], ("-n", "shop"), "", id="another namespace"),
        pytest.param([healthy("a"), healthy("b")], ("a",), "", id="only some pods are evaluated, by name"),
        pytest.param([healthy("a"), healthy("b")], ("-l", "app=web"), "", id="or by label"),
        pytest.param([healthy("a"), healthy("b")], ("--field-selector", "spec.nodeName=a1"), "", id="or by field"),
    ],
)
def test_what_is_gone_is_told(now: list[Json], arguments: tuple[str, ...], output: str) -> None:
    remember([named("a"), named("b")])
    result = check(now, "--baseline", BASELINE, "-o", "json", *arguments)
    assert (result.exit_code, result.stderr) == (0, output)
    gone = json.loads(result.stdout)["summary"].get("gone", 0)
    assert gone == (int(output.partition(" ")[0]) if output else 0)


@pytest.mark.usefixtures("directory")
def test_nothing_is_said_to_be_gone_that_could_not_be_read() -> None:
    remember([named("a")])
    result = check([MALFORMED], "--baseline", BASELINE, "-o", "json")
    assert result.exit_code == 2
    assert "gone" not in result.stderr
    assert "gone" not in json.loads(result.stdout)["summary"]


@pytest.mark.usefixtures("directory")
def test_a_skew_is_not_gone_where_no_nodes_are_known() -> None:
    remember(SKEWED)
    assert [finding["code"] for finding in json.loads(Path(BASELINE).read_text())["findings"]] == ["SPR301"]
    assert check(SKEWED[:3], "--baseline", BASELINE).stderr == ""
    assert against(SKEWED[:3])["summary"]["gone"] == 0


@pytest.mark.usefixtures("directory")
def test_several_findings_of_one_place() -> None:
    """The worst of them is what is known."""
    remember([named("p", node=""), named("p", namespace="shop")])
    base = json.loads(Path(BASELINE).read_text())
    worse, other = base["findings"]
    less = {**worse, "severity": "info"}
    Path(BASELINE).write_text(json.dumps({**base, "findings": [less, worse, less, other]}))
    summary = against([named("p", node="")])["summary"]
    assert (summary["known"], summary["gone"]) == (1, 1)


@pytest.mark.usefixtures("directory")
def test_templates_are_known_too() -> None:
    objects = [deployment(constraints=[constraint(match=["nope"])])]
    remember(objects)
    assert against(objects)["summary"]["known"] == 1


@pytest.mark.usefixtures("directory")
def test_a_later_report_may_hold_more() -> None:
    remember([named("p")])
    base = json.loads(Path(BASELINE).read_text())
    base["findings"][0]["later"] = {"than": "this"}
    Path(BASELINE).write_text(json.dumps({**base, "later": 1}))
    assert against([named("p")])["summary"]["known"] == 1


FINDING = """\
  - code: SPR101
    severity: warning
    namespace: default
    object: {kind: Pod, name: p}
    path: spec.topologySpreadConstraints[0]
"""
HEAD = "apiVersion: kubectl-spread/v1\nkind: SpreadReport\n"


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("text", "output"),
    [
        pytest.param("{", "bad:1: invalid JSON: input data was truncated", id="broken JSON"),
        pytest.param('{\n "kind": x}', "bad:2: invalid JSON: invalid character", id="broken further down"),
        pytest.param("a: [", "bad:1: ", id="broken YAML"),
        pytest.param("", "bad: expected one report, found none", id="an empty file"),
        pytest.param("{}{}", "bad: expected one report, found 2", id="two documents"),
        pytest.param("[]", "bad:1: expected object, got array", id="an array"),
        pytest.param("text", "bad:1: expected object, got string", id="a word"),
        pytest.param("{}", "bad:1: apiVersion: is missing: no SpreadReport", id="anything"),
        pytest.param(
            '{\n "apiVersion": "v1",\n "kind": "Pod"\n}',
            "bad:2: apiVersion: expected kubectl-spread/v1, got v1",
            id="another apiVersion",
        ),
        pytest.param(
            "apiVersion: kubectl-spread/v1\nkind: RuleList\n",
            "bad:2: kind: expected SpreadReport, got RuleList",
            id="another kind",
        ),
        pytest.param(HEAD, "bad:1: findings: is missing", id="no findings"),
        pytest.param(
            HEAD + "findings: 3\n", "bad:3: findings: expected array, got integer", id="findings are not an array"
        ),
        pytest.param(
            HEAD + "findings:\n" + FINDING.replace("SPR101", "101"),
            "bad:4: findings[0].code: expected string, got integer",
            id="a code of another type",
        ),
        pytest.param(
            '{"apiVersion": "kubectl-spread/v1", "kind": "SpreadReport", "findings": [\n {"code": "SPR101",\n'
            '  "severity": "warning", "object":\n   7}]}',
            "bad:3: findings[0].object: expected object, got integer",
            id="an object of another type, in JSON",
        ),
        pytest.param(
            HEAD + "findings:\n" + FINDING + FINDING.replace("warning", "fatal"),
            "bad:10: findings[1].severity: expected one of error, warning, info, got fatal",
            id="a severity that there is not",
        ),
        pytest.param(
            HEAD + "findings:\n" + FINDING.replace("kind: Pod, ", ""),
            "bad:7: findings[0].object.kind: is missing",
            id="no kind",
        ),
    ],
)
def test_a_baseline_that_is_no_report(text: str, output: str) -> None:
    Path("bad").write_text(text)
    result = check([healthy("p")], "--baseline", "bad", "--fail-on", "never")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {output}")
    assert result.stderr.count("\n") == 1


@pytest.mark.usefixtures("directory")
def test_a_baseline_that_cannot_be_read() -> None:
    result = check([healthy("p")], "--baseline", "gone.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: error reading gone.json: no such file or directory\n"


@pytest.mark.usefixtures("directory")
def test_a_baseline_from_standard_input() -> None:
    remember([named("p")])
    Path("now.json").write_text(json.dumps(named("p")))
    text = Path(BASELINE).read_text()
    result = run("check", "-f", "now.json", *VERSION, "--baseline", "-", stdin=text)
    assert "1 known (baseline)" in result.stdout
    result = run("check", "-f", "-", "--baseline", "-", stdin=text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: --baseline and --filename cannot both be standard input\n"


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("least", "codes", "silenced"),
    [("info", ["SPR108", "SPR101", "SPR101"], 0), ("warning", ["SPR101", "SPR101"], 1), ("error", ["SPR101"], 2)],
)
def test_severity(least: str, codes: list[str], silenced: int) -> None:
    unmerged = pod_json("a", labels={**WEB, "rev": "r1"}, constraints=[constraint(match=["rev"])])
    document = json.loads(check([unmerged, stale("p"), PENDING], "--severity", least, "-o", "json").stdout)
    assert [finding["code"] for finding in document["findings"]] == codes
    assert document["summary"]["silenced"] == silenced
    assert sum(document["summary"]["findings"].values()) == len(codes)


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("least", "fail_on", "status"),
    [("warning", "info", 1), ("error", "info", 0), ("error", "warning", 0), ("info", "error", 0)],
)
def test_what_is_less_than_asked_for_does_not_fail(least: str, fail_on: str, status: int) -> None:
    result = check([stale("p"), SIBLING], "--severity", least, "--fail-on", fail_on)
    assert result.exit_code == status
    assert ("1 silenced" in result.stdout) is (least == "error")


@pytest.mark.usefixtures("directory")
def test_what_is_silenced_is_not_known_too() -> None:
    remember([named("p")])
    summary = against([named("p")], "--severity", "error")["summary"]
    assert (summary["silenced"], summary["known"], summary["gone"]) == (1, 0, 0)


CAPTURE = "no managedFields in what was read: capture with --show-managed-fields to see who changed a label\n"
LATE = pod_json(
    "late",
    labels={**WEB, "rev": "r1", "track": "x"},
    constraints=[constraint(match=["rev", "track"], selects=selector(WEB, requirement("rev", "In", "r1")))],
)
UNMERGED = pod_json("unmerged", labels={**WEB, "rev": "r1"}, constraints=[constraint(match=["rev"])])


def manifest(actual_manifest: Json) -> Json:
    """Return a pod as if it had never been stored."""
    metadata = {name: value for name, value in actual_manifest["metadata"].items() if name not in ("uid", "generation")}
    return {**actual_manifest, "metadata": metadata}


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("objects", "output"),
    [
        pytest.param([stale("p"), stale("q")], CAPTURE, id="stale-label, once for all pods"),
        pytest.param([LATE], CAPTURE, id="late-label"),
        pytest.param([UNMERGED], CAPTURE, id="unmerged"),
        pytest.param([stale("p"), named("q")], "", id="one pod has managedFields"),
        pytest.param([healthy("p")], "", id="nothing depends on them"),
        pytest.param([pod_json("p", constraints=[constraint(match=["nope"])])], "", id="absent-key does not"),
        pytest.param([manifest(UNMERGED), manifest(LATE)], "", id="a manifest has none"),
    ],
)
def test_a_capture_without_managed_fields(objects: list[Json], output: str) -> None:
    assert check(objects).stderr == output


@pytest.mark.usefixtures("directory")
def test_the_hint_stands_beside_other_notes() -> None:
    result = run("explain", "p", "-f", "-", stdin=json.dumps(stale("p")))
    assert result.stderr == JUDGED + CAPTURE
