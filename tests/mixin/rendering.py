"""The mixin as Prometheus and Grafana read it; run as a module it writes ``mixin/rendered`` (``make mixin``)."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Final

from tests.e2e import go_programs
from tests.generated import ROOT

JSONNET: Final = ("github.com/google/go-jsonnet", "v0.22.0", "cmd/jsonnet")
_MIXIN: Final = ROOT / "mixin"
ALERTS: Final = _MIXIN / "rendered" / "alerts.yaml"
DASHBOARD: Final = _MIXIN / "rendered" / "dashboard.json"
TESTS: Final = _MIXIN / "tests.yaml"
CHART: Final = ROOT / "deploy" / "helm" / "kubectl-spread-monitor" / "files"
"""Where the chart has the alerts and the dashboard, since it cannot read files outside of its directory."""


def alerts(**settings: str | int) -> str:
    """Return the rules as YAML, with other values of some settings."""
    return _evaluated(f"std.manifestYamlDoc({_mixin(settings)}.prometheusAlerts, quote_keys=false)", "--string")


def prometheus_rule() -> str:
    """Return the rules as an object of the Prometheus operator."""
    names = "{ name: 'kubectl-spread', labels: { 'app.kubernetes.io/name': 'kubectl-spread' } }"
    head = f"apiVersion: 'monitoring.coreos.com/v1', kind: 'PrometheusRule', metadata: {names}"
    rule = f"{{ {head}, spec: {_mixin({})}.prometheusAlerts }}"
    return _evaluated(f"std.manifestYamlDoc({rule}, quote_keys=false)", "--string")


def dashboard(**settings: str | int) -> str:
    """Return the dashboard as JSON, with other values of some settings."""
    return _evaluated(f"{_mixin(settings)}.grafanaDashboards['kubectl-spread.json']")


RENDERED: Final[dict[str, Callable[[], str]]] = {
    ALERTS.name: alerts,
    "prometheus-rule.yaml": prometheus_rule,
    DASHBOARD.name: dashboard,
}
"""Each file of ``mixin/rendered``, and its text now."""


def _mixin(settings: Mapping[str, str | int]) -> str:
    return f"((import 'mixin.libsonnet') + {{ _config+:: {json.dumps(settings)} }})"


def _evaluated(expression: str, *flags: str) -> str:
    """Return what jsonnet, built from its Go module, prints for an expression."""
    command = [str(go_programs.binary(*JSONNET)), *flags, "--exec", expression]
    completed = subprocess.run(command, cwd=_MIXIN, check=False, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def main() -> None:
    """Write every file, and those that the chart has too."""
    for name, render in RENDERED.items():
        (_MIXIN / "rendered" / name).write_text(render(), encoding="utf-8")
    for path in (ALERTS, DASHBOARD):
        shutil.copyfile(path, CHART / path.name)


if __name__ == "__main__":
    main()
