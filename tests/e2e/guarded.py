"""A real cluster whose policies refuse what the rules find, and objects that were stored before the policies."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from tests.builders import Json, constraint, requirement, selector
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import pod, pod_spec, workload
from tests.e2e.spread import Spread
from tests.e2e.workloads import label, pods, wait_for_rollout

EARLY: Final = "early"
"""The namespace of the objects that were stored before the policies."""
DENY: Final = "--action=deny"
ABSENT: Final = constraint(match=["absent"])
"""A constraint of which SPR107 says that it lists a label that the pods do not have."""
KEPT: Final = "example.com/kept"
"""A finalizer."""
_DENIED: Final = "denied request: "
_DRY_RUN: Final = "dryRun=All"


def start(directory: Path) -> ControlPlane:
    """Start a control plane whose controllers have service accounts of their own, with the objects of before."""
    cluster = ControlPlane.start(directory, kubelet=True, accounts=True)
    try:
        cluster.add_nodes()
        cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": EARLY}})
        cluster.apply(
            [
                *(early(kind, kind.lower()) for kind in ("Deployment", "StatefulSet", "DaemonSet")),
                early("ReplicaSet", "replicaset") | {"metadata": {"name": "replicaset", "namespace": EARLY}},
                job("job", suspend=True),
                cron_job("cronjob"),
            ]
        )
        for kind in ("deployment", "statefulset", "daemonset"):
            wait_for_rollout(cluster, f"{kind}/{kind}", EARLY)
        _store_pods(cluster)
    except BaseException:
        cluster.stop()
        raise
    return cluster


def early(kind: str, name: str, replicas: int = 2) -> Json:
    """Return a workload that a policy refuses to create."""
    return workload(kind, name, [ABSENT], replicas=replicas, labels={"app": name}, namespace=EARLY)


def job(name: str, **spec: object) -> Json:
    """Return a Job that a policy refuses to create."""
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec([ABSENT], restartPolicy="Never")}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": EARLY},
        "spec": {"template": template, **spec},
    }


def cron_job(name: str) -> Json:
    """Return a CronJob that a policy refuses to create, due each minute of one day in February."""
    jobs = {"spec": job(name)["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": EARLY},
        "spec": {"schedule": "* * * * *", "suspend": True, "jobTemplate": jobs},
    }


def _store_pods(cluster: ControlPlane) -> None:
    """Store merged pods, pods whose label changed after the merge, and pods without the label that is listed."""
    for name in ("merged", "stale", "stale-deleted", "stale-relabelled"):
        finalizers = {"finalizers": [KEPT]} if name == "stale-deleted" else {}
        labels = {"app": "loose", "rev": "r1"}
        keys = [constraint(match=["rev"], hard=False)]
        cluster.api.create(pod(name, keys, labels=labels, namespace=EARLY, metadata=finalizers))
    names = {"merged", "stale", "stale-deleted", "stale-relabelled"}

    def running() -> bool:
        return names <= {
            each["metadata"]["name"] for each in pods(cluster, EARLY) if each["status"]["phase"] == "Running"
        }

    cluster.wait_for(running, what="the pods of before run")
    for name in names - {"merged"}:
        label(cluster, EARLY, name, "rev=r2")
    keys = [constraint(match=["statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"], hard=False)]
    labels = {"app": "adopted", "statefulset.kubernetes.io/pod-name": "other-7", "apps.kubernetes.io/pod-index": "7"}
    cluster.api.create(pod("adopted-0", keys, labels=labels, namespace=EARLY))
    authored = selector({"app": "loose"}, requirement("job-name", "In", "web"))
    keys = [constraint(match=["job-name"], selects=authored, hard=False)]
    cluster.api.create(pod("authored", keys, labels={"app": "loose"}, namespace=EARLY))


def printed(spread: Spread, *arguments: str) -> list[Json]:
    """Return the documents that ``kubectl spread policy`` prints."""
    answer = spread("policy", *arguments)
    assert (answer.status, answer.stderr) == (0, "")
    return list(yaml.safe_load_all(answer.stdout))


def install(cluster: ControlPlane, documents: Sequence[Json]) -> None:
    """Apply policies and bindings with kubectl, and return once they refuse requests of each kind."""
    cluster.apply(documents)
    for resource, send in probes(cluster).items():
        cluster.wait_for(partial(refusal, send), 60, f"the policy on {resource} is in effect")


def probes(cluster: ControlPlane) -> dict[str, Callable[[], Any]]:
    """Return requests that the policies must refuse, by the resource; nothing is stored."""
    template = {"metadata": {"labels": {"app": "probe"}}, "spec": pod_spec([ABSENT])}
    manifests = {
        "pods": pod("probe", [ABSENT], namespace=EARLY),
        "deployments": early("Deployment", "probe"),
        "cronjobs": cron_job("probe"),
        "podtemplates": {
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": {"name": "probe", "namespace": EARLY},
            "template": template,
        },
    }
    requests: dict[str, Callable[[], Any]] = {
        resource: partial(try_create, cluster, manifest) for resource, manifest in manifests.items()
    }
    requests["labels of pods"] = partial(try_label, cluster, "merged", {"rev": "r2"})
    return requests


def try_create(cluster: ControlPlane, manifest: Json) -> Any:
    """Create an object, without storing it."""
    return cluster.api.create(manifest, dryRun="All")


def try_label(cluster: ControlPlane, name: str, labels: Json, subresource: str = "") -> Any:
    """Set or remove labels of a pod of before, without storing them."""
    path = f"/api/v1/namespaces/{EARLY}/pods/{name}{subresource}?{_DRY_RUN}"
    return cluster.api.patch(path, {"metadata": {"labels": labels}})


def refusal(send: Callable[[], Any]) -> str:
    """Return the message with which a policy refuses a request; empty if the request is accepted."""
    try:
        send()
    except ApiError as error:
        message: str = json.loads(str(error).partition(": ")[2])["message"]
        assert _DENIED in message
        return message.partition(_DENIED)[2]
    return ""
