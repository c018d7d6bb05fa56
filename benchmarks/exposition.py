"""The cost of metrics that are served while workloads change: rendering, publishing, and joining the body of a scrape.

Run as ``python -m benchmarks.exposition --parts 5000 --changes 250``; no cluster is needed. Each part is a workload
with a constraint over three zones, and every second one has another over the hostnames of 5,000 nodes. A change gives
a part other numbers of pods in its zones.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import resource
import time
from collections.abc import Iterable
from random import Random
from typing import Final, NamedTuple

from msgspec import UNSET

from kubectl_spread.diagnosis.running_pods import RunningPods
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.render.openmetrics.exposition import Exposition, MetricsPage
from kubectl_spread.report import model

_ZONES: Final = ("eu-central-1a", "eu-central-1b", "eu-central-1c")
_NODES: Final = 5_000
_NAMESPACES: Final = 295
_CLUSTER: Final = model.Cluster(
    judged_as="1.37", version_source="live", gates={}, gates_source="metrics", nodes="listed", resource_versions={}
)
_SELECTOR: Final = LabelSelector(match_labels={"app": "web"})
_SELECTORS: Final = model.Selectors(authored=_SELECTOR, stored=_SELECTOR, effective=_SELECTOR)


class Times(NamedTuple):
    """Seconds of each repetition: processor time of rendering and publishing, and the wall time of a scrape."""

    render: list[float]
    publish: list[float]
    plain: list[float]
    compressed: list[float]


def _summary(parts: int) -> model.Summary:
    return model.Summary(
        pods=30 * parts,
        workloads=parts,
        constraints=parts * 3 // 2,
        findings=model.FindingCounts(),
        silenced=0,
        skipped={},
    )


def _row(number: int, path: int, key: str, domains: list[model.Domain], empty: int) -> model.Row:
    counts = [domain.match_num for domain in domains] + [0] * (empty > 0)
    return model.Row(
        namespace=f"team-{number % _NAMESPACES}",
        workload=model.Workload(kind="Deployment", name=f"service-{number:05d}"),
        pod_count=30,
        pending=0,
        path=f"spec.topologySpreadConstraints[{path}]",
        topology_key=key,
        when_unsatisfiable="DoNotSchedule",
        max_skew=1,
        min_domains=1,
        node_affinity_policy="Honor",
        node_taints_policy="Ignore",
        selector=_SELECTORS,
        verdicts={} if path else {"merged": 30},
        domains=domains,
        empty_domains=empty or UNSET,
        min_match_num=min(counts),
        self_match_num=1,
        skew=max(counts) - min(counts),
        next=model.Next(allowed=len(domains) + empty, blocked=0),
    )


def _part(number: int, random: Random) -> tuple[model.Report, tuple[RunningPods]]:
    """Return the part of a workload whose 30 pods are spread over the zones at random."""
    first, second = random.randint(8, 12), random.randint(8, 12)
    zones = dict(zip(_ZONES, (first, second, 30 - first - second), strict=True))
    domains = [model.Domain(value=zone, nodes=_NODES // 3, match_num=pods, skew=0) for zone, pods in zones.items()]
    rows = [_row(number, 0, ZONE, domains, 0)]
    if number % 2:
        hostnames = [model.Domain(value=f"node-{index}", nodes=1, match_num=1, skew=1) for index in range(30)]
        rows.append(_row(number, 1, HOSTNAME, hostnames, _NODES - 30))
    report = model.Report(cluster=_CLUSTER, constraints=rows, groups=[], pods=[], findings=[], summary=_summary(1))
    workload = ObjectRef(rows[0].namespace, "Deployment", rows[0].workload.name)
    return report, (RunningPods(workload, 30, tuple(zones.items()), 1),)


def _memory() -> float:
    """Return the peak of resident memory in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _put(exposition: Exposition, numbers: Iterable[int], random: Random) -> float:
    """Give parts other values; return the processor time of rendering them."""
    parts = [(number, *_part(number, random)) for number in numbers]
    began = time.process_time()
    for number, report, running in parts:
        exposition.put(number, report, running)
    return time.process_time() - began


def _publish(exposition: Exposition, summary: model.Summary) -> tuple[MetricsPage, float]:
    """Return the page and the processor time."""
    began = time.process_time()
    page = exposition.publish(_CLUSTER, summary)
    return page, time.process_time() - began


def _scrape(page: MetricsPage, times: Times) -> None:
    began = time.perf_counter()
    b"".join(page.plain(openmetrics=True))
    joined = time.perf_counter()
    b"".join(page.compressed(openmetrics=True))
    times.plain.append(joined - began)
    times.compressed.append(time.perf_counter() - joined)


def _line(name: str, seconds: list[float]) -> str:
    ordered = sorted(seconds)
    middle, last = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return f"| {name} | {middle * 1000:.1f} ms | {last * 1000:.1f} ms |"


def _measure(exposition: Exposition, parts: int, changes: int, rounds: int) -> Times:
    """Change random parts and publish, again and again."""
    random, times = Random(2), Times([], [], [], [])
    for _ in range(rounds):
        times.render.append(_put(exposition, random.sample(range(parts), changes), random))
        page, seconds = _publish(exposition, _summary(parts))
        times.publish.append(seconds)
        _scrape(page, times)
    return times


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=int, default=5_000)
    parser.add_argument("--changes", type=int, default=250)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    random, exposition = Random(1), Exposition()
    before = _memory()
    render = sum(_put(exposition, (number,), random) for number in range(options.parts))
    page, publish = _publish(exposition, _summary(options.parts))
    memory = _memory() - before
    body, compressed = (
        b"".join(chunks) for chunks in (page.plain(openmetrics=True), page.compressed(openmetrics=True))
    )
    if gzip.decompress(compressed) != body:
        raise ValueError("the body in gzip is another one")
    series = sum(not line.startswith(b"#") for line in body.splitlines())
    print(f"{series:,} series, {len(body) / 1e6:.1f} MB, {len(compressed) / 1e6:.2f} MB in gzip, {memory:.0f} MiB")
    print(f"first: {render:.2f} s to render, {publish:.2f} s to publish; then {options.changes} changes at a time:\n")
    print("| | median | p99 |\n|---|---|---|")
    del body
    gc.collect()
    for name, seconds in _measure(exposition, options.parts, options.changes, options.rounds)._asdict().items():
        print(_line(name, seconds))


if __name__ == "__main__":
    main()
