"""The sample cluster in ``examples/`` has the cases of its page, and comes from a real control plane."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import Json
from tests.controlplane.binaries import kubectl
from tests.controlplane.fixtures import require_built
from tests.e2e import capture_sample
from tests.e2e.spread import Report, Spread, counts, named

pytestmark = pytest.mark.e2e


def sample(spread: Spread, path: Path) -> Report:
    """Return the report on a captured sample."""
    return spread.report("-f", str(path), "--server-version", "1.37")


def test_the_sample_holds_one_of_each(spread: Spread) -> None:
    """A healthy workload, a skewed one, a stale label, pods from before an upgrade, a key that no pod has."""
    report = sample(spread, capture_sample.SAMPLE)
    assert report["cluster"]["nodes"] == "listed"
    assert report.verdicts("Deployment/web") == {"merged": 6}
    assert report.verdicts("Deployment/mail") == {"pre-upgrade": 3}
    assert report.verdicts("Deployment/search") == {"absent-key": 3}
    assert report.verdicts("Deployment/cart") == {"merged": 2, "stale-label": 1}
    skewed = report.row("Deployment/api")
    assert (counts(skewed), skewed["skew"]) == ({"a": 2, "b": 1, "c": 0}, 2)
    codes = {finding["code"] for finding in report["findings"]}
    assert codes == {"SPR101", "SPR103", "SPR107", "SPR301"}


def test_the_sample_has_nothing_from_the_machine_that_captured_it() -> None:
    """No path, address or user of the machine is in the file, and it stays small."""
    text = capture_sample.SAMPLE.read_text(encoding="utf-8")
    assert len(text) < 300_000
    for word in ("127.0.0.1", "/tmp/", "/root", "/home", "localhost", str(kubectl())):
        assert word not in text


def test_capturing_again_gives_the_same_sample(spread: Spread, tmp_path: Path) -> None:
    """Only names and times differ from the sample in the repository."""
    require_built()
    fresh = tmp_path / "cluster.json"
    fresh.write_text(capture_sample.capture(tmp_path / "control-plane"), encoding="utf-8")
    captured, recaptured = sample(spread, capture_sample.SAMPLE), sample(spread, fresh)
    assert [essence(row) for row in recaptured["constraints"]] == [essence(row) for row in captured["constraints"]]
    assert [finding["code"] for finding in recaptured["findings"]] == [
        finding["code"] for finding in captured["findings"]
    ]


def essence(row: Json) -> tuple[object, ...]:
    """Return the parts of a report that must not differ between two captures."""
    return (named(row["workload"]), row["path"], row["podCount"], row["verdicts"], row["selector"]["authored"])
