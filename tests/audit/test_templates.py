"""Templates without pods: does the API server accept them, and then their pods?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.audits import as_json, audit, deployment
from tests.builders import Json, constraint, pod_json, selector

R1 = {"app": "web", "rev": "r1"}
OVERLAP = constraint(match=["rev"], selects=selector({"rev": "r1"}))


def refused(*objects: Json, minor: int = 37) -> list[tuple[str, list[str], Any]]:
    findings = as_json(audit(*objects, minor=minor))["findings"]
    return [
        (finding["path"], finding["pods"], finding["name"])
        for finding in findings
        if finding["code"] in ("SPR201", "SPR202")
    ]


def cron_job(template_constraint: Json) -> Json:
    template = deployment(labels=R1, constraints=[template_constraint])["spec"]
    metadata = {"name": "web", "namespace": "default"}
    spec = {"jobTemplate": {"spec": template}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}


def pod_template(template_constraint: Json) -> Json:
    workload = deployment(labels=R1, constraints=[template_constraint])
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": workload["metadata"],
        "template": workload["spec"]["template"],
    }


TEMPLATE_PATHS = [
    pytest.param(deployment(labels=R1, constraints=[OVERLAP]), "spec.template.spec", id="Deployment"),
    pytest.param(cron_job(OVERLAP), "spec.jobTemplate.spec.template.spec", id="CronJob"),
    pytest.param(pod_template(OVERLAP), "template.spec", id="PodTemplate"),
]


@pytest.mark.parametrize(("workload", "path"), TEMPLATE_PATHS)
def test_a_template_may_be_accepted_while_all_of_its_pods_are_refused(workload: Json, path: str) -> None:
    """This holds from 1.34 on; up to 1.33 the template itself is refused."""
    here = f"{path}.topologySpreadConstraints[0]"
    assert refused(workload) == [(here, [], "pods-refused")]
    assert refused(workload, minor=33) == [(here, [], "refused")]


def test_an_api_server_before_1_34_refuses_only_the_pods_of_a_stateful_set() -> None:
    """It does not validate the pod spec in a StatefulSet."""
    here = "spec.template.spec.topologySpreadConstraints[0]"
    workload = deployment(kind="StatefulSet", constraints=[constraint(max_skew=0)])
    assert refused(workload, minor=33) == [(here, [], "pods-refused")]
    assert refused(workload, minor=34) == [(here, [], "refused")]


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("Deployment", "pod-template-hash"),
        ("StatefulSet", "apps.kubernetes.io/pod-index"),
        ("StatefulSet", "controller-revision-hash"),
        ("DaemonSet", "pod-template-generation"),
    ],
)
def test_pods_are_presumed_to_have_the_labels_of_their_controller(kind: str, key: str) -> None:
    """A duplicate key is refused only where the pods have the label."""
    twice = constraint(match=[key, key])
    assert refused(deployment(kind=kind, constraints=[twice])) != []
    assert refused(deployment(kind=kind, constraints=[constraint(match=["nope", "nope"])])) == []


@pytest.mark.parametrize(
    ("name", "fields", "codes"),
    [
        pytest.param("web", {}, [], id="own name"),
        pytest.param("other", {}, ["SPR206"], id="another name"),
        pytest.param("other", {"manualSelector": True}, [], id="selector by hand"),
    ],
)
def test_pods_have_the_name_of_their_job(name: str, fields: Json, codes: list[str]) -> None:
    """The API server writes it into the template, unless the author chose the selector of the Job."""
    spec = deployment(constraints=[constraint(selects=selector({"job-name": "web"}))])["spec"]
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**spec, **fields},
    }
    assert [finding["code"] for finding in as_json(audit(job))["findings"]] == codes


def test_a_template_is_evaluated_in_addition_to_pods_of_an_older_revision() -> None:
    """By its old pods alone, a rollout that gets no new pods looks healthy."""
    workload = deployment(labels=R1, constraints=[OVERLAP])
    pod = pod_json(labels=R1, constraints=[constraint()], owner="Deployment/web")
    assert refused(workload, pod) == [("spec.template.spec.topologySpreadConstraints[0]", [], "pods-refused")]
    assert as_json(audit(workload, pod))["summary"]["templates"] == 1


def test_a_fault_of_both_pods_and_template_is_one_finding() -> None:
    keyed = constraint(match=["nope"])
    report = as_json(audit(deployment(constraints=[keyed]), pod_json(constraints=[keyed], owner="Deployment/web")))
    assert [(finding["code"], finding["path"]) for finding in report["findings"]] == [
        ("SPR107", "spec.topologySpreadConstraints[0]")
    ]


def test_an_owned_template_is_evaluated_through_its_owner() -> None:
    child = deployment("web-1", kind="ReplicaSet", owner="Deployment/web", labels=R1, constraints=[OVERLAP])
    assert refused(child) == []


def test_pods_that_are_refused_for_one_reason_are_one_finding() -> None:
    pods = [
        pod_json(f"p{index}", labels=R1, constraints=[OVERLAP], owner="Deployment/web", stored=False)
        for index in (2, 1)
    ]
    assert refused(*pods) == [("spec.topologySpreadConstraints[0]", ["p1", "p2"], "refused")]


def test_stored_pods_are_never_refused() -> None:
    assert refused(pod_json(labels=R1, constraints=[OVERLAP])) == []
