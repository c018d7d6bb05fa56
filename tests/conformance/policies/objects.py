"""Random objects with pod templates, and random pods; equal seeds give equal objects."""

from __future__ import annotations

from random import Random
from typing import Final

from tests.builders import HOSTNAME, ZONE, Json
from tests.conformance.cases import KEYS, Generator

NAMESPACE: Final = "default"
"""The namespace of all objects on the API server."""
KINDS: Final = (
    "Pod",
    "Pod",
    "Deployment",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "ReplicationController",
    "PodTemplate",
)
CONTAINERS: Final = {"containers": [{"name": "app", "image": "registry.example/app:1"}]}

_GROUPS: Final = {
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"), "apps/v1"),
    **dict.fromkeys(("Job", "CronJob"), "batch/v1"),
}
_BINDING_KEYS: Final = (ZONE, "topology.kubernetes.io/region")
_JOB_KEYS: Final = ("job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-completion-index")
_CONTROLLER_KEYS: Final = {
    "Deployment": ("pod-template-hash",),
    "ReplicaSet": ("pod-template-hash",),
    "StatefulSet": (
        "controller-revision-hash",
        "apps.kubernetes.io/pod-index",
        "statefulset.kubernetes.io/pod-name",
    ),
    "DaemonSet": ("controller-revision-hash", "pod-template-generation"),
    "Job": _JOB_KEYS,
    "CronJob": _JOB_KEYS,
}
"""Labels that the controllers of a kind set, or the labels that users expect of them."""
_OTHER_KEYS: Final = (
    "apps.kruise.io/cloneset-instance-id",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "rollouts-pod-template-hash",
    "pod-template-hsah",
    "App",
    "example.com/a.b_c-d",
)
_DEPRECATED_KEYS: Final = (
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
)
_ONE_POD_KEYS: Final = {
    "StatefulSet": ("apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name"),
    **dict.fromkeys(("Job", "CronJob"), ("batch.kubernetes.io/job-completion-index",)),
}
"""Labels of which each pod has its own value."""
_TOPOLOGY_KEYS: Final = (ZONE, ZONE, ZONE, HOSTNAME, HOSTNAME, "rack")
_SELECTED: Final = {"example.com/name": "case"}
"""The label by which workloads select their pods; no other selector names it."""
_UNSET: Final = {"key": "example.com/unset", "operator": "DoesNotExist"}
"""A requirement on a label that no pod has."""
_IGNORED: Final = ("SPR107", "SPR206,SPR504", " SPR21 ", "self-mismatch", "spr208", "SPR999", "")


class Objects(Generator):
    """Makes objects of one kind."""

    def __init__(self, random: Random, kind: str) -> None:
        """Draw from ``random``; most objects have few labels, so that selectors select their own pods."""
        super().__init__(random, spoil=0.0, alike=random.random() < 0.8)
        self.kind = kind
        self.hard = 0.6
        self.pod_labels: Json = {}
        self.special_keys = (*_BINDING_KEYS, *_CONTROLLER_KEYS.get(kind, ()) * 3, *_OTHER_KEYS, *KEYS)

    def key(self) -> str:
        return self.random.choice(self.special_keys) if self.chance(0.15) else super().key()

    def labels(self) -> Json:
        labels = super().labels()
        # The API server itself sets the labels of a Job.
        if self.chance(0.15) and self.kind != "Job":
            labels[self.random.choice(self.special_keys)] = self.value()
        return labels

    def keys(self) -> list[str]:
        keys = super().keys()
        return [*keys, self.random.choice(keys)] if keys and self.chance(0.06) else keys

    def selector(self) -> Json:
        """Return a selector, which often selects the pods themselves."""
        if self.pod_labels and self.chance(0.6):
            keys = self.random.sample(sorted(self.pod_labels), self.random.randint(1, len(self.pod_labels)))
            return {"matchLabels": {key: self.pod_labels[key] for key in keys}}
        return super().selector()

    def requirement(self) -> Json:
        """Return a requirement that the pods are as likely to meet as not."""
        requirement = super().requirement()
        if requirement["operator"] == "DoesNotExist" and self.chance(0.7):
            requirement = {"key": self.random.choice(self.special_keys), "operator": "DoesNotExist"}
        return requirement

    def constraint(self) -> Json:
        constraint = super().constraint()
        if self.chance(0.85):
            self._unnamed(constraint)
        if constraint.get("labelSelector") is not None and self.chance(0.1):
            keys = _ONE_POD_KEYS.get(self.kind, ("apps.kruise.io/cloneset-instance-id",))
            constraint["matchLabelKeys"] = [*constraint.get("matchLabelKeys", ()), self.random.choice(keys)]
        return {**constraint, "topologyKey": self._topology_key()}

    def constraints(self) -> list[Json]:
        """Return constraints, or a single hard one that selects the pods, with and without keys."""
        if self.pod_labels and self.chance(0.2):
            self.hard, hard = 1.0, self.hard
            selects = {"labelSelector": {"matchLabels": self.pod_labels}}
            single = {**self.constraint(), **selects, "matchLabelKeys": []}
            self.hard = hard
            return [
                {**single, "matchLabelKeys": [self.random.choice(self.special_keys)]} if self.chance(0.5) else single
            ]
        return super().constraints()

    def term(self) -> Json:
        term = super().term()
        if self.chance(0.85):
            self._unnamed(term)
        if term.get("labelSelector") and self.chance(0.08):
            term["labelSelector"] = {**term["labelSelector"], "matchExpressions": [_UNSET]}
            term["matchLabelKeys"] = [*term.get("matchLabelKeys", ()), _UNSET["key"]]
        return {**term, "topologyKey": self._topology_key()}

    def _topology_key(self) -> str:
        return self.random.choice(_DEPRECATED_KEYS if self.chance(0.06) else _TOPOLOGY_KEYS)

    def _unnamed(self, term: Json) -> None:
        """Remove from matchLabelKeys the keys that the selector names, since kube-apiserver may refuse them."""
        selector = term.get("labelSelector")
        if selector is None:
            term.pop("matchLabelKeys", None)
            term.pop("mismatchLabelKeys", None)
            return
        names = {*selector.get("matchLabels", ()), *(entry["key"] for entry in selector.get("matchExpressions", ()))}
        if self.chance(0.5):
            names &= {*self.pod_labels, *_CONTROLLER_KEYS.get(self.kind, ())}
        for field in ("matchLabelKeys", "mismatchLabelKeys"):
            if field in term:
                term[field] = [key for key in term[field] if key not in names]

    def object(self) -> Json:
        """Return an object, which may have a controller or an annotation that silences rules."""
        metadata = {
            "name": "case",
            "namespace": NAMESPACE,
            **self.fields(
                annotations=(0.06, lambda: {"kubectl-spread/ignore": self.random.choice(_IGNORED)}),
                ownerReferences=(0.06, lambda: [self.owner()]),
            ),
        }
        return {"apiVersion": _GROUPS.get(self.kind, "v1"), "kind": self.kind, **self.content(metadata)}

    def owner(self) -> Json:
        """Return an owner that is the controller, or a mere owner."""
        owner = {"apiVersion": "example.com/v1", "kind": "App", "name": "owner", "uid": "u"}
        return {**owner, **self.fields(controller=(0.7, lambda: self.chance(0.6)))}

    def content(self, metadata: Json) -> Json:
        """Return the fields of an object except its kind."""
        self.pod_labels = self.labels()
        template = {"metadata": {"labels": self.pod_labels}, "spec": self.pod_spec()}
        match self.kind:
            case "Pod":
                return {"metadata": {**metadata, **template["metadata"]}, "spec": template["spec"]}
            case "PodTemplate":
                return {"metadata": metadata, "template": template}
            case "CronJob":
                job = {"spec": self.job(template)}
                return {"metadata": metadata, "spec": {"schedule": "0 3 * * *", "jobTemplate": job}}
            case "Job":
                return {"metadata": metadata, "spec": self.job(template)}
        template["metadata"]["labels"] = {**self.pod_labels, **_SELECTED}
        return {"metadata": metadata, "spec": {**self.workload_spec(), "template": template}}

    def job(self, template: Json) -> Json:
        """Return the spec of a Job."""
        indexed = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
        return {**(indexed if self.chance(0.6) else {}), "template": template}

    def workload_spec(self) -> Json:
        """Return the spec of a workload, without its template."""
        replicas = {} if self.kind == "DaemonSet" else self.fields(replicas=(0.8, lambda: self.random.randint(0, 3)))
        match self.kind:
            case "ReplicationController":
                return {"selector": _SELECTED, **replicas}
            case "StatefulSet":
                replicas["serviceName"] = "case"
            case "Deployment":
                types = ("Recreate", "RollingUpdate")
                replicas |= self.fields(strategy=(0.4, lambda: {"type": self.random.choice(types)}))
        return {"selector": {"matchLabels": _SELECTED}, **replicas}

    def pod_spec(self) -> Json:
        """Return the spec of a pod with the fields that the rules read."""
        endless = self.kind not in ("Job", "CronJob")
        spec = self.fields(
            topologySpreadConstraints=(0.85, self.constraints),
            affinity=(0.4, self.affinity),
            nodeName=(0.06, lambda: self.random.choice(("n1", "n2"))),
            schedulerName=(0.1, lambda: self.random.choice(("", "default-scheduler", "other", "Other"))),
            restartPolicy=(0.1, self.restart_policy),
        )
        return {**CONTAINERS, **({} if endless else {"restartPolicy": "Never"}), **spec}

    def restart_policy(self) -> str:
        """Return a policy that the API accepts in the kind."""
        match self.kind:
            case "Pod" | "PodTemplate":
                return self.random.choice(("Always", "OnFailure", "Never"))
            case "Job" | "CronJob":
                return self.random.choice(("OnFailure", "Never"))
        return "Always"


def template_of(manifest: Json) -> Json:
    """Return the pod template in an object."""
    template: Json
    match manifest["kind"]:
        case "CronJob":
            template = manifest["spec"]["jobTemplate"]["spec"]["template"]
        case "PodTemplate":
            template = manifest["template"]
        case _:
            template = manifest["spec"]["template"]
    return template


def case(seed: int, index: int) -> Json:
    """Return one object; the same for the same seed and index."""
    random = Random(f"{seed}/policy/{index}")
    return Objects(random, random.choice(KINDS)).object()
