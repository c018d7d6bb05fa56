"""``check --server-version``, ``--to`` and ``--recreate``: versions, gates, notes and exit status."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from kubectl_spread.audit.evaluation.evaluate import evaluate
from kubectl_spread.audit.merge.verdicts import ExtraChecks
from kubectl_spread.cli import cli
from kubectl_spread.errors import UsageError
from kubectl_spread.kube.features import (
    NEWEST_MINOR,
    NEWEST_RELEASED_MINOR,
    OLDEST_MINOR,
    PRE_RELEASES,
    Gate,
    behaviour,
    gates,
)
from kubectl_spread.run.options import CheckOptions, target_for
from tests.audits import audit, deployment, reported
from tests.builders import Json, affinity, constraint, node_json, pod_json, requirement, selector, term

R1 = {"app": "web", "rev": "r1"}
MERGED = constraint(match=["rev"], selects=selector({"app": "web"}, requirement("rev", "In", "r1")))
STORED = pod_json(labels=R1, constraints=[MERGED], node="a1")
TWICE = deployment(labels=R1, constraints=[constraint(match=["rev", "rev"])])
KNOWN = f"1.{OLDEST_MINOR} to 1.{NEWEST_MINOR} are known"
POLICY = "NodeInclusionPolicyInPodTopologySpread"


def check(*objects: Json, arguments: tuple[str, ...] = (), command: str = "check") -> Result:
    stdin = "\n".join(json.dumps(manifest) for manifest in objects)
    outcome = CliRunner().invoke(cli, [command, "-f", "-", *arguments], input=stdin)
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), outcome.exception
    return outcome


def report(*objects: Json, arguments: tuple[str, ...] = ()) -> Any:
    return json.loads(check(*objects, arguments=("-o", "json", *arguments)).stdout)


def codes(*objects: Json, arguments: tuple[str, ...] = ()) -> set[str]:
    return {finding["code"] for finding in report(*objects, arguments=(*arguments, "--select", "SPR4"))["findings"]}


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        pytest.param(("--server-version", "1.x"), '--server-version: "1.x" is not a Kubernetes version', id="1.x"),
        pytest.param(("--to", "2.0"), '--to: "2.0" is not a Kubernetes version (write 1.37)', id="--to"),
        *(
            pytest.param(
                (option, version), f"{option}: Kubernetes {version} is not known ({KNOWN})", id=f"{option} {word}"
            )
            for option in ("--server-version", "--to")
            for version, word in (("1.26", "too old"), ("1.45", "too new"))
        ),
        pytest.param(
            ("--server-version", "1.34", "--to", "1.37", "--feature-gates", "MatchLabelKeysInPodTopologySpread=false"),
            "--to: no server of 1.37 would start with these feature gates: "
            "MatchLabelKeysInPodTopologySpreadSelectorMerge is enabled, but depends on features that are disabled: "
            "[MatchLabelKeysInPodTopologySpread]",
            id="gates of which the other server would not start",
        ),
        pytest.param(
            ("--server-version", "1.32", "--feature-gates", "MatchLabelKeysInPodTopologySpreadSelectorMerge=false"),
            "unrecognized feature gate: MatchLabelKeysInPodTopologySpreadSelectorMerge",
            id="a gate of nobody",
        ),
        pytest.param(
            ("--server-version", "1.33", "--to", "1.34", "--feature-gates", f"{POLICY}=false"),
            f"cannot set feature gate {POLICY} to false, feature is locked to true",
            id="a gate that both have locked",
        ),
    ],
)
@pytest.mark.parametrize("command", ["check", "explain"])
def test_contradictory_versions_are_usage_errors(arguments: tuple[str, ...], output: str, command: str) -> None:
    outcome = check(STORED, arguments=(*(["web-1"] if command == "explain" else []), *arguments), command=command)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"error: {output}")
    assert outcome.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "notes"),
    [
        pytest.param(("--server-version", "1.33", "--to", "1.34"), [], id="both"),
        pytest.param(("--server-version", "v1.33.4"), [], id="a patch release"),
        pytest.param(
            ("--to", "1.33"),
            ["evaluated as Kubernetes 1.37, the newest known (--server-version changes it)"],
            id="--to alone, and lower",
        ),
    ],
)
def test_notes_explain_the_versions(arguments: tuple[str, ...], notes: list[str]) -> None:
    assert check(pod_json(), arguments=(*arguments, "-o", "json")).stderr.splitlines() == notes


UNRELEASED = f"Kubernetes 1.38 is evaluated as its pre-release {PRE_RELEASES[38]}: a later 1.38 may differ"


@pytest.mark.parametrize(
    ("arguments", "warnings"),
    [
        pytest.param(("--server-version", "1.37"), None, id="a release"),
        pytest.param(("--server-version", "1.38"), [UNRELEASED], id="a pre-release"),
        pytest.param(("--server-version", "1.37", "--to", "1.38"), [UNRELEASED], id="compared with a pre-release"),
        pytest.param(("--server-version", "1.38", "--to", "1.38"), [UNRELEASED], id="said once"),
    ],
)
def test_the_report_warns_of_a_version_that_is_not_released(
    arguments: tuple[str, ...], warnings: list[str] | None
) -> None:
    assert report(STORED, arguments=arguments)["cluster"].get("warnings") == warnings
    assert check(STORED, arguments=arguments).stderr.splitlines() == (warnings or [])


def test_files_are_evaluated_as_the_newest_release_and_not_as_a_pre_release() -> None:
    cluster = report(STORED)["cluster"]
    assert (cluster["evaluatedAs"], cluster["versionSource"]) == (f"1.{NEWEST_RELEASED_MINOR}", "default")
    assert "warnings" not in cluster


def test_a_server_of_a_pre_release_is_evaluated_as_what_it_is_with_a_warning() -> None:
    target_version = target_for(CheckOptions(), (1, 38))
    assert (target_version.minor, target_version.warnings, target_version.problems) == (38, (UNRELEASED,), ())


EMPTY = [
    *(pod_json(f"web-{node}", node=node, constraints=[constraint(selects={})]) for node in ("a1", "b1")),
    *(pod_json(f"batch-{number}", node="a1", labels={"app": "batch"}) for number in range(3)),
    *(node_json(name) for name in ("a1", "b1", "c1")),
]


def test_an_empty_selector_counts_from_1_38_on() -> None:
    """A check as 1.38 has the findings that --to 1.38 announces."""
    before, after = (
        report(*EMPTY, arguments=("--server-version", version))["constraints"][0] for version in ("1.37", "1.38")
    )
    assert [domain["matchNum"] for domain in before["domains"]] == [0, 0, 0]
    assert [domain["matchNum"] for domain in after["domains"]] == [4, 1, 0]
    assert (before["next"]["allowed"], after["next"]["allowed"]) == (["a", "b", "c"], ["c"])
    assert after["selfMatchNum"] == 1
    findings = report(*EMPTY, arguments=("--server-version", "1.37", "--to", "1.38", "--select", "SPR406"))["findings"]
    assert len(findings) == 2
    for finding in findings:
        assert "1.38 counts a=4 b=1 c=0" in finding["message"]
        assert finding["message"].endswith("New pods can no longer go to zones a and b.")


def test_where_new_pods_can_go_is_not_claimed_without_nodes() -> None:
    """Zones inferred from the labels of pods may be incomplete, and may not accept new pods."""
    pods = [
        pod_json(
            "web-1",
            node="a1",
            labels={"app": "web", "topology.kubernetes.io/zone": "a"},
            constraints=[constraint(selects={})],
        ),
        *(
            pod_json(f"batch-{node}", node=node, labels={"topology.kubernetes.io/zone": node[0]})
            for node in ("a1", "a2", "b1")
        ),
    ]
    now = audit(*pods)
    extra_checks = ExtraChecks(upgrade=(behaviour(38, gates(38, {})),))
    compared = evaluate(now.snapshot, msgspec.structs.replace(now.context, extra_checks=extra_checks), nodes="inferred")
    (message,) = (finding.message for finding in reported(compared).findings if finding.code == "SPR406")
    assert message.endswith("1.38 counts a=3 b=1 (minimum 1, skew 2).")


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_gate_that_the_other_minor_has_removed_is_left_to_this_one(value: str) -> None:
    gate = f"MatchLabelKeysInPodAffinity={value}"
    refused = check(STORED, arguments=("--server-version", "1.38", "--feature-gates", gate))
    assert (refused.exit_code, refused.stdout) == (2, "")
    removed = "error: unrecognized feature gate: MatchLabelKeysInPodAffinity (removed in 1.38: always on)"
    assert removed in refused.stderr.splitlines()
    assert check(STORED, arguments=("--server-version", "1.32", "--to", "1.38", "--feature-gates", gate)).exit_code != 2


def test_the_report_says_what_was_compared() -> None:
    cluster = report(STORED, arguments=("--server-version", "1.33", "--to", "1.34"))["cluster"]
    assert (cluster["evaluatedAs"], cluster["comparedWith"], cluster["versionSource"]) == ("1.33", "1.34", "flag")
    assert "comparedWith" not in report(STORED)["cluster"]
    table = check(STORED, arguments=("--server-version", "1.33", "--to", "1.34")).stdout
    assert table.startswith(
        "evaluated as Kubernetes 1.33, compared with 1.34, default feature gates  1 pod in 1 workload, "
    )


def test_a_template_that_stops_working_is_an_error() -> None:
    arguments = ("--server-version", "1.33", "--to", "1.34", "--select", "SPR404")
    outcome = check(TWICE, arguments=arguments)
    assert outcome.exit_code == 1
    assert "Kubernetes 1.34 refuses every pod of this template, and Kubernetes 1.33 does not." in outcome.stdout
    assert "Error: spec.topologySpreadConstraints[0][1]" in outcome.stdout
    assert check(TWICE, arguments=("--server-version", "1.33", "--select", "SPR404")).exit_code == 0


@pytest.mark.parametrize(
    ("gates", "expected_codes"),
    [
        pytest.param("", {"SPR404"}, id="defaults"),
        pytest.param("MatchLabelKeysInPodTopologySpreadSelectorMerge=false", set(), id="a gate that only 1.34 knows"),
    ],
)
def test_gates_apply_to_the_other_minor(gates: str, expected_codes: set[str]) -> None:
    flags = ("--feature-gates", gates) if gates else ()
    assert codes(TWICE, arguments=("--server-version", "1.33", "--to", "1.34", *flags)) == expected_codes


def test_a_gate_that_the_other_minor_has_locked_is_left_to_this_one() -> None:
    pods = [
        pod_json(f"web-{node}", node=node, constraints=[constraint(nodeTaintsPolicy="Honor")]) for node in ("a1", "b1")
    ]
    taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    nodes = [node_json("a1"), node_json("b1"), node_json("c1", taints=[taint])]
    flags = ("--server-version", "1.32", "--to", "1.33", "--feature-gates", f"{POLICY}=false")
    assert codes(*pods, *nodes, arguments=flags) == {"SPR406"}
    # And the other way round.
    flags = ("--server-version", "1.33", "--to", "1.32", "--feature-gates", f"{POLICY}=false")
    assert codes(*pods, *nodes, arguments=flags) == {"SPR406"}
    assert codes(*pods, *nodes, arguments=("--server-version", "1.32", "--to", "1.33")) == set()


@pytest.mark.parametrize(
    ("minor", "to", "served", "enabled"),
    [
        pytest.param(32, "1.33", {POLICY: False}, True, id="locked there"),
        pytest.param(31, "1.32", {POLICY: False}, False, id="switched off here, so there too"),
        pytest.param(31, "1.32", {POLICY: True}, True, id="the default here"),
    ],
)
def test_gates_that_were_read_apply_where_they_can(minor: int, to: str, served: dict[str, bool], enabled: bool) -> None:
    target_version = target_for(CheckOptions(to_version=to), (1, minor), served)
    (upgrade,) = target_version.upgrade
    assert upgrade.node_inclusion_policies is enabled
    assert target_version.warnings == ()


def test_a_default_that_was_read_is_not_carried_over() -> None:
    """The metrics of 1.34 report the gate as off, which is its default; in 1.35 it is on by default."""
    target_version = target_for(CheckOptions(to_version="1.35"), (1, 34), {Gate.TOPOLOGY_LABELS: False})
    assert not target_version.behaviour.binding_writes_topology_labels
    (upgrade,) = target_version.upgrade
    assert upgrade.binding_writes_topology_labels


def test_gates_that_were_read_may_keep_the_other_server_from_starting() -> None:
    with pytest.raises(UsageError, match=r"no server of 1\.35 would start"):
        target_for(CheckOptions(to_version="1.35"), (1, 34), {Gate.MATCH_LABEL_KEYS: False})


SELECTOR = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
EVERYWHERE = deployment(
    labels=R1, affinity=affinity("podAntiAffinity", {**term(selects=selector(R1)), "namespaceSelector": SELECTOR})
)
"""Its term acts on every namespace from 1.34 to 1.36."""


def upgraded(*objects: Json, arguments: tuple[str, ...]) -> tuple[Any, str]:
    """Return the upgrade in the summary, and the last line of the table."""
    table = check(*objects, arguments=arguments).stdout
    return report(*objects, arguments=arguments)["summary"].get("upgrade"), table.splitlines()[-1]


@pytest.mark.parametrize(
    ("versions", "minors"),
    [
        pytest.param(("1.33", "1.37"), "1.34 to 1.36", id="only on the way"),
        pytest.param(("1.37", "1.33"), "1.34 to 1.36", id="on the way back"),
        pytest.param(("1.33", "1.35"), "1.34 and 1.35", id="at the end too"),
        pytest.param(("1.33", "1.34"), "1.34", id="in one step"),
        pytest.param(("1.35", "1.37"), "1.35 and 1.36", id="at the beginning too"),
        pytest.param(("1.37", "1.38"), "", id="not on this way"),
    ],
)
def test_each_minor_on_the_way_is_evaluated(versions: tuple[str, str], minors: str) -> None:
    arguments = ("--server-version", versions[0], "--to", versions[1], "--select", "SPR407")
    messages = [finding["message"] for finding in report(EVERYWHERE, arguments=arguments)["findings"]]
    expected = [f"kube-scheduler {minors}"] if minors else []
    assert [message.partition(" applies ")[0] for message in messages] == expected


def test_minors_with_the_same_answer_are_one_finding() -> None:
    arguments = ("--server-version", "1.33", "--to", "1.38", "--select", "SPR404")
    (finding,) = report(TWICE, arguments=arguments)["findings"]
    assert finding["message"].startswith("Kubernetes 1.34 to 1.38 refuses every pod of this template, and Kubernetes")
    assert finding["values"]["compared"] == "1.34 to 1.38"


def test_minors_that_count_differently_for_different_reasons_are_two_findings() -> None:
    """1.33 honours taints, and 1.38 counts pods for the empty selector."""
    taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    constraints = [constraint(selects={}, nodeTaintsPolicy="Honor")]
    pods = [pod_json(f"web-{node}", node=node, constraints=constraints) for node in ("a1", "b1")]
    nodes = [node_json("a1"), node_json("b1"), node_json("c1", taints=[taint])]
    flags = ("--server-version", "1.32", "--to", "1.38", "--feature-gates", f"{POLICY}=false", "--select", "SPR406")
    findings = report(*pods, *nodes, arguments=flags)["findings"]
    assert {finding["values"]["compared"] for finding in findings} == {"1.33 to 1.37", "1.38"}


@pytest.mark.parametrize(
    ("arguments", "change", "sentence"),
    [
        pytest.param(
            ("--server-version", "1.33", "--to", "1.37"),
            {"minors": ["1.34", "1.35", "1.36", "1.37"], "workloads": 1, "codes": ["SPR407"], "silenced": 0},
            "The upgrade from 1.33 to 1.37 changes 1 workload (SPR407).",
            id="changed",
        ),
        pytest.param(
            ("--server-version", "1.35", "--to", "1.36"),
            {"minors": ["1.36"], "workloads": 0, "codes": [], "silenced": 0},
            "The upgrade from 1.35 to 1.36 changes nothing.",
            id="as before",
        ),
        pytest.param(
            ("--server-version", "1.37", "--to", "1.36"),
            {"minors": ["1.36"], "workloads": 1, "codes": ["SPR407"], "silenced": 0},
            "The downgrade from 1.37 to 1.36 changes 1 workload (SPR407).",
            id="downgrade",
        ),
        pytest.param(
            ("--server-version", "1.33", "--to", "1.37", "--ignore", "SPR407"),
            {"minors": ["1.34", "1.35", "1.36", "1.37"], "workloads": 0, "codes": [], "silenced": 1},
            "The upgrade from 1.33 to 1.37 changes nothing but 1 silenced finding.",
            id="silenced",
        ),
        pytest.param(("--server-version", "1.33", "--to", "1.37", "--select", "SPR404"), None, "", id="not all rules"),
        pytest.param(("--server-version", "1.36", "--to", "1.36"), None, "", id="the same version"),
        pytest.param(("--server-version", "1.36"), None, "", id="no comparison"),
    ],
)
def test_the_changes_of_the_upgrade_itself_are_summed_up(
    arguments: tuple[str, ...], change: Any, sentence: str
) -> None:
    summary, line = upgraded(EVERYWHERE, arguments=arguments)
    assert summary == change
    assert (sentence in line) if sentence else ("grade from" not in line)


def test_an_empty_selector_without_nodes_is_a_change() -> None:
    empty = deployment(labels=R1, constraints=[constraint(selects={})])
    for versions, codes_of_change in ((("1.37", "1.38"), ["SPR205"]), (("1.36", "1.37"), [])):
        summary, _ = upgraded(empty, arguments=("--server-version", versions[0], "--to", versions[1]))
        assert summary["codes"] == codes_of_change


def test_what_was_not_evaluated_may_change() -> None:
    arguments = ("--server-version", "1.36", "--to", "1.37")
    rollout = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web"}}
    template = {
        "metadata": {"labels": R1},
        "spec": {"containers": [{"name": "web", "image": "web"}], "nodeName": "{{ node }}"},
    }
    _, line = upgraded({**rollout, "spec": {"template": template}}, arguments=arguments)
    assert "The upgrade from 1.36 to 1.37 changes nothing in what was read and evaluated." in line


def test_explain_and_the_page_say_what_the_upgrade_changes() -> None:
    arguments = ("--server-version", "1.33", "--to", "1.37")
    explained = check(STORED, arguments=("web-1", *arguments), command="explain").stdout
    page = check(STORED, arguments=("-o", "html", *arguments)).stdout
    for text in (explained, page):
        assert "The upgrade from 1.33 to 1.37 changes 1 workload (SPR405)." in text


def test_a_bare_pod_that_is_refused_again_is_an_error() -> None:
    assert check(STORED).exit_code == 0
    outcome = check(STORED, arguments=("--recreate", "-o", "json"))
    assert outcome.exit_code == 1
    (finding,) = json.loads(outcome.stdout)["findings"]
    assert (finding["code"], finding["severity"], finding["pods"]) == ("SPR207", "error", ["web-1"])
    owned = {
        **STORED,
        "metadata": {**STORED["metadata"], "ownerReferences": [{"kind": "Job", "name": "x", "controller": True}]},
    }
    assert check(owned, arguments=("--recreate",)).exit_code == 0


def test_pods_are_counted_where_their_term_has_no_row() -> None:
    """A term without keys has no row in the table."""
    broken = affinity("podAntiAffinity", term(selects=selector(None, requirement("app"))))
    outcome = check(pod_json(affinity=broken, node="a1"), arguments=("--recreate", "--select", "SPR207"))
    assert "SPR207 refused-again: po/web-1\n" in outcome.stdout


def test_the_annotation_of_a_pod_silences_a_finding_on_a_term_without_keys() -> None:
    broken = affinity("podAntiAffinity", term(selects=selector(None, requirement("app"))))
    ignoring = {"annotations": {"kubectl-spread/ignore": "SPR2,SPR401"}}
    finding = report(pod_json(affinity=broken, node="a1", metadata=ignoring), arguments=("--recreate",))
    assert finding["findings"] == []
    assert finding["summary"]["silenced"] > 0


def test_explain_takes_the_same_options() -> None:
    outcome = check(
        STORED, arguments=("web-1", "--server-version", "1.34", "--to", "1.33", "--recreate"), command="explain"
    )
    assert outcome.exit_code == 0, outcome.output
    assert {"SPR207", "SPR404"} <= {word for word in outcome.stdout.split() if word.startswith("SPR")}


NEWER = NEWEST_MINOR + 1
"""A minor that is not known yet."""


def test_a_server_that_is_newer_than_all_is_evaluated_as_the_newest_with_an_error() -> None:
    target_version = target_for(CheckOptions(), (1, NEWER))
    problem = (
        f"Kubernetes 1.{NEWER} is newer than 1.{NEWEST_MINOR}, the newest that is known: evaluated as "
        f"1.{NEWEST_MINOR} (--server-version 1.{NEWEST_MINOR} confirms it)"
    )
    answer = (target_version.minor, target_version.problems, target_version.warnings)
    assert answer == (NEWEST_MINOR, (problem,), (UNRELEASED,))


@pytest.mark.parametrize("server", [(1, NEWER), (1, 26), (2, 37), (0, 37)])
def test_a_server_that_is_not_known_is_no_error_if_the_user_names_a_known_version(server: tuple[int, int]) -> None:
    target_version = target_for(CheckOptions(server_version="1.34"), server)
    assert (target_version.minor, target_version.problems, target_version.warnings) == (34, (), ())


@pytest.mark.parametrize(("server", "version"), [((1, 26), "1.26"), ((2, 37), "2.37"), ((0, 37), "0.37")])
def test_a_server_that_is_too_old_or_of_another_major_is_refused(server: tuple[int, int], version: str) -> None:
    with pytest.raises(UsageError) as refused:
        target_for(CheckOptions(), server)
    known = f"{KNOWN}; --server-version chooses one"
    assert str(refused.value) == f"the server's version: Kubernetes {version} is not known ({known})"
