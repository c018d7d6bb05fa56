"""``kubectl spread explain``, ``rules`` and the command line itself."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result
from ruamel.yaml import YAML

from kubectl_spread import __version__
from kubectl_spread.rules import RULES
from kubectl_spread.rules.model import Rule
from tests.audits import deployment
from tests.builders import HOSTNAME, ZONE, Json, affinity, constraint, node_json, pod_json, requirement, selector, term
from tests.cli.test_check import MALFORMED, run

WEB = {"app": "web"}
STALE = pod_json(
    "web-1",
    node="a1",
    labels={**WEB, "rev": "r2"},
    constraints=[constraint(match=["rev"], selects=selector(WEB, requirement("rev", "In", "r1")))],
    owner="ReplicaSet/web-7",
)
REPLICA_SET = deployment("web-7", kind="ReplicaSet", owner="Deployment/web")
SCALED_DOWN = {**REPLICA_SET, "spec": {**REPLICA_SET["spec"], "replicas": 0}}


def explain(*objects: Json, arguments: tuple[str, ...]) -> Result:
    return run("explain", "-f", "-", *arguments, stdin="\n".join(json.dumps(manifest) for manifest in objects))


@pytest.mark.parametrize(
    "arguments", [("web-1",), ("pod/web-1",), ("po", "web-1"), ("rs/web-7",), ("deploy", "web"), ("deployments/web",)]
)
def test_explain_finds_its_object(arguments: tuple[str, ...]) -> None:
    outcome = explain(STALE, REPLICA_SET, node_json("a1"), arguments=arguments)
    assert outcome.exit_code == 0
    assert "rev stored r1, label r2: stale-label (certain)" in outcome.stdout
    assert "-matchExpressions[0].values[0]: r1" in outcome.stdout


def test_findings_do_not_change_the_exit_status_of_explain() -> None:
    """Findings do not change its exit status."""
    pending = {**STALE, "spec": {key: value for key, value in STALE["spec"].items() if key != "nodeName"}}
    assert explain(pending, arguments=("web-1",)).exit_code == 0


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_explain_prints_json_and_yaml(form: str) -> None:
    outcome = explain(STALE, REPLICA_SET, node_json("a1"), arguments=("deploy/web", "-o", form))
    assert outcome.exit_code == 0
    assert "SpreadExplanation" in outcome.stdout
    if form == "json":
        document = json.loads(outcome.stdout)
        assert document["object"] == {"kind": "Deployment", "name": "web"}
        assert document["placing"] == [{"pods": ["web-1"], "allowed": ["a1"], "refused": []}]


@pytest.mark.parametrize(
    ("objects", "arguments"),
    [
        pytest.param([STALE], ("gone",), id="no such pod"),
        pytest.param([STALE, REPLICA_SET], ("deploy/gone",), id="no such workload"),
        pytest.param([SCALED_DOWN], ("rs/web-7",), id="a workload that wants no pods"),
        pytest.param([STALE], ("web-1", "web-2"), id="two objects"),
        pytest.param([STALE], ("pods",), id="a type without a name"),
        pytest.param([STALE], ("SPR999",), id="no such rule"),
        pytest.param([STALE, MALFORMED], ("web-1",), id="something could not be read"),
    ],
)
def test_explain_ends_with_exit_status_2_if_it_cannot_answer(objects: list[Json], arguments: tuple[str, ...]) -> None:
    outcome = explain(*objects, arguments=arguments)
    assert outcome.exit_code == 2
    assert outcome.stderr


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_explain_a_rule_reads_nothing(rule: object) -> None:
    code = rule.code  # type: ignore[attr-defined]
    outcome = run("explain", code)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith(f"{code} ")


def test_rules_lists_the_catalogue() -> None:
    outcome = run("rules")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert all(rule.code in outcome.stdout and rule.name in outcome.stdout for rule in RULES)


def test_version_names_the_supported_minors() -> None:
    outcome = run("--version")
    assert outcome.stdout.startswith(f"Client Version: v{__version__}\nKubernetes Versions: 1.27 to 1.")


def test_explain_needs_an_argument() -> None:
    assert run("explain").exit_code == 2


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
@pytest.mark.parametrize("spelt", [str.lower, str.upper])
def test_explain_takes_codes_and_names_in_any_case(rule: Rule, spelt: Callable[[str], str]) -> None:
    page = run("explain", rule.code).stdout
    assert run("explain", spelt(rule.code)).stdout == page
    assert run("explain", spelt(rule.name)).stdout == page


@pytest.mark.parametrize("argument", ["SPR999", "spr999", "SPR6"])
def test_an_unknown_code_is_an_error(argument: str) -> None:
    outcome = run("explain", argument)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == (
        f'error: no rule has the code or name "{argument}" (kubectl spread rules lists them) '
        f"(a pod of that name: pod/{argument})\n"
    )


def test_a_pod_may_have_the_name_of_a_code_or_a_rule() -> None:
    for name in ("spr999", "stale-label"):
        pod = {**STALE, "metadata": {**STALE["metadata"], "name": name}}
        outcome = explain(pod, arguments=(f"pod/{name}",))
        assert outcome.exit_code == 0
        assert "-matchExpressions[0].values[0]: r1" in outcome.stdout


def test_the_command_for_more_replicas_reads_the_same_file() -> None:
    file = "examples/cluster.json"
    outcome = run("explain", "deploy/cart", "-n", "shop", "--replicas", "+2", "-f", file)
    (command,) = [line.removeprefix("    $ ") for line in outcome.stdout.splitlines() if "simulate --scale" in line]
    assert command == f"kubectl spread simulate --scale deploy/cart=5 -n shop -f {file}"
    simulated = run(*command.split()[2:], "--runs", "1")
    assert (simulated.exit_code, "scale deploy/cart" in simulated.stdout) == (0, True)


@pytest.mark.parametrize("argument", ["SPR301", "hard-skew"])
def test_a_rule_has_no_replicas(argument: str) -> None:
    outcome = run("explain", argument, "--replicas", "+3")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == f"error: --replicas is about the pods of a workload, and {argument} is a rule\n"


def test_rules_print_json() -> None:
    document = json.loads(run("rules", "-o", "json").stdout)
    assert (document["apiVersion"], document["kind"]) == ("kubectl-spread/v1", "RuleList")
    assert [entry["code"] for entry in document["rules"]] == [rule.code for rule in RULES]
    entry, rule = document["rules"][0], RULES[0]
    assert entry == {
        "code": rule.code,
        "name": rule.name,
        "severity": str(rule.severity),
        "severities": ["error", "warning", "info"],
        "summary": rule.summary,
        "message": rule.message,
        "why": rule.documentation.why,
        "fix": "restart the workload",
        "source": rule.documentation.source,
        "needsNodes": False,
    }
    assert not any("{restart}" in entry["fix"] for entry in document["rules"])


def test_rules_in_yaml_equal_those_in_json() -> None:
    rule_list = YAML(typ="safe").load(run("rules", "-o", "yaml").stdout)
    assert rule_list == json.loads(run("rules", "-o", "json").stdout)


def test_rules_in_markdown_have_a_section_each() -> None:
    text = run("rules", "-o", "markdown").stdout
    assert text.startswith("# Rules\n")
    assert [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")] == [
        rule.code for rule in RULES
    ]


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_explain_prints_one_rule_as_json_and_yaml(rule: Rule, form: str) -> None:
    load = json.loads if form == "json" else YAML(typ="safe").load
    content = load(run("explain", rule.code, "-o", form).stdout)
    everything = json.loads(run("rules", "-o", "json").stdout)
    assert content == {**everything, "rules": [entry for entry in everything["rules"] if entry["code"] == rule.code]}


LATE: Json = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "web-2.1", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "web-2", "namespace": "default"},
    "reason": "FailedScheduling",
    "message": "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints.",
    "eventTime": "2026-09-01T10:30:00.000000Z",
    "series": {"count": 3, "lastObservedTime": "2026-09-01T10:31:00.000000Z"},
}
WAITS = pod_json("web-2", labels=WEB, owner="ReplicaSet/web-7")
TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "x"}}}


def test_explain_does_not_say_that_the_label_of_a_bare_pod_was_removed() -> None:
    """Its author may have written the requirement on a label that the pod never had."""
    authored = selector({"app": "web"}, requirement("rev", "In", "r1"))
    pending = pod_json(constraints=[constraint(match=["rev"], selects=authored)], nodeSelector={ZONE: "a"})
    nodes = [
        node_json("a1"),
        node_json("b1"),
        pod_json("other", node="a1", labels={"app": "web", "rev": "r1"}),
    ]
    output = explain(pending, *nodes, arguments=("pod/web-1",)).stdout
    missing = "Label rev of web-1 is missing. The selector requires rev=r1, so it does not match the pod."
    assert f"Cause (stale-selector): {missing}" in " ".join(output.split())
    assert "at creation" not in output


def test_explain_quotes_captured_events() -> None:
    """The messages of the scheduler are in the text and in JSON."""
    objects = [STALE, WAITS, REPLICA_SET, node_json("a1"), LATE]
    text = explain(*objects, arguments=("deploy/web",)).stdout
    assert "The scheduler's message, 3 times about web-2, last at 2026-09-01T10:31:00Z:" in text
    assert LATE["message"] in text
    document = json.loads(explain(*objects, arguments=("deploy/web", "-o", "json")).stdout)
    (waiting,) = document["waiting"]
    assert (waiting["pods"], waiting["event"]["count"]) == (["web-2"], 3)


def test_explain_reads_captured_namespaces() -> None:
    """Anti-affinity of a pod in another namespace reaches this one by its labels."""
    anti = affinity("podAntiAffinity", term(namespaceSelector=selector({"team": "x"})))
    database = pod_json("db", node="a1", namespace="data", affinity=anti)
    for objects, expected in (([], "Unknown: pod affinity"), ([TEAM], "required anti-affinity of po/db")):
        text = explain(*objects, database, WAITS, node_json("a1"), arguments=("web-2", "-n", "default")).stdout
        assert expected in text


def test_explain_names_several_owners() -> None:
    objects = (STALE, REPLICA_SET, node_json("a1"))
    assert "Owners" not in explain(*objects, arguments=("deploy/web",)).stdout
    newer = deployment("web-8", kind="ReplicaSet", owner="Deployment/web")
    pod = pod_json("web-2", node="a1", labels=WEB, owner="ReplicaSet/web-8")
    outcome = explain(*objects, newer, pod, arguments=("deploy/web",))
    assert "Owners\n  Deployment web > ReplicaSet web-8 (1 pod), web-7 (1 pod)\n" in outcome.stdout


def test_explain_prints_equal_selectors_once() -> None:
    constraints = [constraint(), constraint(key=HOSTNAME)]
    pod = pod_json("web-2", node="a1", labels=WEB, owner="ReplicaSet/web-7", constraints=constraints)
    objects = (pod, node_json("a1"))
    stdout = explain(*objects, arguments=("rs/web-7",)).stdout
    first, second = (f"topologySpreadConstraints[{index}]" for index in range(2))
    assert (
        f"Selectors of {first}: zone DoNotSchedule; {second}: hostname DoNotSchedule\n"
        "  authored, merged, stored, effective: app=web\n"
    ) in stdout


def test_explain_counts_the_whole_workload_of_one_pod() -> None:
    """The other pods of its Deployment are not counted as other workloads' pods."""
    sibling = pod_json("web-3", node="a1", labels=WEB, owner="ReplicaSet/web-7")
    plain = pod_json("web-4", node="a1", labels=WEB, owner="ReplicaSet/web-7", constraints=[constraint()])
    document = json.loads(
        explain(sibling, plain, REPLICA_SET, node_json("a1"), arguments=("web-4", "-o", "json")).stdout
    )
    (row,) = document["rollup"]["rows"]
    assert "otherPods" not in row
    assert row["counted"] == {"a": 2}


def test_explain_quotes_the_pod_status_if_there_are_no_events() -> None:
    """If events cannot be read or have expired, the status of the pod has the scheduler's reason."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
        "lastTransitionTime": "2026-09-01T10:00:05Z",
    }
    waits = {**WAITS, "status": {**WAITS["status"], "conditions": [condition]}}
    text = explain(STALE, waits, REPLICA_SET, node_json("a1"), arguments=("deploy/web",)).stdout
    assert (
        "  The scheduler's message, from the status of web-2: PodScheduled=False (Unschedulable) since "
        "2026-09-01T10:00:05Z: 0/1 nodes are available: 1 Insufficient cpu.\n"
    ) in text


CLONE = pod_json("sample-1", node="a1", constraints=[constraint()], owner="CloneSet/sample")
ROLLED = [
    pod_json("bluebird-7-1", node="a1", constraints=[constraint()], owner="ReplicaSet/bluebird-7"),
    deployment("bluebird-7", kind="ReplicaSet", owner="Rollout/bluebird"),
]


@pytest.mark.parametrize("name", ["cloneset/sample", "CloneSet/sample", "clonesets.apps.kruise.io/sample"])
def test_explain_finds_what_check_prints(name: str) -> None:
    """``explain`` takes each kind of owner that ``check`` prints in its first column."""
    outcome = explain(CLONE, node_json("a1"), arguments=(name,))
    assert outcome.stdout.startswith("cloneset/sample in default: no findings.\n")
    outcome = explain(*ROLLED, node_json("a1"), arguments=("rollout/bluebird",))
    assert outcome.stdout.startswith("rollout/bluebird in default: no findings.\n")


def test_check_finds_what_it_prints() -> None:
    stdin = "\n".join(json.dumps(manifest) for manifest in [CLONE, *ROLLED, node_json("a1")])
    document = json.loads(run("check", "cloneset/sample", "-f", "-", "-o", "json", stdin=stdin).stdout)
    assert [row["workload"] for row in document["constraints"]] == [{"kind": "CloneSet", "name": "sample"}]


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("clones/sample", 'error: the server doesn\'t have a resource type "clones" with pods (known: pod, '),
        ("cloneset/other", 'error: clonesets "other" not found in the files\n'),
    ],
)
def test_a_kind_or_a_name_without_pods_is_not_found(name: str, output: str) -> None:
    outcome = explain(CLONE, node_json("a1"), arguments=(name,))
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert output in outcome.stderr


PLAIN = pod_json("plain-1", node="a1", owner="ReplicaSet/plain")
APPLY = "Not checked: the scheduler's default constraints, which apply to "
WITHOUT = "without constraints (--defaults or --scheduler-config).\n"


@pytest.mark.parametrize(
    ("objects", "arguments", "line"),
    [
        pytest.param([PLAIN], (), f"\n{APPLY}the pods {WITHOUT}", id="no pod has any"),
        pytest.param(
            [PLAIN, pod_json("plain-2", node="a1", owner="ReplicaSet/plain", constraints=[constraint()])],
            (),
            f"\n{APPLY}1 of 2 pods {WITHOUT}",
            id="one of two has some",
        ),
        pytest.param([PLAIN], ("--defaults",), "", id="the defaults were asked for"),
        pytest.param([{**PLAIN, "spec": {"schedulerName": "other"}}], (), "", id="another scheduler"),
    ],
)
def test_explain_says_that_pods_have_no_constraints(objects: list[Json], arguments: tuple[str, ...], line: str) -> None:
    text = explain(*objects, node_json("a1"), arguments=("rs/plain", *arguments)).stdout
    assert text.startswith("rs/plain in default: no findings.\n")
    assert (line in text) if line else ("default constraints" not in text)
    assert "defaults apply" not in run("check", "-f", "-", stdin=json.dumps(objects[0])).stdout


@pytest.mark.parametrize(
    ("objects", "output"),
    [
        pytest.param(
            [deployment(constraints=[constraint()])],
            "\nChecked: 1 pod template, 1 constraint.\n",
            id="one",
        ),
        pytest.param(
            [
                deployment(
                    constraints=[constraint(), constraint(key=HOSTNAME)],
                    affinity=affinity("podAffinity", term(match=["pod-template-hash"])),
                )
            ],
            "\nChecked: 1 pod template, 3 constraints.\n",
            id="several",
        ),
        pytest.param(
            [deployment()],
            "\nChecked: 1 pod template without spread constraints, and without affinity terms ",
            id="none",
        ),
    ],
)
def test_a_workload_without_pods_is_explained_by_its_template(objects: list[Json], output: str) -> None:
    outcome = explain(*objects, arguments=("deploy/web",))
    assert outcome.exit_code == 0
    assert output in outcome.stdout


def test_explain_says_that_the_pods_of_a_template_are_refused() -> None:
    text = explain(deployment(constraints=[constraint(match=["app"])]), arguments=("deploy/web",)).stdout
    assert (
        "Template, template.spec.topologySpreadConstraints[0]: zone DoNotSchedule, maxSkew 1\n"
        "  authored: app=web\n"
        "  merged: app=web, app In [web]\n"
        "  The API server accepts the template, but refuses every pod of it.\n"
    ) in text


@pytest.mark.parametrize("argument", ["po/web-0", "deploy/web"])
def test_the_first_eviction_of_the_plan_is_named(argument: str) -> None:
    """A plan for one pod is that for its workload."""
    pods = [
        pod_json(f"web-{index}", node="a1", labels=WEB, owner="Deployment/web", constraints=[constraint()])
        for index in range(30)
    ]
    text = explain(*pods, node_json("a1"), node_json("b1"), arguments=(argument,)).stdout
    assert "kubectl delete pod -n default web-0\n" in text
    assert "14 more pods have to move afterwards" in text


def test_explain_folds_equal_domains() -> None:
    """A hundred nodes are three lines, and those with pods refuse the next one for one reason."""
    keyed = [constraint(key=HOSTNAME)]
    pods = [
        pod_json(f"web-{index}", node=f"n{index % 60}", constraints=keyed, owner="Deployment/web")
        for index in range(70)
    ]
    text = explain(*pods, *(node_json(f"n{index}") for index in range(100)), arguments=("deploy/web",)).stdout
    assert "\n  10 domains (n0, n1, n2 and 7 more)" in text
    assert "\n  40 domains (n60, n61, n62 and 37 more)" in text
    assert text.count("  Cannot go to ") == 1


def test_a_pending_pod_is_in_the_verdict_where_no_rule_explains_it() -> None:
    text = explain(STALE, WAITS, REPLICA_SET, node_json("a1"), arguments=("deploy/web",)).stdout
    assert text.startswith("deploy/web in default: 1 of 2 pods pending, ")
