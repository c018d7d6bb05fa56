"""Documents are objects that are read, objects of other kinds, objects of misspelt kinds, or no objects."""

from __future__ import annotations

import json

import pytest

from kubectl_spread.kube.api.workloads import Deployment
from kubectl_spread.sources.decode.json_objects import MalformedFieldError
from kubectl_spread.sources.files import rawobjects

# Source: the OpenAPI of kubernetes v1.37.1, and kinds that older servers or OpenShift have.
REAL = {
    "v1": "Binding ComponentStatus Endpoints LimitRange "
    "PodStatusResult RangeAllocation ReplicationControllerList "
    "ResourceQuota Secret ServiceAccount Template DeploymentConfig Project",
    "admissionregistration.k8s.io/v1": "ValidatingAdmissionPolicy MutatingWebhookConfiguration",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition ConversionReview",
    "apiregistration.k8s.io/v1": "APIService",
    "apps/v1": "ControllerRevision ControllerRevisionList DeploymentList ReplicaSetList",
    "apps/v1beta2": "Scale",
    "authorization.k8s.io/v1": "SelfSubjectAccessReview",
    "autoscaling/v2": "Scale",
    "certificates.k8s.io/v1": "CertificateSigningRequest PodCertificateRequest ClusterTrustBundle",
    "coordination.k8s.io/v1": "Lease LeaseCandidate",
    "discovery.k8s.io/v1": "EndpointSlice",
    "events.k8s.io/v1": "Event",
    "extensions/v1beta1": "Ingress NetworkPolicy PodSecurityPolicy",
    "flowcontrol.apiserver.k8s.io/v1": "FlowSchema PriorityLevelConfiguration",
    "networking.k8s.io/v1": "Ingress IngressClass IPAddress NetworkPolicy ServiceCIDR",
    "node.k8s.io/v1": "RuntimeClass",
    "policy/v1": "Eviction PodSecurityPolicy",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "resource.k8s.io/v1": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice PodSchedulingContext",
    "scheduling.k8s.io/v1": "PodGroup Workload",
    "storage.k8s.io/v1": "CSINode CSIStorageCapacity VolumeAttachment",
    "metrics.k8s.io/v1beta1": "NodeMetrics PodMetrics",
    "serving.knative.dev/v1": "Service",
    "kustomize.config.k8s.io/v1beta1": "Kustomization Component",
    "cluster.x-k8s.io/v1beta1": "Cluster MachineDeployment",
    "example.com/v1": "Deployment Deploymnet Pod Job",
}


@pytest.mark.parametrize(
    ("api_version", "kind"), [(api_version, kind) for api_version, words in REAL.items() for kind in words.split()]
)
def test_kinds_that_exist_and_are_not_read_have_no_type(api_version: str, kind: str) -> None:
    assert rawobjects.type_of(api_version, kind) is None


def test_a_kind_that_is_read_has_its_type() -> None:
    assert rawobjects.type_of("apps/v1", "Deployment") is Deployment


@pytest.mark.parametrize(
    ("api_version", "kind", "problem"),
    [
        ("v1", "Deployment", 'apiVersion: "Deployment" is not a kind of v1; did you mean "apiVersion: apps/v1"?'),
        (
            "extensions/v1beta1",
            "Deployment",
            'apiVersion: "Deployment" is not a kind of extensions/v1beta1; did you mean "apiVersion: apps/v1"?',
        ),
        (
            "app/v1",
            "Deployment",
            'apiVersion: "Deployment" is not a kind of app/v1; did you mean "apiVersion: apps/v1"?',
        ),
        ("apps/v1", "Pod", 'apiVersion: "Pod" is not a kind of apps/v1; did you mean "apiVersion: v1"?'),
        ("apps/v1", "CronJob", 'apiVersion: "CronJob" is not a kind of apps/v1; did you mean "apiVersion: batch/v1"?'),
        ("apps/v1", "Deploymnet", 'kind: "Deploymnet" is not a kind of apps/v1; did you mean "kind: Deployment"?'),
        ("apps/v1", "deployment", 'kind: "deployment" is not a kind of apps/v1; did you mean "kind: Deployment"?'),
        ("apps/v1", "StatefullSet", 'kind: "StatefullSet" is not a kind of apps/v1; did you mean "kind: StatefulSet"?'),
        ("apps/v1", "Deploy", 'kind: "Deploy" is not a kind of apps/v1'),
        ("batch/v1", "Rollout", 'kind: "Rollout" is not a kind of batch/v1'),
        ("v1", "Pods", 'kind: "Pods" is not a kind of v1; did you mean "kind: Pod"?'),
        ("v1", "list", 'kind: "list" is not a kind of v1; did you mean "kind: List"?'),
        ("v1", "Cronjob", 'kind: "Cronjob" is not a kind of v1; did you mean "kind: CronJob" of batch/v1?'),
    ],
)
def test_kinds_that_do_not_exist_are_a_fault_with_the_nearest_kind(api_version: str, kind: str, problem: str) -> None:
    with pytest.raises(MalformedFieldError) as raised:
        rawobjects.type_of(api_version, kind)
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    ("document", "is_object"),
    [
        pytest.param({"apiVersion": "v1", "kind": "Anything"}, True, id="apiVersion and kind"),
        pytest.param({"apiVersion": "apps/v1", "metadata": {}, "spec": {}}, True, id="a manifest without kind"),
        pytest.param({"kind": "Nonsense", "metadata": {}}, True, id="a manifest without apiVersion"),
        pytest.param({"kind": "Deployment", "spec": {}}, True, id="a kind that is read"),
        pytest.param({"kind": "PodList", "items": []}, True, id="a list of a kind that is read"),
        pytest.param({"apiVersion": "v2", "name": "chart", "version": "1"}, False, id="Chart.yaml"),
        pytest.param({"apiVersion": 1, "datasources": []}, False, id="provisioning of Grafana"),
        pytest.param({"kind": "pipeline", "type": "docker"}, False, id=".drone.yml"),
        pytest.param({"on": "push", "jobs": {}}, False, id="a workflow"),
        pytest.param({"metadata": {"name": "x"}, "spec": {}}, False, id="metadata alone"),
        pytest.param({"apiVersion": None, "kind": "", "metadata": {}}, False, id="a header of null and an empty text"),
        pytest.param({"kind": 10**400, "spec": {}}, False, id="a kind that is a number too large for any type"),
        pytest.param([], False, id="a list"),
        pytest.param("text", False, id="a text"),
    ],
)
def test_documents_meant_as_objects_have_a_header_or_a_kind_that_is_read(document: object, is_object: bool) -> None:
    assert rawobjects.is_meant_as_object(json.dumps(document).encode()) is is_object


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        pytest.param(
            {"status": "Failure", "code": 403, "reason": "Forbidden", "message": "pods is forbidden"},
            "this is an API error, not an object: 403 Forbidden: pods is forbidden",
            id="an error",
        ),
        pytest.param({}, "this is an API error, not an object: no code: no message", id="nothing but a kind"),
        pytest.param({"status": "Success"}, "this is an answer of the API server, not an object", id="no error"),
    ],
)
def test_answers_of_the_api_are_not_objects(status: dict[str, object], problem: str) -> None:
    with pytest.raises(MalformedFieldError) as raised:
        rawobjects.confirm_object("v1", "Status", json.dumps(status).encode())
    assert raised.value.problem == problem


def test_a_status_of_another_group_is_an_object() -> None:
    rawobjects.confirm_object("example.com/v1", "Status", b"{}")
