"""Reports of clusters with an identity."""

from __future__ import annotations

from typing import Final

import msgspec

from kubectl_spread.report.model import Cluster, Report
from tests.audits import reported
from tests.render.test_render import REPORTS

UID: Final = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
READ_AT: Final = "2026-11-22T05:24:07Z"


def live(cluster: Cluster, context: str = "prod-eu", name: str = "eu-1") -> Cluster:
    """Return a cluster as a live one that the kubeconfig names."""
    return msgspec.structs.replace(
        cluster,
        context=context,
        name=name,
        name_source="kubeconfig",
        uid=UID,
        read_at=READ_AT,
        server_version="1.37.1",
        version_source="live",
        namespace="shop",
    )


def several(context: str = "prod-eu", name: str = "eu-1") -> Report:
    """Return a report with findings, of a live cluster."""
    report = reported(REPORTS["several"]())
    return msgspec.structs.replace(report, cluster=live(report.cluster, context, name))
