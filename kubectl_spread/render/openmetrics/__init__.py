"""Which metrics does a report have? Gauges in the text format of Prometheus 0.0.4, which OpenMetrics 1.0.0 shares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubectl_spread.diagnosis.exposure import RunningPods
from kubectl_spread.render.openmetrics import series
from kubectl_spread.render.openmetrics.families import FAMILIES
from kubectl_spread.render.openmetrics.series import Lines
from kubectl_spread.report.model import Report

END: Final = b"# EOF\n"


def text(report: Report, running: Iterable[RunningPods]) -> str:
    """Return a report as gauges without timestamps, which all readers of both text formats accept."""
    totals = lines(series.of_totals(report.cluster, report.summary))
    return (totals + lines(series.of_report(report, running)) + END).decode()


def lines(samples: Lines) -> bytes:
    """Return the lines of some families with their headers; the totals come before all others."""
    return b"".join(family.header.encode() + samples[family] for family in FAMILIES if family in samples)
