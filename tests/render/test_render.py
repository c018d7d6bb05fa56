"""Reports in each format; the files in ``golden/`` are reviewed as output."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.cli.guide import examples
from kubectl_spread.explain.explanation import explain
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.features import Gate
from kubectl_spread.render import catalogue, explanation, screen, structured, table, words
from kubectl_spread.render.table import Layout
from kubectl_spread.render.terminal import Terminal
from kubectl_spread.report.model import Report
from kubectl_spread.rules import RULES
from kubectl_spread.rules.model import Selection
from tests.audits import audit, deployment, engine_of, reported
from tests.builders import HOSTNAME, ZONE, Json, affinity, constraint, node_json, pod_json, requirement, selector, term
from tests.conftest import Golden

GOLDEN = Path(__file__).parent / "golden"
WEB = {"app": "web"}
PIPE = Terminal()
NARROW = Terminal(width=80)
COLORED = Terminal(width=100, color=True)
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
LABELLED = {
    "manager": "kubectl-label",
    "operation": "Update",
    "time": "2026-09-01T10:31:00Z",
    "fieldsV1": {"f:metadata": {"f:labels": {"f:rev": {}}}},
}


def web(name: str, node: str, rev: str, stored: str, **fields: Any) -> Json:
    spread_constraint = constraint(match=["rev"], selects=selector(WEB, requirement("rev", "In", stored)))
    soft = constraint(key=HOSTNAME, hard=False)
    labels = {**WEB, "rev": rev}
    return pod_json(
        name, node=node, labels=labels, constraints=[spread_constraint, soft], owner="Deployment/web", **fields
    )


def api(name: str, node: str) -> Json:
    anti = affinity("podAntiAffinity", term(match=["rev"], selects=selector({"app": "api"})))
    return pod_json(name, node=node, labels={"app": "api", "rev": "r1"}, owner="StatefulSet/api", affinity=anti)


def several() -> Audit:
    """Return an audit with a stale label, a skew, a late label, a blocked pending pod, and healthy rows."""
    return audit(
        *(web(f"web-{index}", node, "r1", "r1") for index, node in enumerate(("a1", "a1", "a2", "b1"))),
        web("web-8", "b1", "r2", "r1", metadata={"managedFields": [LABELLED]}),
        web("web-9", "", "r1", "r1"),
        api("api-0", "a1"),
        api("api-1", "b1"),
        pod_json(
            "bare", node="a1", labels={"app": "bare"}, constraints=[constraint(selects=selector({"app": "bare"}))]
        ),
        pod_json("done", phase="Succeeded", constraints=[constraint()]),
        node_json("a1"),
        node_json("a2"),
        node_json("b1", taints=[TAINT]),
        node_json("x1", without=[ZONE]),
    )


def nothing() -> Audit:
    return audit(pod_json("plain"), node_json("a1"))


def many_domains() -> Audit:
    nodes = [node_json(f"n{index}") for index in range(7)]
    pod = pod_json("p", node="n3", constraints=[constraint(key=HOSTNAME)])
    return audit(pod, *nodes)


def without_nodes() -> Audit:
    return audit(web("web-0", "a1", "r1", "r1"), overrides={Gate.TOPOLOGY_LABELS: True})


EVIL = "\x1b[31m\u202eevil\u200b\x07\n"


def hostile() -> Audit:
    """Return an audit with control and bidi characters in every name of an object."""
    rev = requirement(f"k{EVIL}", "In", f"old{EVIL}")
    spread_constraint = constraint(
        key=f"zone{EVIL}", match=[f"k{EVIL}"], selects=selector({f"a{EVIL}": f"b{EVIL}"}, rev)
    )
    fields: Json = {"f:metadata": {"f:labels": {f"f:k{EVIL}": {}}}}
    pod = pod_json(
        f"pod{EVIL}",
        node=f"node{EVIL}",
        labels={f"k{EVIL}": f"new{EVIL}"},
        constraints=[spread_constraint],
        namespace=f"ns{EVIL}",
        owner=f"Kind{EVIL}/name{EVIL}",
        metadata={"managedFields": [{**LABELLED, "manager": f"m{EVIL}", "fieldsV1": fields}]},
    )
    parsed = pod_json(
        f"parsed{EVIL}",
        node=f"node{EVIL}",
        labels={f"k{EVIL}": f"new{EVIL}"},
        constraints=[constraint(key=f"zone{EVIL}")],
        namespace=f"ns{EVIL}",
        owner=f"Kind{EVIL}/name{EVIL}",
    )
    plain_pod = pod_json("p", constraints=[constraint(key="zone", match=["nope"])])
    taint = {"key": f"t{EVIL}", "value": f"v{EVIL}", "effect": "NoSchedule"}
    return audit(pod, parsed, plain_pod, node_json(f"node{EVIL}", labels={f"zone{EVIL}": f"z{EVIL}"}, taints=[taint]))


REPORTS = {
    "several": several,
    "nothing": nothing,
    "many-domains": many_domains,
    "without-nodes": without_nodes,
    "hostile": hostile,
}
FORMATS = {
    "table.txt": lambda report: table.check(report, Layout(), PIPE),
    "narrow.txt": lambda report: table.check(report, Layout(namespaces=True), NARROW),
    "wide.txt": lambda report: table.check(report, Layout(wide=True), PIPE),
    "json": structured.json,
    "yaml": structured.yaml,
    "name.txt": structured.names,
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("cluster", REPORTS)
def test_formats_match_their_golden_files(cluster: str, form: str, golden: Golden) -> None:
    golden(GOLDEN / f"{cluster}.{form}", FORMATS[form](reported(REPORTS[cluster]())))


def explained(evaluation: Audit, kind: str, name: str) -> str:
    ref = ObjectRef(max(pod.namespace for pod in evaluation.pods), kind, name)
    answer = explain(evaluation, reported(evaluation), ref, engine_of(evaluation))
    return screen.text(explanation.document(answer), PIPE)


@pytest.mark.parametrize("cluster", REPORTS)
def test_explanations_match_their_golden_files(cluster: str, golden: Golden) -> None:
    name = f"web{EVIL}" if cluster == "hostile" else "web"
    golden(GOLDEN / f"{cluster}.explain.txt", explained(REPORTS[cluster](), "Deployment", name))


@pytest.mark.parametrize("form", [form for form in FORMATS if form.endswith("txt")])
def test_hostile_characters_are_shown_escaped(form: str) -> None:
    """No text of an object may move the cursor, reverse text or hide it."""
    for text in (FORMATS[form](reported(hostile())), explained(hostile(), f"Kind{EVIL}", f"name{EVIL}")):
        assert text
        assert all(char.isprintable() or char == "\n" for char in text)
        assert words.safe("\x1b") in text


def test_narrow_terminals_are_not_overrun_by_rows() -> None:
    text = table.check(reported(several()), Layout(), NARROW)
    rows = text[text.index("WORKLOAD") :].split("\n\n")[0].splitlines()
    assert max(map(len, rows)) <= 80


def test_colour_adds_nothing_but_colour() -> None:
    colored = table.check(reported(several()), Layout(), COLORED)
    plain = table.check(reported(several()), Layout(), Terminal(width=100))
    assert "\x1b[" in colored
    stripped = colored
    while "\x1b[" in stripped:
        before, _, after = stripped.partition("\x1b[")
        stripped = before + after.partition("m")[2]
    assert [line.rstrip() for line in stripped.splitlines()] == [line.rstrip() for line in plain.splitlines()]


def test_json_and_yaml_are_equal() -> None:
    for make in REPORTS.values():
        report = reported(make())
        assert YAML(typ="safe").load(io.StringIO(structured.yaml(report))) == json.loads(structured.json(report))


@pytest.mark.parametrize(
    ("layout", "words_found", "words_missing"),
    [
        pytest.param(Layout(headers=False), ["deploy/web"], ["WORKLOAD", "evaluated as"], id="no headers"),
        pytest.param(
            Layout(show="problems"),
            ["Hidden: 4 rows without findings (--show all)"],
            ["po/bare", "sts/api"],
            id="problems only",
        ),
        pytest.param(Layout(namespaces=True), ["NAMESPACE", "default/deploy/web"], [], id="namespaces"),
    ],
)
def test_layouts_match_their_golden_files(layout: Layout, words_found: list[str], words_missing: list[str]) -> None:
    text = table.check(reported(several(), Selection(select=("SPR101",))), layout, PIPE)
    assert all(word in text for word in words_found)
    assert not any(word in text for word in words_missing)


def large(number: int) -> Report:
    pods = [pod_json(f"p{index:03}", constraints=[constraint()]) for index in range(number)]
    return reported(audit(*pods))


def test_a_pipe_gets_all_rows_of_a_large_cluster() -> None:
    totals = "No findings in 200 workloads (200 pods, 200 constraints). Placement was not evaluated: no nodes."
    text = table.check(large(200), Layout(), PIPE)
    assert text.endswith(f"  unknown\n\n{totals}\n")
    assert text.count("po/p") == 200


@pytest.mark.parametrize(
    ("height", "rows"),
    [
        pytest.param(100, 50, id="all fit"),
        pytest.param(59, 50, id="all just fit"),
        pytest.param(24, 17, id="some fit"),
        pytest.param(3, 5, id="a few are always listed"),
    ],
)
def test_a_terminal_shows_the_rows_that_fit(height: int, rows: int) -> None:
    text = table.check(large(50), Layout(), Terminal(width=120, height=height))
    assert text.count("po/p") == rows
    assert len(text.splitlines()) < max(height, 12)


def test_silenced_findings_are_counted() -> None:
    text = table.check(reported(several(), Selection(ignore=("SPR1",))), Layout(), PIPE)
    assert "2 findings silenced" in text
    assert "SPR101" not in text


def test_templates_are_shown(golden: Golden) -> None:
    evaluation = audit(
        deployment(constraints=[constraint(match=["app"])]), deployment("ok", constraints=[constraint()])
    )
    golden(GOLDEN / "templates.table.txt", table.check(reported(evaluation), Layout(), PIPE))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_page_of_a_rule_has_all_its_text(rule: Any) -> None:
    example = examples()[rule.code]
    text = screen.text(catalogue.document(rule, example), PIPE)
    assert text.startswith(f"{rule.code} {rule.name} ({', '.join(map(str, rule.severities))})\n\n{rule.summary}.\n")
    assert f"{rule.code} {rule.name}: " in text
    assert rule.documentation.source in text
    assert re.search(r"\{\w+\}", text.replace(example.object, "")) is None
    joined = " ".join(text.split())
    for severity, case in rule.documentation.cases.items():
        assert f"As {severity} {' '.join(case.split())}" in joined
    assert " ".join(rule.documentation.no_remedy.split()) in joined


def test_the_catalogue_matches_its_golden_file() -> None:
    text = catalogue.rules(RULES, PIPE)
    assert [line.split()[0] for line in text.splitlines()] == ["CODE", *(rule.code for rule in RULES)]
    assert max(map(len, catalogue.rules(RULES, NARROW).splitlines())) <= 80
