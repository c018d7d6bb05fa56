"""The descheduler's default evictor; tests/conformance/descheduler compares it with the real one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from kubectl_spread.kube import descheduler
from kubectl_spread.kube.descheduler import Evictee, EvictionObstacle


def evictee(
    owner_kinds: Sequence[str] = ("ReplicaSet",),
    annotations: Iterable[tuple[str, str]] = (),
    priority: int | None = None,
    volume_kinds: Sequence[str] = (),
    *,
    terminating: bool = False,
) -> Evictee:
    return Evictee(owner_kinds, dict(annotations), priority, volume_kinds, terminating)


MIRROR = ("kubernetes.io/config.mirror", "x")
EVICT = ("descheduler.alpha.kubernetes.io/evict", "false")


@pytest.mark.parametrize(
    ("pod", "values"),
    [
        pytest.param(evictee(), (), id="a pod of a ReplicaSet"),
        pytest.param(evictee(()), (EvictionObstacle.NO_OWNER,), id="a pod without owner"),
        pytest.param(
            evictee(["ReplicaSet", "DaemonSet"]), (EvictionObstacle.DAEMON_SET,), id="a pod that a DaemonSet owns too"
        ),
        pytest.param(evictee(["Node"], [MIRROR]), (EvictionObstacle.MIRROR,), id="mirror of a static pod"),
        pytest.param(
            evictee(annotations=[("kubernetes.io/config.source", "file")]), (EvictionObstacle.STATIC,), id="static"
        ),
        pytest.param(evictee(annotations=[("kubernetes.io/config.source", "api")]), (), id="from the API"),
        pytest.param(evictee(priority=1_999_999_999), (), id="the highest priority of a user's pod"),
        pytest.param(evictee(priority=2_000_000_000), (EvictionObstacle.SYSTEM_CRITICAL,), id="system-critical"),
        pytest.param(evictee(volume_kinds=["emptyDir"]), (EvictionObstacle.LOCAL_STORAGE,), id="emptyDir"),
        pytest.param(evictee(volume_kinds=["hostPath"]), (EvictionObstacle.LOCAL_STORAGE,), id="hostPath"),
        pytest.param(evictee(volume_kinds=["persistentVolumeClaim", "configMap"]), (), id="claims are not an obstacle"),
        pytest.param(evictee(terminating=True), (EvictionObstacle.TERMINATING,), id="terminating"),
        pytest.param(
            evictee((), [MIRROR], 2_000_000_000, ["emptyDir"], terminating=True),
            (
                EvictionObstacle.MIRROR,
                EvictionObstacle.TERMINATING,
                EvictionObstacle.SYSTEM_CRITICAL,
                EvictionObstacle.NO_OWNER,
                EvictionObstacle.LOCAL_STORAGE,
            ),
            id="several obstacles",
        ),
        pytest.param(
            evictee((), [EVICT], 2_000_000_000, ["emptyDir"]), (), id="the annotation overrides all obstacles"
        ),
        pytest.param(
            evictee(annotations=[("descheduler.alpha.kubernetes.io/prefer-no-eviction", "")]),
            (),
            id="prefer-no-eviction is not an obstacle",
        ),
    ],
)
def test_obstacles_are_the_reasons_against_eviction(pod: Evictee, values: tuple[EvictionObstacle, ...]) -> None:
    assert descheduler.obstacles(pod) == values
