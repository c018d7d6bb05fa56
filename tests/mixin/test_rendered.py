"""The rendered mixin is that of its source, and Prometheus fires its alerts as ``mixin/tests.yaml`` says.

jsonnet is built from its Go module; promtool is Debian's.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.e2e import consumers
from tests.mixin import rendering
from tests.mixin.queries import expressions, rules

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("name", rendering.RENDERED)
def test_the_rendered_files_are_current(name: str) -> None:
    """If this fails, run ``make mixin`` and review the difference."""
    assert (rendering.ALERTS.parent / name).read_text(encoding="utf-8") == rendering.RENDERED[name]()


def test_promtool_has_no_complaint() -> None:
    number = len(list(rules()))
    assert f"{number} rules found" in consumers.promtool("check", "rules", "--lint-fatal", str(rendering.ALERTS))


def test_the_operator_gets_the_same_rules() -> None:
    groups = YAML(typ="safe").load(rendering.prometheus_rule())["spec"]["groups"]
    assert [rule for group in groups for rule in group["rules"]] == list(rules())


def test_alerts_fire_and_do_not_fire() -> None:
    assert "SUCCESS" in consumers.promtool("test", "rules", str(rendering.TESTS))


def test_settings_reach_every_query(tmp_path: Path) -> None:
    """A site has another label of clusters, another job, and selects the series of the report."""
    settings = {"clusterLabel": "k8s", "spreadSelector": 'team="sre"', "monitorSelector": 'job="spread"'}
    target = tmp_path / "alerts.yaml"
    target.write_text(rendering.alerts(**settings), encoding="utf-8")
    consumers.promtool("check", "rules", str(target))
    texts = [rule["expr"] for rule in rules(target)]
    texts += expressions(json.loads(rendering.dashboard(**settings)))
    assert len(texts) > 30
    for text in texts:
        assert "cluster" not in text.replace("$cluster", "")
        assert ('job="spread"' in text) != ('team="sre"' in text), text


def test_settings_of_the_dashboard() -> None:
    page = json.loads(rendering.dashboard(dashboardUid="spread", dashboardTitle="Spread"))
    assert (page["uid"], page["title"]) == ("spread", "Spread")
