"""The alerts and the queries of the rendered mixin."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ruamel.yaml import YAML

from tests.builders import Json
from tests.generated import ROOT

_RENDERED: Final = ROOT / "mixin" / "rendered"
_LABEL_VALUES: Final = re.compile(r"label_values\((.*), (\w+)\)")
_VARIABLES: Final = {"$cluster": ".*", "$namespace": ".*", "$workload": ".*", "$__rate_interval": "1m"}


def rules(path: Path = _RENDERED / "alerts.yaml") -> Iterator[Json]:
    """Yield the alerts of a file of rules."""
    for group in YAML(typ="safe").load(path)["groups"]:
        yield from group["rules"]


def dashboard() -> Json:
    """Return the rendered dashboard."""
    page: Json = json.loads((_RENDERED / "dashboard.json").read_text(encoding="utf-8"))
    return page


def panels(page: Json | None = None) -> list[Json]:
    """Return the panels of a dashboard that are not headings; of the rendered one without an argument."""
    return [panel for panel in (page or dashboard())["panels"] if panel["type"] != "row"]


def expressions(page: Json | None = None) -> list[str]:
    """Return the queries of a dashboard."""
    return [target["expr"] for panel in panels(page) for target in panel["targets"]]


def choices() -> dict[str, str]:
    """Map the label of each variable of the rendered dashboard to a query for the series that have it."""
    queries = [variable["query"] for variable in dashboard()["templating"]["list"] if variable["type"] == "query"]
    matches = [_LABEL_VALUES.fullmatch(query) for query in queries]
    return {match[2]: match[1] for match in matches if match}


def substituted(expression: str) -> str:
    """Return a query as Grafana sends it where all clusters, namespaces and workloads are chosen."""
    for name, text in _VARIABLES.items():
        expression = expression.replace(name, text)
    return expression
