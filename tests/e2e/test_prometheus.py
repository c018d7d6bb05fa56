"""Metrics of a check, plain and in gzip, are read by promtool, Prometheus and node_exporter themselves.

None of these tests needs a control plane.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from tests import trial
from tests.commands import SPREAD
from tests.e2e import consumers
from tests.e2e.consumers import Page, Prometheus
from tests.generated import ROOT

pytestmark = pytest.mark.e2e

PAGE: Final = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
QUERIES: Final = re.findall(r"^\| [^`|]+ \| `(.+)` \|$", PAGE, re.MULTILINE)
"""The queries of the page, each in the row of its question."""

GOLDEN: Final = ROOT / "tests/render/golden"
TYPES: Final = {
    "text": "text/plain; version=0.0.4; charset=utf-8",
    "openmetrics": "application/openmetrics-text; version=1.0.0; charset=utf-8",
}
"""The content types by which Prometheus chooses one of its two parsers."""


def written(directory: Path) -> Path:
    """Return the file that the plugin writes about the sample cluster, as a cron job on a node would have it."""
    target = directory / "kubectl_spread.prom"
    command = [str(SPREAD), "check", "-f", str(ROOT / "examples/cluster.json"), "--server-version", "1.37"]
    subprocess.run([*command, "-o", f"openmetrics={target}"], check=True)
    return target


def of_trial(directory: Path) -> str:
    """Return the metrics of a cluster with a closed zone, waiting pods, and workloads in one zone."""
    captured = directory / "trial.json"
    captured.write_text(json.dumps(trial.capture()), encoding="utf-8")
    command = [str(SPREAD), "check", "-A", "-f", str(captured), "--server-version", "1.37", "--fail-on", "never"]
    return subprocess.run([*command, "-o", "openmetrics"], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the metrics of the sample cluster."""
    return written(tmp_path_factory.mktemp("sample")).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def texts(sample: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the metrics that Prometheus scrapes, by name."""
    golden = (GOLDEN / "hostile.prom").read_text(encoding="utf-8")
    waiting = of_trial(tmp_path_factory.mktemp("trial"))
    return {"sample": sample, "hostile": golden, "compressed": golden, "trial": waiting}


@pytest.fixture(scope="module")
def scraped(texts: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Return a Prometheus that scrapes each text in both formats, one of them in gzip."""
    pages: dict[str, Page] = {
        f"/{name}/{form}": (content_type, gzip.compress(text.encode()) if name == "compressed" else text)
        for name, text in texts.items()
        for form, content_type in TYPES.items()
    }
    with consumers.serving_pages(pages) as address:
        jobs = {path: {"metrics_path": path, "static_configs": [{"targets": [address]}]} for path in pages}
        with consumers.prometheus(tmp_path_factory.mktemp("prometheus"), jobs) as running:
            yield running


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.prom")), ids=lambda path: path.name)
def test_promtool_has_no_complaint(path: Path) -> None:
    assert consumers.promtool("check", "metrics", stdin=path.read_text(encoding="utf-8")) == ""


@pytest.mark.parametrize("form", TYPES)
@pytest.mark.parametrize("cluster", ["sample", "hostile", "compressed"])
def test_prometheus_scrapes_it(scraped: Prometheus, texts: Mapping[str, str], cluster: str, form: str) -> None:
    """Both of its parsers store every series with labels and value."""
    job = f"/{cluster}/{form}"
    expected = {
        frozenset(
            {("__name__", sample.name), *((name, text) for name, text in sample.labels.items() if text)}
        ): sample.value
        for family in parse(texts[cluster])
        for sample in family.samples
    }
    # A scrape may be stored in part when the first query comes.
    scraped.wait_until(lambda: len(stored(scraped, job)) >= len(expected))
    assert stored(scraped, job) == expected
    assert (scraped.query(f'up{{job="{job}"}}')[0]["value"][1], scraped.targets()[job]) == ("1", "")


def stored(scraped: Prometheus, job: str) -> dict[frozenset[tuple[str, str]], float]:
    """Return the values of our series that Prometheus stored for a job, by name and labels."""
    samples = scraped.query(f'{{__name__=~"kube_spread_.+",job="{job}"}}')
    return {
        frozenset(label for label in sample["metric"].items() if label[0] not in ("job", "instance")): float(
            sample["value"][1]
        )
        for sample in samples
    }


def test_a_query_returns_the_skewed_constraint(scraped: Prometheus) -> None:
    skew = 'kube_spread_constraint_skew{job="/sample/text"}'
    scraped.wait_until(lambda: scraped.query(skew))
    (above,) = scraped.query(f"{skew} > kube_spread_constraint_max_skew")
    assert (above["metric"]["namespace"], above["metric"]["workload"], above["value"][1]) == ("shop", "api", "2")


@pytest.mark.parametrize("query", QUERIES)
def test_the_documented_queries_return_data(scraped: Prometheus, query: str) -> None:
    assert scraped.wait_until(lambda: scraped.query(query))


@pytest.mark.parametrize("source", ["sample", "hostile"])
def test_node_exporter_reads_the_file(tmp_path: Path, source: str) -> None:
    """Its textfile collector reports no error and serves all series."""
    textfiles = tmp_path / "textfiles"
    textfiles.mkdir()
    target = written(textfiles)
    if source == "hostile":
        target.write_text((GOLDEN / "hostile.prom").read_text(encoding="utf-8"), encoding="utf-8")
    served = {family.name: family for family in parse(consumers.node_exporter(tmp_path, textfiles))}
    assert [sample.value for sample in served["node_textfile_scrape_error"].samples] == [0]
    (modified,) = served["node_textfile_mtime_seconds"].samples
    assert modified.labels["file"].endswith("kubectl_spread.prom")
    for family in parse(target.read_text(encoding="utf-8")):
        values = {frozenset(sample.labels.items()): sample.value for sample in family.samples}
        assert {frozenset(sample.labels.items()): sample.value for sample in served[family.name].samples} == values
