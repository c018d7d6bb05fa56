"""Random changes of a real cluster, for tests of what follows it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from random import Random
from typing import Any, Final, Self

import urllib3

from tests.builders import HOSTNAME, ZONE, Json, affinity, constraint, requirement, selector, term
from tests.controlplane import nodes
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import pod, workload
from tests.e2e.volumes import bound_claim, claim_templates

NAMESPACES: Final = ("first", "second", "third")
_ZONES: Final = ("a", "b", "c")
_NODES: Final = 7
_APPS: Final = ("web", "api", "db")
_KINDS: Final = {"web": "Deployment", "api": "Deployment", "db": "StatefulSet", "agent": "DaemonSet"}
"""Maps the name of a workload to its kind."""
_EXPECTED: Final = frozenset(
    {
        HTTPStatus.FORBIDDEN,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.CONFLICT,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)
"""Statuses of changes that the state of the cluster does not allow, such as of an object that is gone."""
_LARGEST: Final = 8
"""The most replicas of a workload."""


class Churn:
    """Changes objects in three namespaces, and the nodes, until it is stopped.

    Attributes:
        changes: The number of changes that the API server accepted.
    """

    def __init__(self, cluster: ControlPlane, seed: int, *, pause: float) -> None:
        """Prepare; ``pause`` is the average time between two changes, in seconds."""
        self.changes = 0
        self._cluster = cluster
        self._api = cluster.api
        self._random = Random(seed)
        self._pause = pause
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        """Create the first objects, unless an earlier churn of the cluster did, and start to change them."""
        for number in range(_NODES):
            self._attempt(partial(self._put_node, f"n{number}"))
        for namespace in NAMESPACES:
            self._attempt(partial(self._create_namespace, namespace))
            for app in _APPS:
                self._attempt(partial(self._create_workload, namespace, app))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, and raise what made the thread end."""
        self._stopping.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        changes: tuple[tuple[int, Callable[[], Any]], ...] = (
            (12, self._create_pod),
            (10, self._bind),
            (10, self._relabel_pod),
            (10, self._delete_pod),
            (6, self._recreate_pod),
            (4, self._finish_pod),
            (6, self._roll),
            (6, self._scale),
            (3, self._add_workload),
            (2, self._delete_workload),
            (4, self._relabel_node),
            (3, self._cordon),
            (2, self._resize_node),
            (2, self._replace_node),
            (3, self._change_claim),
            (2, self._change_volume),
            (3, self._change_service),
            (1, self._delete_namespace),
            (6, self._restore_namespace),
        )
        functions, weights = [change for _, change in changes], [weight for weight, _ in changes]
        try:
            while not self._stopping.wait(self._random.expovariate(1 / self._pause)):
                self._attempt(self._random.choices(functions, weights)[0])
        except BaseException as error:  # noqa: BLE001 - raised at the end
            self._failure = error

    def _attempt(self, change: Callable[[], Any]) -> None:
        # The apiserver may restart.
        with suppress(urllib3.exceptions.HTTPError):
            try:
                change()
            except ApiError as error:
                if error.status not in _EXPECTED and error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise
            else:
                self.changes += 1

    def _namespace(self) -> str:
        return self._random.choice(NAMESPACES)

    def _pods(self) -> list[Json]:
        namespace = self._namespace()
        listed: list[Json] = self._api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
        return listed

    def _any_pod(self) -> Json:
        """Return a pod of a random namespace.

        Raises:
            ApiError: There is none.
        """
        listed = self._pods()
        if not listed:
            raise ApiError(HTTPStatus.NOT_FOUND, "no pods")
        return self._random.choice(listed)

    def _constraint(self, app: str, key: str) -> Json:
        random = self._random
        selects = random.choice(
            (
                selector({"app": app}),
                selector({"app": app}),
                selector({"app": app, "rev": "r1"}),
                selector({}, requirement("app", "In", *random.sample(_APPS, 2))),
            )
        )
        return constraint(
            key=key,
            hard=random.random() < 0.4,
            max_skew=random.choice((1, 1, 2)),
            selects=selects,
            match=random.choice(([], ["rev"], ["pod-template-hash"])),
            nodeTaintsPolicy=random.choice((None, None, "Honor")),
        )

    def _constraints(self, app: str) -> list[Json]:
        """Return one or two constraints, now and then none."""
        if self._random.random() < 0.15:
            return []
        keys = self._random.sample((ZONE, HOSTNAME), self._random.choice((1, 1, 2)))
        return [self._constraint(app, key) for key in keys]

    def _spec(self) -> Json:
        """Return further fields of the spec of a pod or template."""
        spec: Json = {}
        if self._random.random() < 0.2:
            away = term(selects=selector({"app": self._random.choice(_APPS)}))
            spec["affinity"] = affinity("podAntiAffinity", away)
        if self._random.random() < 0.2:
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "shared"}}]
        return spec

    def _labels(self, app: str) -> dict[str, str]:
        return {"app": app, "rev": self._random.choice(("r1", "r2"))}

    def _create_namespace(self, name: str) -> None:
        self._api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def _delete_namespace(self) -> None:
        """Delete a namespace with everything in it, which takes seconds."""
        self._api.request("DELETE", f"/api/v1/namespaces/{self._namespace()}")

    def _restore_namespace(self) -> None:
        """Create a namespace that is gone, with its first workloads."""
        name = self._namespace()
        self._create_namespace(name)
        for app in _APPS:
            self._create_workload(name, app)

    def _create_workload(self, namespace: str, app: str) -> None:
        """Create a workload, whose kind its name decides."""
        replicas = self._random.randint(1, 6)
        labels, constraints = self._labels(app), self._constraints(app)
        kind = _KINDS[app]
        manifest = workload(
            kind, app, constraints, replicas=replicas, labels=labels, namespace=namespace, **self._spec()
        )
        if kind == "StatefulSet":
            manifest["spec"]["volumeClaimTemplates"] = claim_templates("data")
        self._api.create(manifest)

    def _add_workload(self) -> None:
        self._create_workload(self._namespace(), self._random.choice((*_KINDS,)))

    def _path_of_workload(self) -> str:
        app = self._random.choice((*_KINDS,))
        return f"/apis/apps/v1/namespaces/{self._namespace()}/{_KINDS[app].lower()}s/{app}"

    def _delete_workload(self) -> None:
        self._api.request("DELETE", f"{self._path_of_workload()}?propagationPolicy=Background")

    def _roll(self) -> None:
        """Change the labels of a pod template, and sometimes its constraints."""
        path = self._path_of_workload()
        app = path.rpartition("/")[2]
        template: Json = {"metadata": {"labels": self._labels(app)}}
        if self._random.random() < 0.4:
            template["spec"] = {"topologySpreadConstraints": self._constraints(app)}
        self._api.patch(path, {"spec": {"template": template}})

    def _scale(self) -> None:
        self._api.patch(self._path_of_workload(), {"spec": {"replicas": self._random.randint(0, _LARGEST)}})

    def _create_pod(self) -> None:
        """Create a pod without owner; half of them are for the scheduler, the others for ``_bind``."""
        self._create_bare(self._namespace(), f"bare-{self._random.randrange(8)}")

    def _create_bare(self, namespace: str, name: str) -> None:
        app = self._random.choice(_APPS)
        scheduler = self._random.choice(("default-scheduler", "nobody"))
        manifest = pod(
            name,
            self._constraints(app),
            labels=self._labels(app),
            namespace=namespace,
            restartPolicy="Never",
            schedulerName=scheduler,
            **self._spec(),
        )
        self._api.create(manifest)

    def _bind(self) -> None:
        for listed in self._pods():
            if "nodeName" not in listed["spec"] and listed["spec"]["schedulerName"] == "nobody":
                target = {"apiVersion": "v1", "kind": "Node", "name": self._node_name()}
                binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": listed["metadata"]["name"]}}
                self._api.request("POST", f"{_path(listed)}/binding", {**binding, "target": target})

    def _relabel_pod(self) -> None:
        labels = self._random.choice(
            ({"rev": "r1"}, {"rev": "r2"}, {"rev": None}, {"app": self._random.choice(_APPS)}, {"x": "y"})
        )
        self._api.patch(_path(self._any_pod()), {"metadata": {"labels": labels}})

    def _delete_pod(self) -> None:
        path = _path(self._any_pod())
        self._api.request("DELETE", path + self._random.choice(("", "?gracePeriodSeconds=0")))

    def _recreate_pod(self) -> None:
        """Delete a pod without owner, and create another one with its name at once."""
        namespace, name = self._namespace(), f"bare-{self._random.randrange(8)}"
        self._api.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}?gracePeriodSeconds=0")
        self._create_bare(namespace, name)

    def _finish_pod(self) -> None:
        phase = self._random.choice(("Succeeded", "Failed"))
        self._api.patch(f"{_path(self._any_pod())}/status", {"status": {"phase": phase}})

    def _node_name(self) -> str:
        return f"n{self._random.randrange(_NODES)}"

    def _put_node(self, name: str) -> None:
        nodes.add(self._api, [nodes.node(name, self._random.choice(_ZONES), {})], [])

    def _replace_node(self) -> None:
        name = self._node_name()
        self._api.request("DELETE", f"/api/v1/nodes/{name}")
        self._stopping.wait(self._random.random())
        self._put_node(name)

    def _relabel_node(self) -> None:
        zone = self._random.choice((*_ZONES, None))
        self._api.patch(f"/api/v1/nodes/{self._node_name()}", {"metadata": {"labels": {ZONE: zone}}})

    def _cordon(self) -> None:
        cordoned = self._random.random() < 0.4
        self._api.patch(f"/api/v1/nodes/{self._node_name()}", {"spec": {"unschedulable": cordoned}})

    def _resize_node(self) -> None:
        number = self._random.choice(("5", "12", "500"))
        self._api.patch(f"/api/v1/nodes/{self._node_name()}/status", {"status": {"allocatable": {"pods": number}}})

    def _change_service(self) -> None:
        """Create a Service, change its selector, or delete it."""
        namespace, name = self._namespace(), self._random.choice(_APPS)
        path = f"/api/v1/namespaces/{namespace}/services/{name}"
        selecting = self._random.choice(({"app": name, "rev": None}, {"app": name, "rev": "r1"}, None))
        metadata = {"name": name, "namespace": namespace}
        spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
        self._random.choice(
            (
                lambda: self._api.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}),
                lambda: self._api.patch(path, {"spec": {"selector": selecting}}),
                lambda: self._api.request("DELETE", path),
            )
        )()

    def _change_claim(self) -> None:
        """Create a claim with its volume, or delete the claim."""
        namespace = self._namespace()
        name = self._random.choice(("shared", *(f"data-db-{ordinal}" for ordinal in range(3))))
        if self._random.random() < 0.3:
            self._api.request("DELETE", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
            return
        for manifest in bound_claim(name, namespace, labels={ZONE: self._random.choice(_ZONES)}):
            with suppress(ApiError):
                self._api.create(manifest)

    def _change_volume(self) -> None:
        listed = self._api.get("/api/v1/persistentvolumes")["items"]
        for volume in self._random.sample(listed, min(1, len(listed))):
            path = f"/api/v1/persistentvolumes/{volume['metadata']['name']}"
            zone = self._random.choice((*_ZONES, "a__b", None))
            if self._random.random() < 0.2:
                self._api.request("DELETE", path)
            else:
                self._api.patch(path, {"metadata": {"labels": {ZONE: zone}}})


def _path(listed: Json) -> str:
    metadata = listed["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
