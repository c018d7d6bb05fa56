"""Warnings: which accepted spread constraints and affinity terms does kube-apiserver warn about?

Source: kubernetes v1.37.1 pkg/api/pod/warnings.go, warningsForPodSpecAndMeta, and pkg/api/node/util.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.kube.api.affinity import affinity_terms
from kubectl_spread.kube.api.fieldpath import POD_SPEC, FieldPath
from kubectl_spread.kube.api.types import PodSpec
from kubectl_spread.kube.features import Behaviour

_DEPRECATED_KEYS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_NULL: Final = "a null labelSelector results in matching no pod"


def pod_warnings(spec: PodSpec, behaviour: Behaviour, path: FieldPath = POD_SPEC) -> Iterator[str]:
    """Yield the API's warnings on a pod or template that it admits, in its order.

    Args:
        spec: The pod spec.
        behaviour: The behaviour of the API server.
        path: The path of the spec: ``spec``, or ``spec.template.spec``.
    """
    for index, constraint in enumerate(spec.topology_spread_constraints):
        constraint_path = path / "topologySpreadConstraints" / index
        key = constraint.topology_key
        if key in _DEPRECATED_KEYS:
            yield f"{constraint_path}.topologyKey: {key} is {_DEPRECATED_KEYS[key]}"
        if constraint.label_selector is None and behaviour.warns_of_null_selectors:
            yield f"{constraint_path}.labelSelector: {_NULL}"
    for term_path, term, _ in affinity_terms(spec, path) if behaviour.warns_of_null_selectors else ():
        if term.label_selector is None:
            yield f"{term_path}.labelSelector: {_NULL}"
