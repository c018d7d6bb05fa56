"""Pod templates are recognised by their shape, in objects of kinds that Kubernetes does not define."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_spread.kube.api.types import ObjectMeta
from kubectl_spread.kube.api.workloads import PodTemplateSpec
from kubectl_spread.kube.custom import HeldTemplate
from kubectl_spread.sources.decode.json_objects import MalformedFieldError
from kubectl_spread.sources.files.heldtemplates import held_templates
from tests.builders import Json, constraint

POD_SPEC = {"containers": [{"name": "app", "image": "registry.example/app"}]}
CONSTRAINT = constraint()


def template(**spec: Any) -> Json:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {**POD_SPEC, **spec}}


def parts(manifest: Json, group: str = "example.com", kind: str = "Cluster") -> list[HeldTemplate]:
    return list(held_templates(manifest, group, kind))


def templates(manifest: Json, group: str = "example.com", kind: str = "Cluster") -> list[tuple[str, int | None, bool]]:
    """Return the path and the replicas of each template, and whether it is a whole one."""
    held = parts(manifest, group, kind)
    assert not any(part.unevaluated for part in held), held
    return [(str(part.path), part.replicas, part.complete) for part in held]


@pytest.mark.parametrize(
    ("group", "kind", "spec", "expected"),
    [
        pytest.param(
            "argoproj.io",
            "Rollout",
            {"replicas": 3, "template": template()},
            [("spec.template.spec", 3, True)],
            id="Rollout",
        ),
        pytest.param(
            "argoproj.io",
            "Rollout",
            {"workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
            [],
            id="Rollout of a Deployment",
        ),
        pytest.param(
            "apps.kruise.io", "CloneSet", {"template": template()}, [("spec.template.spec", 1, True)], id="CloneSet"
        ),
        pytest.param(
            "leaderworkerset.x-k8s.io",
            "LeaderWorkerSet",
            {
                "replicas": 2,
                "leaderWorkerTemplate": {
                    "size": 4,
                    "leaderTemplate": template(),
                    "workerTemplate": {"spec": POD_SPEC},
                },
            },
            [
                ("spec.leaderWorkerTemplate.leaderTemplate.spec", 2, True),
                ("spec.leaderWorkerTemplate.workerTemplate.spec", 6, True),
            ],
            id="LeaderWorkerSet",
        ),
        pytest.param(
            "leaderworkerset.x-k8s.io",
            "LeaderWorkerSet",
            {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": template()}},
            [("spec.leaderWorkerTemplate.workerTemplate.spec", 8, True)],
            id="LeaderWorkerSet without a leader template",
        ),
        pytest.param(
            "jobset.x-k8s.io",
            "JobSet",
            {
                "replicatedJobs": [
                    {"name": "driver", "template": {"spec": {"template": template()}}},
                    {
                        "name": "workers",
                        "replicas": 2,
                        "template": {"spec": {"parallelism": 4, "completions": 4, "template": template()}},
                    },
                ]
            },
            [
                ("spec.replicatedJobs[0].template.spec.template.spec", 1, True),
                ("spec.replicatedJobs[1].template.spec.template.spec", 8, True),
            ],
            id="JobSet",
        ),
        pytest.param(
            "serving.knative.dev",
            "Service",
            {"template": {"spec": {"containerConcurrency": 10, "containers": [{"image": "registry.example/app"}]}}},
            [("spec.template.spec", None, True)],
            id="Knative Service, whose container has no name",
        ),
        pytest.param(
            "ray.io",
            "RayCluster",
            {
                "headGroupSpec": {"rayStartParams": {}, "template": template()},
                "workerGroupSpecs": [
                    {"groupName": "cpu", "replicas": 3, "template": template()},
                    {"groupName": "tpu", "replicas": 2, "numOfHosts": 4, "template": template()},
                    {"groupName": "late", "template": template()},
                ],
            },
            [
                ("spec.headGroupSpec.template.spec", 1, True),
                ("spec.workerGroupSpecs[0].template.spec", 3, True),
                ("spec.workerGroupSpecs[1].template.spec", 8, True),
                ("spec.workerGroupSpecs[2].template.spec", None, True),
            ],
            id="RayCluster",
        ),
        pytest.param(
            "example.com",
            "Cluster",
            {"pools": {"a": {"replicas": 5, "pod": template()}, "b.c/d": {"pod": template()}}},
            [("spec.pools.a.pod.spec", 5, True), ("spec.pools[b.c/d].pod.spec", None, True)],
            id="a kind that nobody knows",
        ),
        pytest.param(
            "monitoring.coreos.com",
            "Prometheus",
            {"topologySpreadConstraints": [CONSTRAINT], "containers": [{"name": "sidecar", "image": "a"}]},
            [("spec", None, False)],
            id="Prometheus, whose containers are added to its own",
        ),
        pytest.param(
            "kafka.strimzi.io",
            "Kafka",
            {"kafka": {"replicas": 3, "template": {"pod": {"topologySpreadConstraints": [CONSTRAINT]}}}},
            [("spec.kafka.template.pod", None, False)],
            id="Strimzi Kafka",
        ),
        pytest.param(
            "elasticsearch.k8s.elastic.co",
            "Elasticsearch",
            {"nodeSets": [{"count": 3, "podTemplate": {"spec": {"topologySpreadConstraints": [CONSTRAINT]}}}]},
            [("spec.nodeSets[0].podTemplate.spec", None, False)],
            id="Elasticsearch without containers",
        ),
        pytest.param(
            "apps.kruise.io",
            "SidecarSet",
            {"containers": [{"name": "sidecar", "image": "registry.example/sidecar"}]},
            [],
            id="SidecarSet, which is no template",
        ),
        pytest.param(
            "apiextensions.crossplane.io",
            "CompositeResourceDefinition",
            {"versions": [{"schema": {"openAPIV3Schema": {"default": template(topologySpreadConstraints=[{}])}}}]},
            [],
            id="a schema",
        ),
        pytest.param(
            "example.com", "Cluster", {"template": {"spec": {"containers": {"name": "app"}}}}, [], id="no list"
        ),
        pytest.param(
            "example.com", "Cluster", {"template": {"spec": {"containers": ["app", 1]}}}, [], id="a list of names"
        ),
        pytest.param("example.com", "Cluster", {"template": {"spec": {"containers": []}}}, [], id="an empty list"),
    ],
)
def test_templates_and_their_replicas(group: str, kind: str, spec: Json, expected: list[object]) -> None:
    manifest = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    assert templates(manifest, group, kind) == expected


def test_objects_inside_an_object_have_kinds_of_their_own() -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": template()},
    }
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"template": template()}}
    pod = {"apiVersion": "v1", "kind": "Pod", **template()}
    held = parts({"spec": {"manifests": [deployment, settings, pod]}}, "work.example.com", "ManifestWork")
    assert [(str(part.path), part.group, part.kind, part.replicas) for part in held] == [
        ("spec.manifests[0].spec.template.spec", "apps", "Deployment", 1),
        ("spec.manifests[2].spec", "", "Pod", None),
    ]


def test_the_status_and_the_metadata_of_an_object_describe_no_pods() -> None:
    held = {"template": template(), "topologySpreadConstraints": [CONSTRAINT]}
    assert parts({"metadata": held, "status": held, "spec": {}}) == []


IN_APP = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PLACEHOLDERS = "it has placeholders"


@pytest.mark.parametrize(
    ("spec", "labels", "reason"),
    [
        pytest.param(
            {"topologySpreadConstraints": [CONSTRAINT, constraint(key="{{ .Values.key }}")]},
            {},
            f"spec.topologySpreadConstraints[1].topologyKey: {PLACEHOLDERS}",
            id="Helm",
        ),
        pytest.param(
            {"topologySpreadConstraints": "${schema.spec.constraints}"},
            {},
            f"spec.topologySpreadConstraints: {PLACEHOLDERS}",
            id="all constraints",
        ),
        pytest.param({"nodeName": "$(NODE)"}, {}, f"spec.nodeName: {PLACEHOLDERS}", id="node"),
        pytest.param(
            {"affinity": {"podAffinity": {REQUIRED: [IN_APP, {**IN_APP, "topologyKey": "${KEY}"}]}}},
            {},
            f"spec.affinity.podAffinity.{REQUIRED}[1].topologyKey: {PLACEHOLDERS}",
            id="affinity",
        ),
        pytest.param(
            {"affinity": {"nodeAffinity": {REQUIRED: "${NODES}"}}},
            {},
            f"spec.affinity.nodeAffinity.{REQUIRED}: {PLACEHOLDERS}",
            id="node affinity",
        ),
        pytest.param({}, {"version": "${VERSION}"}, f"metadata.labels.version: {PLACEHOLDERS}", id="a label"),
        pytest.param({}, {"${KEY}": "a"}, f"metadata.labels[${{KEY}}]: {PLACEHOLDERS}", id="the key of a label"),
        pytest.param({}, "${LABELS}", f"metadata.labels: {PLACEHOLDERS}", id="all labels"),
        pytest.param({"affinity": "required"}, {}, "spec.affinity: expected object, got string", id="another type"),
        pytest.param(
            {"topologySpreadConstraints": [CONSTRAINT, {**CONSTRAINT, "maxSkew": "0"}]},
            {},
            "spec.topologySpreadConstraints[1].maxSkew: expected integer, got string",
            id="another type in a constraint",
        ),
    ],
)
def test_a_template_that_cannot_be_evaluated_has_a_reason_and_its_labels_if_they_can_be_read(
    spec: Json, labels: Any, reason: str
) -> None:
    pods = template(**spec)
    pods["metadata"]["labels"] = {"app": "web", **labels} if isinstance(labels, dict) else labels
    (held,) = parts({"spec": {"template": pods}})
    assert str(held.unevaluated) == f"spec.template.{reason}"
    readable = {} if labels else {"app": "web"}
    assert held.template == PodTemplateSpec(metadata=ObjectMeta(labels=readable))


@pytest.mark.parametrize(
    ("constraints", "reason"),
    [
        (
            [CONSTRAINT, {"topologyKey": "zone"}],
            "[1]: it leaves out maxSkew and whenUnsatisfiable, which a controller may set",
        ),
        (
            [CONSTRAINT, None],
            "[1]: it leaves out maxSkew and topologyKey and whenUnsatisfiable, which a controller may set",
        ),
        ([CONSTRAINT, 1], "[1]: expected object, got integer"),
        ("${schema.spec.constraints}", f": {PLACEHOLDERS}"),
    ],
)
def test_constraints_without_a_template_that_cannot_be_evaluated_have_a_reason(constraints: Any, reason: str) -> None:
    (held,) = parts({"spec": {"topologySpreadConstraints": constraints}})
    assert str(held.unevaluated) == f"spec.topologySpreadConstraints{reason}"
    assert held.template == PodTemplateSpec()


@pytest.mark.parametrize(
    "field",
    [
        {"nodeSelector": {"zone": "${ZONE}"}},
        {"hostNetwork": "${HOST_NETWORK}"},
        {"tolerations": "{{ .Values.tolerations }}"},
    ],
    ids=str,
)
@pytest.mark.parametrize(("group", "kind"), [("argoproj.io", "Rollout"), ("example.com", "Cluster")])
def test_placeholders_in_what_is_not_evaluated_do_not_matter(field: Json, group: str, kind: str) -> None:
    manifest = {"spec": {"template": template(topologySpreadConstraints=[CONSTRAINT], **field)}}
    assert templates(manifest, group, kind)[0][2]


def test_a_template_of_a_known_kind_is_held_to_the_types_of_the_api() -> None:
    manifest = {"spec": {"template": template(topologySpreadConstraints=[{**CONSTRAINT, "maxSkew": "1"}])}}
    with pytest.raises(MalformedFieldError) as caught:
        parts(manifest, "argoproj.io", "Rollout")
    assert str(caught.value) == (
        "spec.template.spec.topologySpreadConstraints[0].maxSkew: expected integer, got string"
    )


def test_labels_of_one_revision_of_a_rollout_are_known() -> None:
    strategy = {"canary": {"canaryMetadata": {"labels": {"role": "canary"}}, "stableMetadata": {"labels": {"a": "b"}}}}
    (part,) = parts({"spec": {"strategy": strategy, "template": template()}}, "argoproj.io", "Rollout")
    assert part.more_labels == ("a", "role")


def test_fields_that_the_api_does_not_have_are_those_of_a_controller() -> None:
    constraints = [CONSTRAINT, {**CONSTRAINT, "additionalLabelSelectors": "OnResource"}]
    (part,) = parts({"spec": {"topologySpreadConstraints": constraints}}, "monitoring.coreos.com", "Prometheus")
    assert part.extended == (1,)
