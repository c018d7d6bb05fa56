"""The dashboard of the monitor, before the mixin writes its configuration into it; ``make docs`` writes it.

In its texts ``%(cluster)s`` is the label of clusters. ``%(spread)s`` and ``%(monitor)s`` are further matchers of the
report and of the monitor's own series, each with a comma before it, or empty.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from grafana_foundation_sdk.builders import bargauge, common, dashboard, stat, table, timeseries
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendPlacement, StackingMode, VizOrientation
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    GridPos,
    Threshold,
    ThresholdsMode,
    VariableModel,
    VariableOption,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from kubectl_spread import __version__

PATH: Final = "mixin/dashboard.json"
_ALERTS: Final = f"https://github.com/kubectl-spread/kubectl-spread/blob/v{__version__}/docs/alerts.md"
_SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
_WIDTH: Final = 24
_MOST_LINES: Final = 200

_CLUSTER: Final = '%(cluster)s=~"$cluster"%(spread)s'
_SCOPE: Final = f'{_CLUSTER}, namespace=~"$namespace"'
_WORKLOAD: Final = f'{_SCOPE}, workload=~"$workload"'
_MONITOR: Final = '%(cluster)s=~"$cluster"%(monitor)s'
"""The matchers of the variables."""
_OWNER: Final = "%(cluster)s, namespace, workload, workload_type"
_CONSTRAINT: Final = f"{_OWNER}, path, topology_key"
_COLUMNS: Final = (
    *("%(cluster)s", "namespace", "workload", "workload_type", "topology_key", "path", "code", "severity", "domain"),
    "Value",
)
"""The columns of tables, in their order."""
_NAME: Final = "{{namespace}}/{{workload}}"
_NOTHING: Final = f"0 * max(kube_spread_info{{{_CLUSTER}}})"
"""0 if there is a report: without one a number of problems is unknown, and must not look like 0."""


class Query(NamedTuple):
    """A query, and the legend of its series."""

    expression: str
    legend: str = ""


class Box(NamedTuple):
    """A panel: its kind, its queries, and the settings of its kind."""

    kind: str
    title: str
    description: str
    queries: tuple[Query, ...]
    unit: str = "short"
    worst: float | None = None
    """The value from which a number is red."""
    value: str = ""
    """The title of the column of values in a table."""
    stacked: bool = False


def _by_workload(labels: str, metric: str, matchers: str = "") -> str:
    """Return the largest value of a metric by labels, because two replicas of the monitor report the same."""
    return f"max by ({labels}) (kube_spread_{metric}{{{_WORKLOAD}{matchers}}})"


_SKEW: Final = _by_workload(_CONSTRAINT, "constraint_skew")
_MAX_SKEW: Final = _by_workload(_CONSTRAINT, "constraint_max_skew")
_ELIGIBLE: Final = _by_workload(_CONSTRAINT, "constraint_eligible_domains")
_ALLOWED: Final = _by_workload(_CONSTRAINT, "constraint_allowed_domains")
_RATIO: Final = _by_workload(f"{_OWNER}, topology_key", "workload_largest_domain_ratio")
_ZONE_PODS: Final = _by_workload(
    f"{_OWNER}, domain", "workload_domain_pods", ', topology_key="topology.kubernetes.io/zone"'
)
_SEVERAL: Final = f"{_by_workload(_OWNER, 'workload_pods')} > 1"


def _number(title: str, description: str, expression: str, *, unit: str = "short", worst: float = 1) -> Box:
    return Box("stat", title, description, (Query(expression),), unit, worst)


def _first(expression: str) -> str:
    """Return the first series of a table, because a browser cannot show tens of thousands."""
    return f"topk({_MOST_LINES}, {expression})"


def _count(expression: str) -> str:
    return f"count({expression}) or {_NOTHING}"


def _findings(matchers: str) -> str:
    return _by_workload(f"{_OWNER}, code", "finding", f", {matchers}")


_ONE_DOMAIN: Final = 'code=~"SPR302|SPR501|SPR502|SPR505", severity=~"warning|error"'
_OVERVIEW: Final = (
    _number(
        "Constraints above maxSkew",
        "Constraints whose skew is above their maxSkew.",
        _count(f"{_SKEW} > {_MAX_SKEW}"),
    ),
    _number("Errors", "Workloads and codes with a finding that is an error.", _count(_findings('severity="error"'))),
    _number(
        "Warnings", "Workloads and codes with a finding that is a warning.", _count(_findings('severity="warning"'))
    ),
    _number(
        "Workloads in one domain",
        "Workloads that would be lost with one zone or node, although another one would take some of their pods.",
        _count(f"max by ({_OWNER}) ({_findings(_ONE_DOMAIN)})"),
    ),
    _number(
        "Pending pods",
        "Pending pods of workloads with spread constraints.",
        f"sum(max by ({_OWNER}) ({_by_workload(_CONSTRAINT, 'constraint_pending_pods')})) or {_NOTHING}",
    ),
    _number(
        "Age of the report",
        "Time since the cluster was read.",
        f"time() - min(kube_spread_read_timestamp_seconds{{{_CLUSTER}}})",
        unit="s",
        worst=180,
    ),
)
_SKEWS: Final = (
    Box(
        "table",
        "Skew of constraints above maxSkew",
        "Constraints whose skew is above their maxSkew, and their skew.",
        (Query(_first(f"{_SKEW} > {_MAX_SKEW}")),),
        value="Skew",
    ),
    Box(
        "timeseries",
        "Skew above maxSkew",
        "Skew minus maxSkew of the 10 constraints that are furthest above it. 0 and below is within maxSkew.",
        (Query(f"topk(10, {_SKEW} - {_MAX_SKEW})", f"{_NAME} {{{{topology_key}}}}"),),
    ),
)
_DOMAINS: Final = (
    Box(
        "table",
        "Constraints that refuse domains",
        "Constraints that refuse one more pod in some domains, and the number of domains that they refuse.",
        (Query(_first(f"{_ELIGIBLE} - {_ALLOWED} > 0")),),
        value="Refused",
    ),
    Box(
        "table",
        "Matching pods by domain",
        f"Matching pods in each domain, for constraints with up to 32 domains: the {_MOST_LINES} fullest domains.",
        (Query(_first(_by_workload(f"{_CONSTRAINT}, domain", "constraint_domain_pods"))),),
        value="Pods",
    ),
)
_FINDINGS: Final = (
    Box(
        "timeseries",
        "Findings by severity",
        "Findings of all namespaces by severity.",
        (
            Query(
                f"sum by (severity) (max by (%(cluster)s, severity) (kube_spread_findings{{{_CLUSTER}}}))",
                "{{severity}}",
            ),
        ),
    ),
    Box(
        "bargauge",
        "Findings by code",
        "Workloads with a finding of each code. `kubectl spread explain CODE` says what a code means.",
        (Query(f"sort_desc(count by (code) ({_by_workload(f'{_OWNER}, code', 'finding')}))", "{{code}}"),),
    ),
    Box(
        "table",
        "Findings",
        f"Findings by workload, code and severity, up to {_MOST_LINES}.",
        (Query(_first(_by_workload(f"{_OWNER}, code, severity", "finding"))),),
    ),
)
_VERDICTS: Final = (
    Box(
        "timeseries",
        "Stored selectors by verdict",
        "Pods by the verdict on the stored selector of each constraint. A pod with two constraints counts twice.",
        (Query(f"sum by (verdict) ({_by_workload(f'{_CONSTRAINT}, verdict', 'pods')})", "{{verdict}}"),),
        stacked=True,
    ),
    Box(
        "timeseries",
        "Pods by zone",
        "Running pods of workloads with replicas in each zone.",
        (Query(f"sum by (domain) ({_ZONE_PODS})", "{{domain}}"),),
        stacked=True,
    ),
)
_EXPOSURE: Final = (
    Box(
        "table",
        "Pods by workload and zone",
        f"Running pods of each workload with replicas in each zone: the {_MOST_LINES} largest numbers.",
        (Query(_first(_ZONE_PODS)),),
        value="Pods",
    ),
    Box(
        "table",
        "Largest share in one domain",
        "The share of a workload's running pods that is lost with its fullest zone or node.",
        (Query(_first(f"{_RATIO} and on ({_OWNER}) {_SEVERAL}")),),
        unit="percentunit",
        value="Share",
    ),
)


def _own(metric: str, matchers: str = "") -> str:
    return f"{metric}{{{_MONITOR}{matchers}}}"


def _quantile(quantile: float) -> str:
    buckets = _own("kubectl_spread_evaluation_duration_seconds_bucket")
    return f"histogram_quantile({quantile}, sum by (le) (rate({buckets}[$__rate_interval])))"


_HEALTH: Final = (
    Box(
        "timeseries",
        "Reports served",
        "1 where a replica of the monitor serves a report. It withdraws a report that is older than --max-age.",
        (Query(_own("kubectl_spread_ready"), "{{instance}}"),),
        unit="bool_yes_no",
    ),
    Box(
        "timeseries",
        "Age of the state",
        "Time since the API server last sent a list, an event or a bookmark of each resource.",
        (Query(f"max by (resource) ({_own('kubectl_spread_state_age_seconds')})", "{{resource}}"),),
        unit="s",
    ),
    Box(
        "timeseries",
        "Lists and watches",
        "Lists and watches by resource and result. More than a few lists an hour are a load for the API server.",
        tuple(
            Query(
                f"sum by (resource, result) (rate({_own(f'kubectl_spread_{verb}_total')}[$__rate_interval]))",
                f"{verb} {{{{resource}}}} {{{{result}}}}",
            )
            for verb in ("list", "watch")
        ),
        unit="reqps",
    ),
)
_COST: Final = (
    Box(
        "timeseries",
        "Duration of evaluations",
        "Time to evaluate what has changed. A changed node leads to the evaluation of everything.",
        (Query(_quantile(0.5), "median"), Query(_quantile(0.99), "99th percentile")),
        unit="s",
    ),
    Box(
        "timeseries",
        "Processor",
        "Cores that the monitor uses.",
        (Query(f"rate({_own('process_cpu_seconds_total')}[$__rate_interval])", "{{instance}}"),),
    ),
    Box(
        "timeseries",
        "Memory",
        "Resident memory of the monitor.",
        (Query(_own("process_resident_memory_bytes"), "{{instance}}"),),
        unit="bytes",
    ),
)
_SECTIONS: Final = {
    "Overview": (4, (_OVERVIEW,)),
    "Skew": (9, (_SKEWS, _DOMAINS)),
    "Findings": (9, (_FINDINGS,)),
    "Pods": (9, (_VERDICTS, _EXPOSURE)),
    "Monitor": (8, (_HEALTH, _COST)),
}
"""The height of panels, and the rows of panels, of each section."""


def text() -> str:
    """Return the dashboard as JSON."""
    builder = (
        dashboard.Dashboard("Kubernetes / Topology spread")
        .uid("kubectl-spread")
        .description(
            "Topology spread constraints, their skew and their findings, as kubectl spread monitor reports them."
        )
        .tags(["kubectl-spread"])
        .readonly()
        .timezone("utc")
        .refresh("1m")
        .time("now-6h", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(dashboard.DashboardLink("Alerts").type(DashboardLinkType.LINK).url(_ALERTS).target_blank(True))
        .variables(_variables())
    )
    number = 0
    for title, (height, lines) in _SECTIONS.items():
        number += 1
        builder.with_row(dashboard.Row(title).id(number))
        for boxes in lines:
            for box in boxes:
                number += 1
                position = GridPos(h=height, w=_WIDTH // len(boxes))
                builder.with_panel(_panel(box).id(number).grid_pos(position))
    return json.dumps(builder.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def _variables() -> list[Builder[VariableModel]]:
    named = "kube_spread_constraint_info|kube_spread_finding|kube_spread_workload_pods"
    return [
        dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"),
        _variable("cluster", "label_values(kube_spread_info, %(cluster)s)"),
        _variable("namespace", f'label_values({{__name__=~"{named}", {_CLUSTER}}}, namespace)'),
        _variable("workload", f'label_values({{__name__=~"{named}", {_SCOPE}}}, workload)'),
    ]


def _variable(name: str, query: str) -> dashboard.QueryVariable:
    """Return a variable whose "All" also matches series without the label."""
    return (
        dashboard.QueryVariable(name)
        .label(name.capitalize())
        .query(query)
        .datasource(_SOURCE)
        .include_all(include_all=True)
        .all_value(".*")
        .multi(multi=True)
        .current(VariableOption(selected=True, text="All", value="$__all"))
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
    )


def _panel(box: Box) -> Any:
    """Return the builder of a panel; the builders of the kinds share their methods, but no type."""
    builder = _KINDS[box.kind](box).title(box.title).description(box.description).datasource(_SOURCE).unit(box.unit)
    for letter, query in zip("AB", box.queries, strict=False):
        target = Dataquery().expr(query.expression).legend_format(query.legend).ref_id(letter).datasource(_SOURCE)
        if box.kind == "timeseries":
            builder = builder.with_target(target.range())
        else:
            shape = PromQueryFormat.TABLE if box.kind == "table" else PromQueryFormat.TIME_SERIES
            builder = builder.with_target(target.instant().format(shape))
    return builder


def _stat(box: Box) -> stat.Panel:
    steps = [Threshold(None, "green"), Threshold(box.worst, "red")]
    return (
        stat.Panel()
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
        .no_value("No report")
    )


def _timeseries(box: Box) -> timeseries.Panel:
    legend = common.VizLegendOptions().show_legend(show_legend=True).placement(LegendPlacement.BOTTOM)
    panel = timeseries.Panel().legend(legend).line_width(2)
    if box.stacked:
        panel = panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL)).fill_opacity(30)
    return panel


def _table(box: Box) -> table.Panel:
    options = {
        "excludeByName": {"Time": True, **({} if box.value else {"Value": True})},
        "indexByName": {column: index for index, column in enumerate(_COLUMNS)},
        "renameByName": {"workload_type": "type", "topology_key": "key", **({"Value": box.value} if box.value else {})},
    }
    return (
        table.Panel()
        .show_header(show_header=True)
        .with_transformation(DataTransformerConfig(id_val="organize", options=options))
    )


def _bargauge(_box: Box) -> bargauge.Panel:
    return (
        bargauge.Panel()
        .orientation(VizOrientation.HORIZONTAL)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )


_KINDS: Final[dict[str, Callable[[Box], Any]]] = {
    "stat": _stat,
    "timeseries": _timeseries,
    "table": _table,
    "bargauge": _bargauge,
}
