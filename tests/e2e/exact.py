"""A fresh check of the state that a cluster had at certain resourceVersions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.errors import NotFoundError
from kubectl_spread.run import schedulers
from kubectl_spread.run.live import LiveRun
from kubectl_spread.run.options import CheckOptions
from kubectl_spread.run.requests import Requests
from kubectl_spread.run.run import CheckRun
from kubectl_spread.sources.apiserver import responses
from kubectl_spread.sources.apiserver.cluster import LiveCluster, ServerVersion
from kubectl_spread.sources.apiserver.transport import Response
from kubectl_spread.sources.decode.resources import (
    CONFIG_MAPS,
    EVENTS,
    NODE_CLAIMS,
    NODE_CLASSES,
    NODE_POOLS,
    Resource,
)

_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_UNREAD: Final = (EVENTS, NODE_POOLS, NODE_CLAIMS, NODE_CLASSES)
"""What the monitor does not list."""


class _MonitorRequests(Requests):
    """The requests of a check that leaves unknown what the monitor leaves unknown."""

    def add_storage_classes(self, snapshot: Snapshot) -> None:
        """Read nothing, as the monitor does."""


class ExactCluster(LiveCluster):
    """A cluster whose lists are those of certain resourceVersions, without what the monitor does not read.

    Attributes:
        versions: Maps the plural name of a resource to a version.
    """

    versions: Mapping[str, str]
    _own_version: ServerVersion | None = None
    _own_uid: str | None = None
    _own_gates: dict[str, bool] | None = None

    def __init__(self, *arguments: Any) -> None:
        """Take the arguments of ``LiveCluster``."""
        super().__init__(*arguments)
        self.versions = {}
        self._lists: dict[str, dict[str, bytes]] = {}

    def check(self, versions: Mapping[str, str], options: CheckOptions) -> CheckRun:
        """Return the result of a fresh check."""
        self.versions = versions
        requests = _MonitorRequests(self, options, options.scope(self.namespace), schedulers.profiles(options))
        return LiveRun(options, self, requests).collect()

    def version(self) -> ServerVersion:
        """Return the version of the API server, which is the same for all checks."""
        if self._own_version is None:
            self._own_version = super().version()
        return self._own_version

    def uid(self) -> str:
        """Return the UID of the cluster."""
        if self._own_uid is None:
            self._own_uid = super().uid()
        return self._own_uid

    def feature_gates(self) -> dict[str, bool] | None:
        """Return the feature gates, which are the same for all checks."""
        if self._own_gates is None:
            self._own_gates = super().feature_gates()
        return self._own_gates

    def fold(self, resource: Resource[Any], begin: Callable[[], Any], *arguments: Any, **named: Any) -> Any:
        """Return nothing for what the monitor does not list."""
        return begin() if resource in _UNREAD else super().fold(resource, begin, *arguments, **named)

    def get(self, resource: Resource[Any], namespace: str, name: str) -> Any:
        """Find no ConfigMap, which the monitor does not read.

        Raises:
            NotFoundError: It is a ConfigMap.
        """
        if resource is CONFIG_MAPS:
            raise NotFoundError(name)
        return super().get(resource, namespace, name)

    def _request(self, resource: Resource[Any], namespace: str, field_selector: str) -> Callable[[str], Response]:
        query = {"resourceVersion": self.versions[resource.plural], "resourceVersionMatch": "Exact"}
        if field_selector:
            query["fieldSelector"] = field_selector
        path = resource.path(namespace)

        def request(_token: str) -> Response:
            # The state of a version never changes, and most resources have the version of the last check.
            if self._lists.get(path, {}).keys() != {query["resourceVersion"]}:
                response = self._transport.get(path, query, _PROTOBUF)
                responses.check(response, verb="list", resource=resource.plural)
                self._lists[path] = {query["resourceVersion"]: bytes(response.body)}
            return Response(HTTPStatus.OK, _PROTOBUF, bytearray(self._lists[path][query["resourceVersion"]]))

        return request
