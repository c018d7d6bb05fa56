"""The lines of an apiserver's metrics that tell of feature gates."""

from __future__ import annotations

import pytest

from kubectl_spread.sources.apiserver.cluster import feature_gates


@pytest.mark.parametrize(
    ("metrics", "gates"),
    [
        (b"", {}),
        (b'kubernetes_feature_enabled{name="A",stage="BETA"} 1\n', {"A": True}),
        (b'kubernetes_feature_enabled{stage="", name="A"} 0', {"A": False}),
        (b'kubernetes_feature_enabled{name="A"} 1 1700000000\r\nx 1\nkubernetes_feature_enabled{name="B"} 0', None),
        (b'# kubernetes_feature_enabled{name="A"} 1\n', {}),
        (b'kubernetes_feature_enabled{name="A"} 2\nkubernetes_feature_enabled{name="B"} 10\n', {}),
        (b'kubernetes_feature_enabled{surname="A"} 1\nkubernetes_feature_enabled{name="A', {}),
        (b'kubernetes_feature_enabled{name="A"}\nkubernetes_feature_enabled{name=""} 1', {}),
        (b'kubernetes_feature_enabled{name="A"} 1 kubernetes_feature_enabled{name="B"} 0\n', {"A": True}),
    ],
)
def test_feature_gates(metrics: bytes, gates: dict[str, bool] | None) -> None:
    assert feature_gates(metrics) == ({"A": True, "B": False} if gates is None else gates)
