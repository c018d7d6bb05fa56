"""Synthetic reports of large clusters, with the size and contents of real ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.kube.api.types import LabelSelector, LabelSelectorRequirement
from kubectl_spread.report.model import (
    Cluster,
    CommandLine,
    Domain,
    Finding,
    FindingCounts,
    Group,
    Next,
    NodeAnswer,
    Report,
    Row,
    Selectors,
    Summary,
    Workload,
    Zone,
)
from kubectl_spread.rules import RULES

_ZONES: Final = ("eu-central-1a", "eu-central-1b", "eu-central-1c")
_HASH: Final = "pod-template-hash"


def report(workloads: int, *, pods_each: int = 30, hosts: int = 5000, finding_each: int = 3) -> Report:
    """Return a report of Deployments with one constraint by zone and one by host.

    Args:
        workloads: The number of workloads.
        pods_each: Pods of each workload.
        hosts: The number of nodes; with more than 200, only nodes with pods are domains of a row.
        finding_each: The distance between two workloads with a finding, which is about all their pods.
    """
    objects = [_workload(index) for index in range(workloads)]
    findings = [_finding(index, objects[index], pods_each) for index in range(0, workloads, finding_each)]
    words = [str(finding.severity) for finding in findings]
    counts = FindingCounts(error=words.count("error"), warning=words.count("warning"), info=words.count("info"))
    rows = [row for index in range(workloads) for row in _rows(index, objects[index], pods_each, hosts)]
    return Report(
        cluster=_cluster(hosts, workloads * pods_each),
        constraints=rows,
        groups=[_group(index, objects[index], pods_each, hosts) for index in range(workloads)],
        pods=[],
        findings=findings,
        summary=Summary(
            pods=workloads * pods_each,
            workloads=workloads,
            constraints=len(rows),
            findings=counts,
            silenced=0,
            skipped={"finished": 12},
        ),
    )


def _cluster(hosts: int, pods: int) -> Cluster:
    return Cluster(
        context="prod-eu",
        name="prod-eu",
        name_source="kubeconfig",
        uid="1b4e28ba-2fa1-11d2-883f-0016d3cca427",
        read_at="2026-11-22T05:24:07Z",
        server_version="1.37.1",
        evaluated_as="1.37",
        version_source="live",
        gates={},
        gates_source="metrics",
        nodes="listed",
        node_count=hosts,
        zone_count=3,
        zones=[Zone(zone=zone, nodes=hosts // len(_ZONES), pods=pods // len(_ZONES)) for zone in _ZONES],
        resource_versions={"pods": "184467"},
    )


def _workload(index: int) -> Workload:
    return Workload(kind="Deployment", name=f"checkout-service-{index:05}")


def _namespace(index: int) -> str:
    return f"team-{index % 50:02}"


def _pod(index: int, number: int) -> str:
    return f"checkout-service-{index:05}-{index * 7919 % 0xFFFFFFF:08x}-{number:05x}"


def _rows(index: int, workload: Workload, pods_each: int, hosts: int) -> Iterator[Row]:
    share, extra = divmod(pods_each, len(_ZONES))
    excess = index % 4
    counts = [share + extra + excess, share, share - excess]
    zones = [
        Domain(value=zone, nodes=hosts // len(_ZONES), match_num=count, skew=count - min(counts))
        for zone, count in zip(_ZONES, counts, strict=True)
    ]
    blocked = [zone.value for zone in zones if zone.skew]
    allowed = [zone.value for zone in zones if not zone.skew]
    yield _row(index, workload, 0, zones, hard=True, following=Next(allowed=allowed, blocked=blocked))
    named = pods_each if hosts > 200 else hosts
    filled = (index * 17 % hosts + number * 97 for number in range(named))
    domains = [
        Domain(value=f"ip-10-{host // 256}-{host % 256}-17.eu-central-1.compute.internal", nodes=1, match_num=1, skew=1)
        for host in sorted({number % hosts for number in filled})
    ]
    empty = hosts - len(domains)
    yield _row(index, workload, 1, domains, hard=False, following=Next(allowed=hosts, blocked=0), empty=empty)


def _row(
    index: int, workload: Workload, place: int, domains: list[Domain], *, hard: bool, following: Next, empty: int = 0
) -> Row:
    authored = LabelSelector(match_labels={"app.kubernetes.io/name": workload.name})
    by_hash = LabelSelectorRequirement(key=_HASH, operator="In", values=(f"{index * 7919 % 0xFFFFFFF:08x}",))
    merged = LabelSelector(match_labels=authored.match_labels, match_expressions=(by_hash,))
    pods = sum(domain.match_num for domain in domains)
    return Row(
        namespace=_namespace(index),
        workload=workload,
        pod_count=pods,
        pending=0,
        path=f"spec.topologySpreadConstraints[{place}]",
        default=False,
        topology_key="topology.kubernetes.io/zone" if hard else "kubernetes.io/hostname",
        when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
        max_skew=1,
        min_domains=1,
        node_affinity_policy="Honor",
        node_taints_policy="Ignore",
        selector=Selectors(authored=authored, merged=merged, stored=merged, effective=merged),
        diff=[],
        verdicts={"merged": pods},
        domains=domains,
        empty_domains=empty,
        min_match_num=0 if empty else min(domain.match_num for domain in domains),
        self_match_num=1,
        skew=max(domain.skew for domain in domains),
        next=following,
    )


def _group(index: int, workload: Workload, pods_each: int, hosts: int) -> Group:
    node_answer = NodeAnswer(total=hosts, feasible=hosts // 3, not_matching=hosts - hosts // 3, missing_label=0)
    pods = [_pod(index, number) for number in range(pods_each)]
    return Group(namespace=_namespace(index), workload=workload, pods=pods, pending=0, nodes=node_answer)


def _finding(index: int, workload: Workload, pods_each: int) -> Finding:
    rule = RULES[index % len(RULES)]
    return Finding(
        code=rule.code,
        name=rule.name,
        severity=rule.severity,
        namespace=_namespace(index),
        object=workload,
        path="spec.topologySpreadConstraints[0]",
        pods=[_pod(index, number) for number in range(pods_each)],
        pod_count=pods_each,
        message=f"Zone {_ZONES[0]} has {pods_each} pods and zone {_ZONES[2]} has {index % 4} (skew "
        f"{pods_each - index % 4}, maxSkew 1).",
        values={"topology_key": "topology.kubernetes.io/zone", "domain": _ZONES[0]},
        fix=f"Restart all {pods_each} pods of the workload.",
        commands=[CommandLine(f"kubectl rollout restart deploy/{workload.name} -n {_namespace(index)}".split())],
        group=f"{rule.code}-{index % 4}",
        rows=[2 * index],
    )
