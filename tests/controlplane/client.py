"""A small, fast HTTP client for one apiserver: JSON in, JSON out, one pool of connections."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

import urllib3

from tests.controlplane.certificates import KeyPair

Object = Mapping[str, Any]
T = TypeVar("T")
R = TypeVar("R")

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
USER_AGENT = "tests"
NOT_FOUND = 404
CONFLICT = 409
INVALID = 422
_ERRORS = 400
_CONNECTIONS = 8
_WARNING = re.compile(r'\d+ \S+ "(.*)"')


class ApiError(RuntimeError):
    """The apiserver answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        """Keep the HTTP status and the message of the apiserver."""
        super().__init__(f"{status}: {message}")
        self.status = status


class Answer(NamedTuple):
    """The answer to a request, refused or not; ``warnings`` are the texts that kubectl prints."""

    status: int
    body: dict[str, Any]
    warnings: tuple[str, ...]

    @property
    def refused(self) -> bool:
        """Whether the apiserver answered with an error."""
        return self.status >= _ERRORS


class _Resource(NamedTuple):
    plural: str
    namespaced: bool


class ApiClient:
    """Requests to one apiserver with one client certificate; may be used from several threads."""

    def __init__(self, server: str, authority: Path, pair: KeyPair) -> None:
        """Prepare requests to ``server``; nothing is sent yet."""
        self.server = server
        self._resources: dict[tuple[str, str], _Resource] = {}
        self._pool = urllib3.PoolManager(
            maxsize=_CONNECTIONS,
            ca_certs=str(authority),
            cert_file=str(pair.certificate),
            key_file=str(pair.key),
            headers={"User-Agent": USER_AGENT},
            retries=False,
            timeout=30,
        )

    def request(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> Any:
        """Send one request and return the decoded answer.

        Raises:
            ApiError: The apiserver refused.
            urllib3.exceptions.HTTPError: It could not be reached.
        """
        answer = self._send(method, path, body, content_type)
        if answer.status >= _ERRORS:
            raise ApiError(answer.status, answer.data.decode(errors="replace"))
        return answer.json()

    def answer(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> Answer:
        """Send one request and return the answer, also where the apiserver refuses.

        Raises:
            urllib3.exceptions.HTTPError: It could not be reached.
        """
        answer = self._send(method, path, body, content_type)
        warnings = (_WARNING.fullmatch(warning) for warning in answer.headers.getlist("Warning"))
        texts = (re.sub(r"\\(.)", r"\1", warning[1]) for warning in warnings if warning)
        return Answer(answer.status, answer.json(), tuple(texts))

    def get(self, path: str, **query: str) -> Any:
        """Read one path, such as ``/api/v1/pods``."""
        return self.request("GET", f"{path}?{urlencode(query)}" if query else path)

    def raw(self, path: str, accept: str) -> bytes:
        """Return the bytes of one path in one content type.

        Raises:
            ApiError: The apiserver refused.
        """
        answer = self._pool.request("GET", f"{self.server}{path}", headers={**self._pool.headers, "Accept": accept})
        if answer.status >= _ERRORS:
            raise ApiError(answer.status, answer.data.decode(errors="replace"))
        return answer.data

    def patch(self, path: str, body: Object, content_type: str = MERGE_PATCH) -> Any:
        """Patch one object."""
        return self.request("PATCH", path, body, content_type)

    def create(self, manifest: Object, **query: str) -> dict[str, Any]:
        """Create one object of any kind and return it as stored; with ``dryRun="All"`` it is not stored."""
        path = self.collection(manifest)
        created: dict[str, Any] = self.request("POST", f"{path}?{urlencode(query)}" if query else path, manifest)
        return created

    def create_all(self, manifests: Iterable[Object]) -> list[dict[str, Any]]:
        """Create many objects, several at a time; return them as stored, in the same order."""
        return parallel(self.create, manifests)

    def ready(self) -> bool:
        """Tell whether the apiserver is ready."""
        try:
            answer = self._pool.request("GET", f"{self.server}/readyz")
        except urllib3.exceptions.HTTPError:
            return False
        return answer.status < _ERRORS

    def close(self) -> None:
        """Close all connections."""
        self._pool.clear()

    def _send(self, method: str, path: str, body: object, content_type: str) -> urllib3.BaseHTTPResponse:
        return self._pool.request(
            method,
            f"{self.server}{path}",
            body=None if body is None else json.dumps(body).encode(),
            headers={**self._pool.headers, "Content-Type": content_type, "Accept": "application/json"},
        )

    def collection(self, manifest: Object) -> str:
        """Return the path to which an object of any kind is posted."""
        resource = self._resource(manifest["apiVersion"], manifest["kind"])
        parts = [_group_path(manifest["apiVersion"]), resource.plural]
        if resource.namespaced:
            namespace = manifest["metadata"].get("namespace", "default")
            parts[1:1] = ["namespaces", namespace]
        return "/".join(parts)

    def _resource(self, api_version: str, kind: str) -> _Resource:
        """Return the resource of a kind, which is requested once for each group and version."""
        if (api_version, kind) not in self._resources:
            for listed in self.get(_group_path(api_version))["resources"]:
                if "/" not in listed["name"]:
                    resource = _Resource(listed["name"], listed["namespaced"])
                    self._resources[api_version, listed["kind"]] = resource
        return self._resources[api_version, kind]


def parallel(function: Callable[[T], R], arguments: Iterable[T]) -> list[R]:
    """Call ``function`` for every item, as many at a time as a client has connections."""
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        return list(pool.map(function, arguments))


def _group_path(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
