"""The answers of other tools in ``docs/comparison.md`` are the answers of the real tools to the sample cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.controlplane.fixtures import require_built
from tests.e2e import peers
from tests.e2e.capture_sample import NAMESPACE, sample_cluster
from tests.e2e.spread import Plugin

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).parents[2] / "docs" / "comparison.md"
BLOCK = re.compile(r"<!-- begin (.+?) -->\n```text\n(.*?)```\n<!-- end \1 -->", re.DOTALL)
SUFFIX = re.compile(r"(-[0-9a-f]{8,10})-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
SPREAD_CHECK = "Pod Topology Spread Constraints"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Iterator[Mapping[str, str]]:
    """Ask every tool about the sample cluster; return the part of each answer that is about spread constraints."""
    require_built()
    # Built before the cluster starts: without a kubelet its nodes are healthy for less time than a build takes.
    built = [peers.binary(*tool) for tool in (peers.DESCHEDULER, peers.KUBE_SCORE)]
    assert all(path.exists() for path in built)
    with sample_cluster(tmp_path_factory.mktemp("peers")) as cluster:
        description = cluster.kubectl("describe", "deploy", "api", "-n", NAMESPACE).stdout
        manifests = cluster.kubectl("get", "deploy", "-n", NAMESPACE, "-o", "json").stdout
        scores, evictions = peers.kube_score(manifests), peers.descheduler(cluster)
        findings = plugin.on(cluster)("check", "-n", NAMESPACE, "-o", "json").report["findings"]
        yield {
            "evicted": " ".join(re.findall(r"dry run mode\" pod=\"shop/(\S+)\"", evictions)),
            "named": " ".join(name for finding in findings if finding["code"] == "SPR301" for name in finding["pods"]),
            "kubectl describe": lines_with("Topology Spread", description),
            "kube-score": lines_with(SPREAD_CHECK, scores),
            "descheduler": "".join(re.findall(r"\"Evicted pod in dry run mode\" pod=\S+", evictions)) + "\n",
            "kubectl spread": "".join(
                f"{finding['code']} {finding['object']['name']}: {finding['message']}\n" for finding in findings
            ),
        }


def lines_with(text: str, output: str) -> str:
    return "".join(f"{line.strip()}\n" for line in output.splitlines() if text in line)


def normalized(text: str) -> str:
    """Return a text without the random ends of pod names and without times."""
    return TIME.sub("TIME", SUFFIX.sub(r"\1-xxxxx", text))


@pytest.mark.parametrize("tool", ["kubectl describe", "kube-score", "descheduler", "kubectl spread"])
def test_the_page_shows_what_the_tool_answers(tool: str, answers: Mapping[str, str]) -> None:
    blocks = dict(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    assert normalized(answers[tool]) == normalized(blocks[tool])


def test_the_descheduler_would_evict_a_pod_that_check_names(answers: Mapping[str, str]) -> None:
    assert answers["evicted"] in answers["named"].split()
