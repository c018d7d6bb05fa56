"""The ready-made roles allow each request of the plugin, and nothing else."""

from __future__ import annotations

from kubectl_spread.follow.following import NEEDED
from kubectl_spread.sources.decode.resources import (
    AUTOSCALERS,
    BUDGETS,
    BY_KIND,
    CLAIMS,
    CLASSES,
    DRIVERS,
    EVENTS,
    NAMESPACES,
    NODE_CLAIMS,
    NODE_CLASSES,
    NODE_POOLS,
    NODES,
    PRIORITIES,
    SERVICES,
    VOLUMES,
)
from tests.rbac import Permission, permissions

STATUS = Permission("get", "", "configmaps", "cluster-autoscaler-status")
NODE_AUTOSCALERS = {NODE_CLAIMS, NODE_CLASSES, NODE_POOLS}
METRICS = Permission("get", "", "/metrics")
IDENTITY = Permission("get", "", "namespaces", "kube-system")


def test_the_cluster_role_allows_each_read_and_nothing_else() -> None:
    listed = {*BY_KIND.values(), AUTOSCALERS, BUDGETS, CLAIMS, EVENTS, NAMESPACES, NODES, PRIORITIES, SERVICES, VOLUMES}
    listed |= {CLASSES, DRIVERS, *NODE_AUTOSCALERS}
    expected = {Permission("list", resource.group, resource.plural) for resource in listed}
    expected |= {Permission("get", resource.group, resource.plural) for resource in BY_KIND.values()}
    expected |= {Permission("watch", resource.group, resource.plural) for resource in (*NEEDED, BUDGETS, SERVICES)}
    assert set(permissions("cluster")) == {*expected, METRICS, IDENTITY, STATUS}


def test_both_ways_allow_the_same() -> None:
    assert permissions("namespace", "nodes") == permissions("cluster")


def test_the_role_of_a_namespace_has_all_but_cluster_resources() -> None:
    resources = {CLASSES, DRIVERS, NAMESPACES, NODES, PRIORITIES, VOLUMES, *NODE_AUTOSCALERS}
    unnamespaced = {Permission("list", each.group, each.plural) for each in resources}
    unnamespaced |= {Permission("watch", "", resource.plural) for resource in (NODES, VOLUMES)}
    assert set(permissions("nodes")) == {*unnamespaced, METRICS, IDENTITY, STATUS}
    assert not set(permissions("namespace")) & set(permissions("nodes"))
