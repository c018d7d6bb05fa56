"""The exposition of parts that come, change and go has the lines of all parts, plain and in gzip."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from random import Random
from typing import Final

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse

from kubectl_spread.diagnosis.running_pods import RunningPods
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.render.openmetrics import exposition, series
from kubectl_spread.render.openmetrics.exposition import BLOCK_PARTS, Exposition, MetricsPage
from kubectl_spread.render.openmetrics.families import FAMILIES
from kubectl_spread.report.model import Report
from tests.render.test_openmetrics import with_findings

_END: Final = "# EOF\n"
Part = tuple[Report, Sequence[RunningPods]]


def part(workload: str, skew: int = 0, *, findings: bool = False) -> Part:
    """Return a part of a report with one constraint of a workload."""
    report = with_findings()
    row = msgspec.structs.replace(
        report.constraints[0],
        workload=msgspec.structs.replace(report.constraints[0].workload, name=workload),
        skew=skew,
    )
    running = RunningPods(ObjectRef("default", "Deployment", workload), skew, (("a", skew),), skew)
    return msgspec.structs.replace(report, constraints=[row], findings=report.findings if findings else []), [running]


def published(metrics: Exposition) -> MetricsPage:
    return metrics.publish(with_findings().cluster, with_findings().summary)


def text(page: MetricsPage) -> str:
    """Return the text of a page, which is the same in each form."""
    plain = b"".join(page.plain(openmetrics=False)).decode()
    assert b"".join(page.plain(openmetrics=True)).decode() == plain + _END
    for openmetrics in (False, True):
        compressed = b"".join(page.compressed(openmetrics=openmetrics))
        assert gzip.decompress(compressed).decode() == plain + _END * openmetrics
    return plain


def expected(parts: Sequence[Part]) -> list[str]:
    """Return the lines of parts with headers, in an order of their own."""
    report = with_findings()
    every = [series.of_totals(report.cluster, report.summary), *(series.of_report(*each) for each in parts)]
    present = {family for lines in every for family in lines}
    samples = [line for lines in every for part_lines in lines.values() for line in part_lines.decode().splitlines()]
    return sorted([*samples, *(line for family in present for line in family.header.splitlines())])


def test_without_parts_there_are_totals() -> None:
    page = text(published(Exposition()))
    assert sorted(page.splitlines()) == expected([])
    assert "kube_spread_evaluated_pods 9\n" in page


def test_a_page_of_one_part_is_that_of_a_check() -> None:
    metrics = Exposition()
    report, running = part("web", 2, findings=True)
    metrics.put("web", report, running)
    assert text(published(metrics)) + _END == exposition.text(report, running)


def test_a_page_stays_as_it_is_while_parts_change() -> None:
    metrics = Exposition()
    metrics.put("web", *part("web", 1))
    first = published(metrics)
    before = text(first)
    metrics.put("web", *part("web", 2))
    metrics.put("api", *part("api", 3))
    assert text(first) == before
    assert text(published(metrics)) != before
    assert text(first) == before


def test_what_did_not_change_is_not_compressed_again() -> None:
    metrics = Exposition()
    for number in range(2 * BLOCK_PARTS):
        metrics.put(number, *part(f"web-{number}", 1))
    before = published(metrics).fragments
    metrics.put(0, *part("web-0", 2))
    after = published(metrics).fragments
    # These have the skew, the numbers of running pods, and totals, which are rendered each time.
    names = {
        fragment.lines.decode().partition("{")[0] for fragment in after if not any(fragment is each for each in before)
    }
    assert {name for name in names if name.startswith(("kube_spread_constraint_", "kube_spread_workload_"))} == {
        "kube_spread_constraint_skew",
        "kube_spread_workload_pods",
        "kube_spread_workload_domain_pods",
    }


def test_a_part_out_of_scope_has_no_lines() -> None:
    metrics = Exposition()
    metrics.put("web", *part("web"))
    metrics.put("web", None, ())
    metrics.put("api", None, ())
    metrics.remove("unknown")
    assert sorted(text(published(metrics)).splitlines()) == expected([])


def test_removed_parts_leave_no_blocks() -> None:
    metrics = Exposition()
    for number in range(10 * BLOCK_PARTS):
        metrics.put(number, *part(f"web-{number}"))
    full = len(published(metrics).fragments)
    for number in range(10 * BLOCK_PARTS - 1):
        metrics.remove(number)
    left = Exposition()
    left.put("last", *part("last"))
    assert len(published(metrics).fragments) == len(published(left).fragments)
    for number in range(10 * BLOCK_PARTS):
        metrics.put(number, *part(f"web-{number}"))
    assert len(published(metrics).fragments) == full


@pytest.mark.parametrize("seed", range(20))
def test_pages_have_the_lines_of_all_parts_after_random_changes(seed: int) -> None:
    random = Random(seed)
    metrics, parts = Exposition(), dict[int, Part]()
    for _ in range(10):
        for _ in range(random.choice((1, 5, 60))):
            key = random.randrange(5 * BLOCK_PARTS)
            if random.random() < 0.4:
                metrics.remove(key)
                parts.pop(key, None)
            else:
                parts[key] = part(f"web-{key}", random.randrange(12), findings=random.random() < 0.5)
                metrics.put(key, *parts[key])
        assert sorted(text(published(metrics)).splitlines()) == expected([*parts.values()])


def test_families_are_declared_once_and_have_their_header_once() -> None:
    metrics = Exposition()
    for number in range(3 * BLOCK_PARTS):
        metrics.put(number, *part(f"web-{number}"))
    page = text(published(metrics)) + _END
    names = [family.name for family in parse(page)]
    assert len(names) == len(set(names))
    declared = [family.name for family in FAMILIES]
    assert [name for name in declared if name in names] == names
    assert len(declared) == len(set(declared))
