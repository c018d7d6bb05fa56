"""Warnings about a whole report are in every format that has a field for them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubectl_spread.cli.formats import rendered
from kubectl_spread.report.model import Report
from tests.audits import audit, reported
from tests.builders import constraint, pod_json

WARNING = "Kubernetes 1.99 is newer than all"


@pytest.fixture
def report() -> Report:
    plain = reported(audit(pod_json(constraints=[constraint()])))
    return replace(plain, cluster=replace(plain.cluster, warnings=[WARNING]))


@pytest.mark.parametrize("form", ["json", "yaml", "html", "markdown", "sarif", "github"])
def test_warnings_are_in_every_format(form: str, report: Report) -> None:
    assert WARNING in rendered(report, form)
    without = replace(report, cluster=replace(report.cluster, warnings=[]))
    assert WARNING not in rendered(without, form)
