"""``check --baseline`` and ``--severity``: findings that are known, gone or below the severity."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.audits import deployment
from tests.builders import Json, constraint, node_json, pod_json, requirement, selector
from tests.cli.test_check import MALFORMED, REPELLING, SIBLING, WEB, healthy, run, stale

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


def attributed(name: str, **fields: Any) -> Json:
    """Return a pod with a stale label, whose managedFields name the writer of the label."""
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
def test_findings_in_the_baseline_are_counted_and_do_not_fail(form: str) -> None:
    remember([attributed("old")], form)
    assert check([attributed("old")], "--fail-on", "info").exit_code == 1
    outcome = check([attributed("old")], "--baseline", BASELINE, "--fail-on", "info")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert "SPR101" not in outcome.stdout
    assert outcome.stdout.endswith(
        "No new findings in 1 workload (1 pod, 1 constraint). 1 finding in the baseline. "
        "Placement was not evaluated: no nodes.\n"
    )
    report = against([attributed("old")])
    assert report["findings"] == []
    assert report["summary"] == {
        "pods": 1,
        "workloads": 1,
        "constraints": 1,
        "findings": {"error": 0, "warning": 0, "info": 0},
        "silenced": 0,
        "known": 1,
        "gone": 0,
        "skipped": {},
    }
    assert report["pods"][0]["verdict"] == "stale-label"


@pytest.mark.usefixtures("directory")
def test_new_findings_are_printed_and_fail() -> None:
    remember([attributed("old")])
    outcome = check([attributed("old"), attributed("new")], "--baseline", BASELINE, "--fail-on", "info")
    assert outcome.exit_code == 1
    assert "SPR101 stale-label: po/new" in outcome.stdout
    assert "SPR101 stale-label: po/old" not in outcome.stdout
    assert "1 note in 1 of 2 workloads. 1 finding in the baseline." in outcome.stdout
    assert check([attributed("old"), attributed("new")], "--baseline", BASELINE, "-o", "name").stdout == "po/new\n"


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("baseline_pod", "pod", "known_findings"),
    [
        pytest.param(attributed("p"), attributed("p"), 1, id="the same"),
        pytest.param(attributed("p", node=""), attributed("p"), 1, id="it got better"),
        pytest.param(attributed("p"), attributed("p", node=""), 0, id="it got worse"),
        pytest.param(attributed("p", namespace="a"), attributed("p", namespace="b"), 0, id="another namespace"),
        pytest.param(attributed("p"), attributed("q"), 0, id="another object"),
        pytest.param(attributed("p"), attributed("p", owner="ReplicaSet/p"), 0, id="the same name of another kind"),
        pytest.param(
            attributed("p"), pod_json("p", node="a1", constraints=[constraint(match=["nope"])]), 0, id="another rule"
        ),
    ],
)
def test_a_finding_is_in_the_baseline_by_rule_object_and_path(
    baseline_pod: Json, pod: Json, known_findings: int
) -> None:
    remember([baseline_pod])
    report = against([pod])
    assert report["summary"]["known"] == known_findings
    assert len(report["findings"]) == 1 - known_findings


@pytest.mark.usefixtures("directory")
def test_another_path_is_new() -> None:
    stale_constraints = stale("p")["spec"]["topologySpreadConstraints"]
    remember([{**attributed("p"), "spec": {"topologySpreadConstraints": stale_constraints}}])
    constraints = [constraint(), *stale_constraints]
    report = against([{**attributed("p"), "spec": {"topologySpreadConstraints": constraints}}])
    assert [finding["path"] for finding in report["findings"]] == ["spec.topologySpreadConstraints[1]"]
    assert (report["summary"]["known"], report["summary"]["gone"]) == (0, 1)


@pytest.mark.usefixtures("directory")
def test_more_pods_do_not_make_a_finding_new() -> None:
    remember([attributed("web-1", owner="ReplicaSet/web")])
    report = against([attributed("web-1", owner="ReplicaSet/web"), attributed("web-2", owner="ReplicaSet/web")])
    assert (report["findings"], report["summary"]["known"]) == ([], 1)


@pytest.mark.usefixtures("directory")
def test_without_a_baseline_no_finding_is_known_or_gone() -> None:
    summary = json.loads(check([attributed("p")], "-o", "json").stdout)["summary"]
    assert not {"known", "gone"} & summary.keys()
    assert "known" not in check([attributed("p")]).stdout


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("pods", "arguments", "output"),
    [
        pytest.param([attributed("a"), attributed("b")], (), "", id="nothing is gone"),
        pytest.param([attributed("a"), healthy("b")], (), "1 finding of the baseline is gone\n", id="one"),
        pytest.param([healthy("a"), healthy("b")], (), "2 findings of the baseline are gone\n", id="two"),
        pytest.param([attributed("a"), attributed("b")], ("--ignore", "SPR101"), "", id="silenced is not gone"),
        pytest.param(
            [attributed("a"), attributed("b")], ("--severity", "error"), "", id="nor is what is less than asked for"
        ),
        pytest.param([healthy("a")], ("--select", "SPR102"), "", id="a rule that did not run"),
        pytest.param([healthy("a")], ("-n", "default"), "2 findings of the baseline are gone\n", id="its namespace"),
        pytest.param([healthy("a"), healthy("s", namespace="shop")], ("-n", "shop"), "", id="another namespace"),
        pytest.param([healthy("a"), healthy("b")], ("a",), "", id="only some pods are evaluated, by name"),
        pytest.param([healthy("a"), healthy("b")], ("-l", "app=web"), "", id="or by label"),
        pytest.param([healthy("a"), healthy("b")], ("--field-selector", "spec.nodeName=a1"), "", id="or by field"),
    ],
)
def test_findings_that_are_gone_are_counted_only_where_all_pods_were_checked(
    pods: list[Json], arguments: tuple[str, ...], output: str
) -> None:
    remember([attributed("a"), attributed("b")])
    outcome = check(pods, "--baseline", BASELINE, "-o", "json", *arguments)
    assert (outcome.exit_code, outcome.stderr) == (0, output)
    gone = json.loads(outcome.stdout)["summary"].get("gone", 0)
    assert gone == (int(output.partition(" ")[0]) if output else 0)


@pytest.mark.usefixtures("directory")
def test_no_finding_is_gone_when_an_object_could_not_be_read() -> None:
    remember([attributed("a")])
    outcome = check([MALFORMED], "--baseline", BASELINE, "-o", "json")
    assert outcome.exit_code == 2
    assert "gone" not in outcome.stderr
    assert "gone" not in json.loads(outcome.stdout)["summary"]


@pytest.mark.usefixtures("directory")
def test_a_skew_is_not_gone_where_no_nodes_are_known() -> None:
    remember(SKEWED)
    codes = [finding["code"] for finding in json.loads(Path(BASELINE).read_text())["findings"]]
    assert codes == ["SPR501", "SPR301"]
    assert check(SKEWED[:3], "--baseline", BASELINE).stderr == ""
    assert against(SKEWED[:3])["summary"]["gone"] == 0


@pytest.mark.usefixtures("directory")
def test_the_worst_finding_of_a_place_in_the_baseline_counts() -> None:
    remember([attributed("p", node=""), attributed("p", namespace="shop")])
    base = json.loads(Path(BASELINE).read_text())
    worse, milder = base["findings"]
    less = {**worse, "severity": "info"}
    Path(BASELINE).write_text(json.dumps({**base, "findings": [less, worse, less, milder]}))
    summary = against([attributed("p", node="")])["summary"]
    assert (summary["known"], summary["gone"]) == (1, 1)


@pytest.mark.usefixtures("directory")
def test_findings_on_templates_are_in_the_baseline_too() -> None:
    objects = [deployment(constraints=[constraint(match=["nope"])])]
    remember(objects)
    assert against(objects)["summary"]["known"] == 1


@pytest.mark.usefixtures("directory")
def test_a_report_with_unknown_fields_is_a_baseline() -> None:
    remember([attributed("p")])
    base = json.loads(Path(BASELINE).read_text())
    base["findings"][0]["later"] = {"than": "this"}
    Path(BASELINE).write_text(json.dumps({**base, "later": 1}))
    assert against([attributed("p")])["summary"]["known"] == 1


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
def test_a_baseline_that_is_not_a_report_is_refused(text: str, output: str) -> None:
    Path("bad").write_text(text)
    outcome = check([healthy("p")], "--baseline", "bad", "--fail-on", "never")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"error: {output}")
    assert outcome.stderr.count("\n") == 1


@pytest.mark.usefixtures("directory")
def test_a_baseline_that_cannot_be_read_is_an_error() -> None:
    outcome = check([healthy("p")], "--baseline", "gone.json")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == "error: error reading gone.json: no such file or directory\n"


@pytest.mark.usefixtures("directory")
def test_a_baseline_may_come_from_standard_input() -> None:
    remember([attributed("p")])
    Path("now.json").write_text(json.dumps(attributed("p")))
    text = Path(BASELINE).read_text()
    outcome = run("check", "-f", "now.json", *VERSION, "--baseline", "-", stdin=text)
    assert "1 finding in the baseline." in outcome.stdout
    outcome = run("check", "-f", "-", "--baseline", "-", stdin=text)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == "error: --baseline and --filename cannot both be standard input\n"


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("least", "codes", "silenced"),
    [("info", ["SPR108", "SPR101", "SPR101"], 0), ("warning", ["SPR101", "SPR101"], 1), ("error", ["SPR101"], 2)],
)
def test_severity_hides_less_severe_findings(least: str, codes: list[str], silenced: int) -> None:
    unmerged = pod_json("a", labels={**WEB, "rev": "r1"}, constraints=[constraint(match=["rev"])])
    document = json.loads(check([unmerged, stale("p"), REPELLING], "--severity", least, "-o", "json").stdout)
    assert [finding["code"] for finding in document["findings"]] == codes
    assert document["summary"]["silenced"] == silenced
    assert sum(document["summary"]["findings"].values()) == len(codes)


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("least", "fail_on", "status"),
    [("warning", "info", 1), ("error", "info", 0), ("error", "warning", 0), ("info", "error", 0)],
)
def test_findings_below_the_severity_do_not_fail(least: str, fail_on: str, status: int) -> None:
    outcome = check([stale("p"), SIBLING], "--severity", least, "--fail-on", fail_on)
    assert outcome.exit_code == status
    assert ("1 finding silenced" in outcome.stdout) is (least == "error")


@pytest.mark.usefixtures("directory")
def test_a_silenced_finding_is_not_counted_as_known() -> None:
    remember([attributed("p")])
    summary = against([attributed("p")], "--severity", "error")["summary"]
    assert (summary["silenced"], summary["known"], summary["gone"]) == (1, 0, 0)


CAPTURE = "no managedFields in what was read: capture with --show-managed-fields to see who changed a label\n"
LATE = pod_json(
    "late",
    labels={**WEB, "rev": "r1", "track": "x"},
    constraints=[constraint(match=["rev", "track"], selects=selector(WEB, requirement("rev", "In", "r1")))],
)
UNMERGED = pod_json("unmerged", labels={**WEB, "rev": "r1"}, constraints=[constraint(match=["rev"])])


def manifest(pod: Json) -> Json:
    """Return a pod without the fields that the API server sets."""
    metadata = {name: value for name, value in pod["metadata"].items() if name not in ("uid", "generation")}
    return {**pod, "metadata": metadata}


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("objects", "output"),
    [
        pytest.param([stale("p"), stale("q")], CAPTURE, id="stale-label, once for all pods"),
        pytest.param([LATE], CAPTURE, id="late-label"),
        pytest.param([UNMERGED], CAPTURE, id="unmerged"),
        pytest.param([stale("p"), attributed("q")], "", id="one pod has managedFields"),
        pytest.param([healthy("p")], "", id="nothing depends on them"),
        pytest.param([pod_json("p", constraints=[constraint(match=["nope"])])], "", id="absent-key does not"),
        pytest.param([manifest(UNMERGED), manifest(LATE)], "", id="a manifest has none"),
    ],
)
def test_a_hint_explains_a_capture_without_managed_fields(objects: list[Json], output: str) -> None:
    assert check(objects).stderr == output


@pytest.mark.usefixtures("directory")
def test_the_hint_is_printed_with_other_notes() -> None:
    outcome = run("explain", "p", "-f", "-", stdin=json.dumps(stale("p")))
    assert outcome.stderr == CAPTURE
