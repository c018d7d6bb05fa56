"""``kubectl spread check`` on files: exit status, stdout and stderr apart, scope and silencing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kubectl_spread.cli import cli
from tests import contract
from tests.audits import deployment
from tests.builders import Json, affinity, constraint, node_json, pod_json, requirement, selector, term
from tests.generated import ROOT, SAMPLE

WEB = {"app": "web"}
R2 = {"app": "web", "rev": "r2"}
OLD = selector(WEB, requirement("rev", "In", "r1"))
JUDGED = "evaluated as Kubernetes 1.37, the newest known (--server-version changes it)\n"


def stale(name: str, node: str = "a1", **fields: Any) -> Json:
    spread_constraint = constraint(match=["rev"], selects=OLD, hard=False)
    return pod_json(name, node=node, labels=R2, constraints=[spread_constraint], **fields)


def healthy(name: str, **fields: Any) -> Json:
    return pod_json(name, constraints=[constraint()], **fields)


REPLICA_SET = deployment("web-1", kind="ReplicaSet", owner="Deployment/web", labels=R2)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory that commands run in; no kubeconfig can be found from there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    return tmp_path


def run(*arguments: str, stdin: str | None = None) -> Result:
    outcome = CliRunner().invoke(cli, arguments, input=stdin)
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), outcome.exception
    assert "Traceback" not in outcome.output
    return outcome


def check(*objects: Json, arguments: tuple[str, ...] = ()) -> Result:
    return run("check", "-f", "-", *arguments, stdin="\n".join(json.dumps(manifest) for manifest in objects))


def report(*objects: Json, arguments: tuple[str, ...] = ()) -> Any:
    return contract.loaded(check(*objects, arguments=("-o", "json", *arguments)).stdout)


EMPTY: Json = {"apiVersion": "v1", "kind": "List", "items": []}
MALFORMED = {**healthy("broken"), "spec": {"topologySpreadConstraints": [{"maxSkew": "1"}]}}
PENDING = stale("web-9", node="")
REPELLING = pod_json("web-8", labels=R2, affinity=affinity("podAntiAffinity", term(selects=OLD, match=["rev"])))
"""A pod with an error: its required term still acts on pods with the old label."""
SIBLING = {**stale("sibling"), "metadata": {**stale("sibling")["metadata"], "labels": {**WEB, "rev": "r1"}}}
"""A pod whose selector does not count the pods with a stale label."""


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("objects", "arguments", "status"),
    [
        pytest.param([healthy("p")], (), 0, id="healthy is 0"),
        pytest.param([healthy("p")], ("--fail-on", "info"), 0, id="whatever --fail-on says"),
        pytest.param([stale("p"), SIBLING], (), 0, id="a warning is 0 by default"),
        pytest.param([stale("p"), SIBLING], ("--fail-on", "error"), 0, id="a warning is not an error"),
        pytest.param([stale("p"), SIBLING], ("--fail-on", "warning"), 1, id="a warning is 1 where asked for"),
        pytest.param([stale("p"), SIBLING], ("--fail-on", "info"), 1, id="and where less is"),
        pytest.param([stale("p")], ("--fail-on", "warning"), 0, id="without siblings a changed label is info"),
        pytest.param([REPELLING], (), 1, id="an error is 1"),
        pytest.param([REPELLING], ("--fail-on", "never"), 0, id="never is never 1"),
        pytest.param([REPELLING], ("--ignore", "SPR101"), 0, id="a silenced error is 0"),
        pytest.param([REPELLING], ("--select", "SPR3"), 0, id="so is one that is not selected"),
        pytest.param([REPELLING, MALFORMED], (), 2, id="2 beats 1"),
        pytest.param([healthy("p"), MALFORMED], ("--fail-on", "never"), 2, id="never does not hide what was not read"),
        pytest.param([healthy("p")], ("gone",), 2, id="NotFound is 2"),
        pytest.param([healthy("p")], ("deploy/web", "--fail-on", "never"), 2, id="also of a workload"),
        pytest.param([EMPTY], (), 0, id="an empty list is 0"),
        pytest.param([], (), 2, id="empty input is 2"),
    ],
)
@pytest.mark.parametrize("form", [(), ("-o", "json"), ("-o", "yaml"), ("-o", "wide"), ("-o", "name")])
def test_the_exit_status_follows_the_findings_and_fail_on(
    objects: list[Json], arguments: tuple[str, ...], status: int, form: tuple[str, ...]
) -> None:
    assert check(*objects, arguments=(*arguments, *form)).exit_code == status


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        pytest.param(("--server-version", "2.0"), "2.0", id="another major"),
        pytest.param(("--server-version", "1"), '"1"', id="no minor"),
        pytest.param(("--server-version", "1.x"), "1.x", id="no number"),
        pytest.param(("--server-version", "1.26"), "not known", id="too old"),
        pytest.param(("--feature-gates", "Nonsense=true"), "Nonsense", id="unknown gate"),
        pytest.param(("--feature-gates", "MatchLabelKeysInPodTopologySpread"), "NAME=true", id="a gate without value"),
        pytest.param(("--feature-gates", "MatchLabelKeysInPodTopologySpread=1"), "NAME=true", id="a gate's bad value"),
        pytest.param(
            ("--feature-gates", "MatchLabelKeysInPodAffinity=false"), "locked to true", id="a gate that is locked"
        ),
        pytest.param(("--merge-since", "yesterday"), "yesterday", id="no time"),
        pytest.param(("-l", "app in (web"), "app in (web", id="bad label selector"),
        pytest.param(("--field-selector", "spec.nodeName"), "spec.nodeName", id="bad field selector"),
        pytest.param(("--field-selector", "spec.nope=x"), "spec.nope", id="unknown field"),
        pytest.param(("--select", "SPR9"), "SPR9", id="unknown code"),
        pytest.param(("--ignore", "nope"), "nope", id="unknown code to ignore"),
        pytest.param(("--ignore", "stale"), "stale", id="part of a name"),
        pytest.param(("svc/web",), "svc", id="unknown type"),
        pytest.param(("deploy/",), "deploy/", id="no name"),
        pytest.param(("deploy/a/b",), "deploy/a/b", id="too many slashes"),
        pytest.param(("deploy/web", "web"), "web", id="both forms mixed"),
        pytest.param(("p", "-l", "app=web"), "cannot be combined", id="names and selectors"),
    ],
)
def test_usage_errors_are_one_line_on_stderr(arguments: tuple[str, ...], output: str) -> None:
    outcome = check(healthy("p"), arguments=arguments)
    assert outcome.exit_code == 2
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("error: ")
    assert outcome.stderr.count("\n") == 1
    assert output in outcome.stderr


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    "arguments", [("--nonsense",), ("-o", "xml"), ("--fail-on", "x"), ("--show", "x"), ("--chunk-size", "-1")]
)
def test_unknown_flags_and_values_end_with_exit_status_2(arguments: tuple[str, ...]) -> None:
    outcome = check(healthy("p"), arguments=arguments)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("error: ")
    assert outcome.stderr.count("\n") == 1


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param((), "No resources found\n", id="in everything that was read"),
        pytest.param(("-A",), "No resources found\n", id="with -A"),
        pytest.param(("-n", "shop"), "No resources found in shop namespace.\n", id="in a namespace"),
    ],
)
@pytest.mark.parametrize("form", [(), ("-o", "wide"), ("-o", "name")])
def test_an_empty_input_finds_no_resources(arguments: tuple[str, ...], words: str, form: tuple[str, ...]) -> None:
    outcome = check(EMPTY, arguments=(*arguments, *form))
    assert (outcome.exit_code, outcome.stdout) == (0, "")
    assert outcome.stderr == words


@pytest.mark.usefixtures("directory")
def test_an_empty_report_is_a_report() -> None:
    json_report = report(EMPTY)
    assert (json_report["constraints"], json_report["summary"]["pods"]) == ([], 0)


@pytest.mark.usefixtures("directory")
def test_workloads_without_pods_are_checked() -> None:
    outcome = check(deployment(constraints=[constraint()]))
    assert "No resources" not in outcome.output
    assert outcome.exit_code == 0


@pytest.mark.usefixtures("directory")
def test_data_goes_to_stdout_and_messages_to_stderr() -> None:
    outcome = check(stale("p"), MALFORMED, arguments=("-o", "json"))
    assert json.loads(outcome.stdout)["summary"]["skipped"] == {"malformed": 1}
    assert "STDIN:2" in outcome.stderr
    assert "spec.topologySpreadConstraints[0].maxSkew: expected integer, got string" in outcome.stderr
    assert JUDGED in outcome.stderr
    assert [pod["name"] for pod in json.loads(outcome.stdout)["pods"]] == ["p"]


@pytest.mark.usefixtures("directory")
def test_no_note_about_the_version_is_printed_if_the_user_named_it() -> None:
    outcome = check(healthy("p"), arguments=("--server-version", "v1.34.2", "-o", "json"))
    assert outcome.stderr == ""
    cluster = json.loads(outcome.stdout)["cluster"]
    assert (cluster["evaluatedAs"], cluster["versionSource"], cluster["gatesSource"]) == ("1.34", "flag", "version")
    assert "serverVersion" not in cluster


@pytest.mark.usefixtures("directory")
def test_an_unknown_minor_is_refused() -> None:
    outcome = check(healthy("p"), arguments=("--server-version", "1.99", "-o", "json"))
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == "error: --server-version: Kubernetes 1.99 is not known (1.27 to 1.38 are known)\n"


@pytest.mark.usefixtures("directory")
def test_gates_are_reported() -> None:
    gate = "MatchLabelKeysInPodTopologySpreadSelectorMerge"
    cluster = report(healthy("p"), arguments=("--feature-gates", f"{gate}=false"))["cluster"]
    assert cluster["gates"][gate] is False
    assert cluster["gatesSource"] == "flag"


def evaluated_pods(value: Any) -> list[str]:
    """Return the evaluated pods as ``namespace/name``, by their groups."""
    return [f"{group['namespace']}/{name}" for group in value["groups"] for name in group["pods"]]


PODS = (
    healthy("a"),
    healthy("b", namespace="shop", labels={"app": "web", "tier": "x"}),
    healthy("c", namespace="shop", node="a1"),
    healthy("d", owner="ReplicaSet/web-1"),
    REPLICA_SET,
)


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        pytest.param((), ["default/d", "default/a", "shop/b", "shop/c"], id="all that was read"),
        pytest.param(("-A",), ["default/d", "default/a", "shop/b", "shop/c"], id="-A is accepted"),
        pytest.param(("-n", "shop"), ["shop/b", "shop/c"], id="-n narrows"),
        pytest.param(("-n", "shop", "-A"), ["default/d", "default/a", "shop/b", "shop/c"], id="-A beats -n"),
        pytest.param(("--exclude-namespace", "shop,x"), ["default/d", "default/a"], id="--exclude-namespace"),
        pytest.param(("-l", "tier=x"), ["shop/b"], id="labels"),
        pytest.param(("-l", "!tier", "-n", "shop"), ["shop/c"], id="labels and namespace"),
        pytest.param(("--field-selector", "spec.nodeName=a1"), ["shop/c"], id="fields"),
        pytest.param(("--field-selector", "status.phase!=Pending"), ["shop/c"], id="fields that differ"),
        pytest.param(("a",), ["default/a"], id="NAME is a pod"),
        pytest.param(("a", "d"), ["default/d", "default/a"], id="several NAMEs"),
        pytest.param(("pod/a", "deploy/web"), ["default/d", "default/a"], id="several TYPE/NAMEs"),
        pytest.param(("pods", "a", "b"), ["default/a", "shop/b"], id="TYPE NAME NAME"),
        pytest.param(("po", "a"), ["default/a"], id="short names"),
        pytest.param(("PODS", "a"), ["default/a"], id="types in any case"),
        pytest.param(("rs/web-1",), ["default/d"], id="the direct owner"),
        pytest.param(("deploy",), ["default/d"], id="TYPE alone"),
        pytest.param(("deploy,po", "web", "-n", "default"), ["default/d"], id="several TYPEs"),
    ],
)
def test_the_scope_selects_pods(arguments: tuple[str, ...], names: list[str]) -> None:
    assert evaluated_pods(report(*PODS, arguments=arguments)) == names


@pytest.mark.usefixtures("directory")
def test_a_missing_name_among_several_is_an_error() -> None:
    outcome = check(*PODS, arguments=("a", "nope", "-o", "json"))
    assert outcome.exit_code == 2
    assert '"nope" not found' in outcome.stderr
    assert evaluated_pods(json.loads(outcome.stdout)) == ["default/a"]


IGNORED = {"annotations": {"kubectl-spread/ignore": "SPR101, SPR301"}}
IGNORED_BY_NAME = {"annotations": {"kubectl-spread/ignore": "spr3,stale-label"}}


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("objects", "arguments", "codes", "silenced"),
    [
        pytest.param([PENDING], (), ["SPR101"], 0, id="nothing silenced"),
        pytest.param([PENDING], ("--ignore", "SPR101"), [], 1, id="--ignore a code"),
        pytest.param([PENDING], ("--ignore", "SPR2,SPR1"), [], 1, id="--ignore prefixes"),
        pytest.param([PENDING], ("--ignore", "SPR2", "--ignore", "SPR1"), [], 1, id="--ignore again"),
        pytest.param([PENDING], ("--select", "SPR1", "--ignore", "SPR101"), [], 1, id="selected and ignored"),
        pytest.param([PENDING], ("--select", "SPR102"), [], 0, id="what is not selected is not silenced"),
        pytest.param([PENDING], ("--ignore", "spr1"), [], 1, id="--ignore in lower case"),
        pytest.param([PENDING], ("--ignore", "Stale-Label"), [], 1, id="--ignore a name"),
        pytest.param([PENDING], ("--select", "stale-label"), ["SPR101"], 0, id="--select a name"),
        pytest.param([stale("p", node="", metadata=IGNORED_BY_NAME)], (), [], 1, id="a name in the annotation"),
        pytest.param([stale("p", node="", metadata=IGNORED)], (), [], 1, id="the annotation on a pod"),
        pytest.param(
            [
                stale("p", node="", owner="Deployment/web", metadata=IGNORED),
                stale("q", node="", owner="Deployment/web"),
            ],
            (),
            ["SPR101"],
            0,
            id="on one pod of two it silences nothing",
        ),
        pytest.param(
            [
                stale("p", node="", owner="ReplicaSet/web-1"),
                REPLICA_SET,
                deployment(labels=R2, annotations={"kubectl-spread/ignore": "SPR1"}),
            ],
            (),
            [],
            1,
            id="the annotation on the root owner",
        ),
        pytest.param(
            [
                stale("p", node="", owner="ReplicaSet/web-1"),
                {**REPLICA_SET, "metadata": {**REPLICA_SET["metadata"], **IGNORED}},
                deployment(labels=R2),
            ],
            (),
            ["SPR101"],
            0,
            id="the annotation that a Deployment had before, on its ReplicaSet",
        ),
        pytest.param(
            [deployment(constraints=[constraint(match=["nope"])], annotations={"kubectl-spread/ignore": "SPR107"})],
            (),
            [],
            1,
            id="the annotation on a workload without pods",
        ),
    ],
)
def test_select_ignore_and_annotations_silence_rules(
    objects: list[Json], arguments: tuple[str, ...], codes: list[str], silenced: int
) -> None:
    json_report = report(*objects, arguments=arguments)
    assert [finding["code"] for finding in json_report["findings"]] == codes
    assert json_report["summary"]["silenced"] == silenced


@pytest.mark.parametrize("form", ["table", "html"])
def test_an_answer_says_which_rules_ran(directory: Path, form: str) -> None:
    (directory / "one.json").write_text(json.dumps(healthy("one")))
    assert (
        "Only these rules ran: SPR1, hard-skew."
        in run("check", "-f", "one.json", "--select", "SPR1,hard-skew", "-o", form).stdout
    )
    assert "Only these rules ran" not in run("check", "-f", "one.json", "-o", form).stdout


def test_files_directories_and_directories_within_are_read(directory: Path) -> None:
    (directory / "more" / "deep").mkdir(parents=True)
    (directory / "one.json").write_text(json.dumps(healthy("one")))
    (directory / "more" / "two.json").write_text(json.dumps(healthy("two")))
    (directory / "more" / "deep" / "three.json").write_text(json.dumps(healthy("three")))
    for arguments, names in (
        (("-f", "one.json"), ["one"]),
        (("-f", "more"), ["two"]),
        (("-f", "more", "-R"), ["three", "two"]),
        (("-f", "one.json", "-f", "more"), ["one", "two"]),
    ):
        document = json.loads(run("check", *arguments, "-o", "json").stdout)
        assert [name.partition("/")[2] for name in evaluated_pods(document)] == names


@pytest.mark.usefixtures("directory")
def test_a_path_that_does_not_exist_ends_with_exit_status_2() -> None:
    outcome = run("check", "-f", "gone.yaml")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == 'error: the path "gone.yaml" does not exist\n'


@pytest.mark.usefixtures("directory")
def test_control_characters_of_input_do_not_reach_the_terminal() -> None:
    """Messages on stderr have the names of malformed objects."""
    broken = {**MALFORMED, "metadata": {"name": "\x1b[31m\u202eevil"}}
    outcome = check(broken, stale("\x1b[31mp"))
    assert "\x1b" not in outcome.output
    assert "\u202e" not in outcome.output


@pytest.mark.usefixtures("directory")
def test_a_foreign_kind_is_skipped_and_counted() -> None:
    json_report = report(healthy("p"), {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}})
    assert json_report["summary"]["skipped"] == {"unknownKind": 1}


@pytest.mark.usefixtures("directory")
def test_nodes_in_the_files_are_used_for_placement() -> None:
    json_report = report(healthy("p"), node_json("a1"))
    assert json_report["cluster"]["nodes"] == "listed"
    assert json_report["cluster"]["nodeCount"] == 1
    assert report(healthy("p"))["cluster"]["nodes"] == "none"


@pytest.mark.usefixtures("directory")
def test_pending_pods_without_constraints_are_counted_as_by_domains() -> None:
    objects = [pod_json("waiting", node=""), stale("placed"), node_json("a1")]
    assert " 1 pod is pending." in check(*objects).stdout
    assert report(*objects)["summary"]["pending"] == 1
    domains = run("domains", "-f", "-", stdin="\n".join(map(json.dumps, objects)))
    assert "1 pod is pending." in domains.stdout


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(("color", "colored"), [("always", True), ("never", False), ("auto", False)])
def test_color_is_used_as_the_option_says(color: str, colored: bool) -> None:
    assert ("\x1b[" in check(stale("p"), arguments=("--color", color)).stdout) is colored


@pytest.mark.usefixtures("directory")
def test_no_headers_prints_rows_alone() -> None:
    text = check(stale("p"), arguments=("--no-headers",)).stdout
    assert text.startswith("po/p")


def test_a_type_without_objects_finds_no_resources() -> None:
    """Without this, the totals of other workloads would read as "no findings"."""
    outcome = CliRunner().invoke(cli, ["check", "sts", "-f", str(ROOT / SAMPLE), "--server-version", "1.37"])
    assert (outcome.exit_code, outcome.stdout) == (0, "")
    assert "No resources found" in outcome.stderr
