"""The alerts and the queries of the rendered mixin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from tests.builders import Json
from tests.generated import ROOT

_RENDERED: Final = ROOT / "mixin" / "rendered"
_VARIABLES: Final = {"$cluster": ".*", "$namespace": ".*", "$workload": ".*", "$__rate_interval": "1m"}


def rules(path: Path = _RENDERED / "alerts.yaml") -> Iterator[Json]:
    """Yield the alerts of a file of rules."""
    for group in YAML(typ="safe").load(path)["groups"]:
        yield from group["rules"]


def panels(page: Any = None) -> list[Json]:
    """Return the panels of a dashboard that are not headings; of the rendered one without an argument."""
    page = page or json.loads((_RENDERED / "dashboard.json").read_text(encoding="utf-8"))
    return [panel for panel in page["panels"] if panel["type"] != "row"]


def expressions(page: Any = None) -> list[str]:
    """Return the queries of a dashboard."""
    return [target["expr"] for panel in panels(page) for target in panel["targets"]]


def substituted(expression: str) -> str:
    """Return a query as Grafana sends it where all clusters, namespaces and workloads are chosen."""
    for name, text in _VARIABLES.items():
        expression = expression.replace(name, text)
    return expression
