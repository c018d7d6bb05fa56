"""The alerts have runbooks and tests, the dashboard has a shape, and both name metrics that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from ruamel.yaml import YAML

from kubectl_spread.render.openmetrics import FAMILIES
from tests.generated import ROOT
from tests.mixin.queries import dashboard, expressions, panels, rules

TESTS = ROOT / "mixin" / "tests.yaml"
RUNBOOKS = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
NAMES = [rule["alert"] for rule in rules()]
CODE = re.compile(r"SPR\d{3}")
COMMAND = re.compile(r"Run `kubectl spread (explain|check) .*-n \{\{ \$labels\.namespace \}\}.*`")


def cases() -> Iterator[dict[str, Any]]:
    """Yield the cases of promtool."""
    for test in YAML(typ="safe").load(TESTS)["tests"]:
        yield from test.get("alert_rule_test", [])


def test_each_alert_has_a_runbook_and_each_runbook_an_alert() -> None:
    headings = re.findall(r"^## (\w+)$", RUNBOOKS, re.MULTILINE)
    assert [name for name in headings if name not in ("Install", "Silence")] == NAMES
    for rule in rules():
        assert rule["annotations"]["runbook_url"].endswith(f"/docs/alerts.md#{rule['alert'].lower()}")


def test_each_runbook_says_the_effect_what_to_do_and_when_to_silence() -> None:
    for name in NAMES:
        section = RUNBOOKS.split(f"\n## {name}\n")[1].partition("\n## ")[0]
        assert re.findall(r"^- \*\*(\w+):\*\*", section, re.MULTILINE) == ["Effect", "Do", "Silence"]


def test_each_runbook_names_the_rules_of_its_alert() -> None:
    """An alert about all other errors names none."""
    for rule in rules():
        section = RUNBOOKS.split(f"\n## {rule['alert']}\n")[1].partition("\n## ")[0]
        linked = set(re.findall(r"\[(SPR\d{3})\]", section))
        codes = set(codes_of(rule["expr"])) if 'code!~"' not in rule["expr"] else set()
        assert linked == codes, rule["alert"]


def codes_of(expression: str) -> Iterator[str]:
    """Yield the codes that a query selects."""
    for pattern in re.findall(r'code=~?"([^"]+)"', expression):
        documented = CODE.findall((ROOT / "docs" / "rules.md").read_text(encoding="utf-8"))
        yield from (code for code in set(documented) if re.fullmatch(pattern, code))


def test_each_alert_has_cases_that_fire_and_cases_that_do_not() -> None:
    firing = {case["alertname"] for case in cases() if case.get("exp_alerts")}
    silent = {case["alertname"] for case in cases() if not case.get("exp_alerts")}
    assert (firing, silent) == (set(NAMES), set(NAMES))


def test_alerts_have_what_their_readers_need() -> None:
    for rule in rules():
        assert rule["labels"] == {"severity": "warning"}
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
        assert rule["for"]
        assert "cluster" in rule["expr"]
        about_findings = "kube_spread_finding" in rule["expr"]
        command = COMMAND.search(rule["annotations"]["description"])
        assert (command is not None) is about_findings
        assert ("keep_firing_for" in rule) is about_findings


def test_alerts_select_the_job_of_the_deployed_monitor() -> None:
    yaml, deploy = YAML(typ="safe"), ROOT / "deploy"
    (labels,) = yaml.load(deploy / "kustomize" / "base" / "kustomization.yaml")["labels"]
    monitor = yaml.load(deploy / "kustomize" / "service-monitor" / "service-monitor.yaml")
    (job,) = {job for rule in rules() for job in re.findall(r'job="([^"]+)"', rule["expr"])}
    assert labels["pairs"][monitor["spec"]["jobLabel"]] == job
    (scraped,) = yaml.load(deploy / "prometheus" / "scrape.yaml")["scrape_configs"]
    assert (scraped["job_name"], scraped["honor_labels"]) == (job, True)


def test_series_and_labels_of_the_report_exist() -> None:
    """The matchers are those of the metric; ``cluster``, ``job`` and ``instance`` come from Prometheus."""
    labels = {family.name: {*family.labels, "cluster", "job", "instance"} for family in FAMILIES}
    texts = [*expressions(), *(rule["expr"] for rule in rules())]
    used = {series for text in texts for series in re.findall(r"(kube_spread_\w+)(?:\{([^}]*)\})?", text)}
    assert len(used) > 20
    for name, matchers in used:
        assert set(re.findall(r"(\w+)[!=]~?=?\"", matchers)) <= labels[name], (name, matchers)


def test_panels_have_ids_titles_and_places_of_their_own() -> None:
    cells = [
        (x, y)
        for panel in panels()
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
    for key in ("id", "title", "description"):
        values = [panel[key] for panel in panels()]
        assert all(values)
        assert len(values) == len(set(values))


def test_the_dashboard_has_the_schema_of_grafana() -> None:
    """A field that the schema does not know would be lost."""
    page = dashboard()
    plugins.register_default_plugins()
    assert json.loads(json.dumps(Dashboard.from_json(page), cls=JSONEncoder)) == page


def test_panels_read_the_chosen_source() -> None:
    for panel in panels():
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert {source["uid"] for source in sources} == {"${datasource}"}


def test_queries_select_the_chosen_clusters() -> None:
    for expression in expressions():
        metrics = re.findall(r"\b(?:kube_spread|kubectl_spread|process)_\w+", expression)
        assert metrics
        assert expression.count('cluster=~"$cluster"') == len(metrics)
