"""A live cluster: lists in pages, single objects, its version and its feature gates."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final, Self, TypeVar

import msgspec

from kubectl_spread.errors import ForbiddenError, NotFoundError, SourceError
from kubectl_spread.kube.api.objects import ALL_NAMESPACES
from kubectl_spread.kube.api.types import IDENTIFYING_NAMESPACE, Message, ObjectMeta, TypeMeta
from kubectl_spread.sources.apiserver import paging, responses
from kubectl_spread.sources.apiserver.responses import ExpiredError
from kubectl_spread.sources.apiserver.transport import Response, Transport
from kubectl_spread.sources.auth import connection, credentials
from kubectl_spread.sources.auth.connection import ConnectionFlags, Settings
from kubectl_spread.sources.decode.resources import NAMESPACES, Page, Resource

T = TypeVar("T", bound=Message)
F = TypeVar("F")

_OBJECTS: Final = "application/vnd.kubernetes.protobuf,application/json"
_JSON: Final = "application/json"
_METADATA_LIST: Final = "PartialObjectMetadataList"
_METADATA: Final = f"application/json;as={_METADATA_LIST};g=meta.k8s.io;v=v1,application/json"
_TEXT: Final = "text/plain"
_DIGITS: Final = re.compile(r"\d{1,9}(?!\d)")
_FULL_VERSION: Final = re.compile(r"v?(\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]*)?)", re.ASCII)
"""``1.37.1``, and what vendors add to it, such as ``-gke.100``."""
_GATE: Final = re.compile(rb'\nkubernetes_feature_enabled\{(?:[^}\n]*,)?\s*name="(\w+)"[^}\n]*\} ([01])\b')


class ServerVersion(msgspec.Struct, frozen=True):
    """The version of the API server.

    Attributes:
        major: The first number of the version.
        minor: The second one.
        emulation_minor: The minor that it emulates; None if it emulates none.
        git_version: The full version, such as ``v1.37.1``.
    """

    major: int
    minor: int
    emulation_minor: int | None
    git_version: str

    @property
    def behaves_as(self) -> tuple[int, int]:
        """The major and the minor that the API server behaves like."""
        return self.major, self.minor if self.emulation_minor is None else min(self.minor, self.emulation_minor)

    @property
    def text(self) -> str:
        """The full version without ``v``; ``1.37`` where the API server does not report the full one."""
        match = _FULL_VERSION.fullmatch(self.git_version)
        return match[1] if match else f"{self.major}.{self.minor}"


class _Version(Message, frozen=True):
    major: str = ""
    minor: str = ""
    emulation_minor: str = ""
    git_version: str = ""


class _Named(Message, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class _Names(TypeMeta, frozen=True):
    items: tuple[_Named, ...] = ()


class LiveCluster:
    """A connection to one API server, which is never written to.

    Attributes:
        namespace: The namespace to use when the user names none.
        context: The kubeconfig context of the connection, or "".
        name: The cluster's name in the kubeconfig; "" if it is not from a kubeconfig.
    """

    def __init__(
        self,
        transport: Transport,
        settings: Settings,
        chunk_size: int,
        say: Callable[[str], None],
        progress: Callable[[str], None],
    ) -> None:
        """Read through ``transport``, ``chunk_size`` objects at a time, or all at once with 0; see ``connect``."""
        self.namespace = settings.namespace
        self.context = settings.context
        self.name = settings.cluster_name
        self._transport = transport
        self._chunk_size = chunk_size
        self._say = say
        self._progress = progress

    @classmethod
    def connect(
        cls,
        flags: ConnectionFlags,
        say: Callable[[str], None] = lambda _: None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Prepare to read from the cluster that ``flags`` and the kubeconfig name.

        Nothing is sent yet, except by a plugin that gets credentials. ``say`` receives messages about delays and lists
        that are read again; ``progress`` receives the progress of long lists.

        Raises:
            UsageError: The timeout is not valid.
            SourceError: The kubeconfig or the credentials cannot be used.
        """
        timeout = connection.seconds(flags.request_timeout)
        settings = connection.settings(flags, os.environ)
        transport = Transport(
            credentials.login(settings, say),
            credentials.impersonation(settings.user),
            timeout=timeout,
            compress=not settings.cluster.get("disable-compression", False),
            renew=credentials.renewal(settings, say),
            say=say,
        )
        return cls(transport, settings, flags.chunk_size, say, progress)

    def close(self) -> None:
        """Send no more requests, and end the requests in flight."""
        self._transport.close()

    def now(self) -> datetime | None:
        """Return the time by the API server's clock, in UTC; None if no response had a Date header."""
        return self._transport.clock.now()

    def uid(self) -> str:
        """Return the UID of the namespace ``kube-system``; "" if it cannot be read for any reason."""
        try:
            return self.get(NAMESPACES, ALL_NAMESPACES, IDENTIFYING_NAMESPACE).metadata.uid
        except SourceError:
            return ""

    def version(self) -> ServerVersion:
        """Get the version of the API server.

        Raises:
            SourceError: It does not report a version.
        """
        version = responses.decode_object(self._get("/version", _JSON), _Version)
        major, minor = _number(version.major), _number(version.minor)
        if major is None or minor is None:
            raise SourceError(f"the server says that its version is {version.major!r}.{version.minor!r}")
        return ServerVersion(major, minor, _number(version.emulation_minor), version.git_version)

    def feature_gates(self) -> dict[str, bool] | None:
        """Read the feature gates from the API server's metrics; None if the user may not read these.

        Raises:
            SourceError: It fails for another reason.
        """
        try:
            metrics = self._get("/metrics", _TEXT).body
        except ForbiddenError:
            return None
        return feature_gates(metrics)

    def get(self, resource: Resource[T], namespace: str, name: str) -> T:
        """Read one object.

        Raises:
            NotFoundError: There is no such object.
            ForbiddenError: The user may not read it.
            SourceError: It fails for another reason.
        """
        response = self._transport.get(resource.path(namespace, name), {}, _OBJECTS)
        responses.check(response, verb="get", resource=resource.plural)
        return responses.decode_object(response, resource.type)

    def names(self, resource: Resource[T], namespace: str, most: int) -> list[str]:
        """Return the names of at most ``most`` objects, without reading the objects.

        Raises:
            ForbiddenError: The user may not list them.
            SourceError: It fails for another reason.
        """
        return [metadata.name for metadata in self.metadata(resource, namespace, most)]

    def metadata(self, resource: Resource[T], namespace: str, most: int) -> list[ObjectMeta]:
        """Return the metadata of at most ``most`` objects, without reading the objects.

        Raises:
            ForbiddenError: The user may not list them.
            SourceError: It fails for another reason.
        """
        response = self._transport.get(resource.path(namespace), {"limit": most}, _METADATA)
        responses.check(response, verb="list", resource=resource.plural)
        objects = responses.decode_object(response, _Names)
        if objects.kind != _METADATA_LIST:
            responses.check_type(response, objects, resource.list_type)
        return [named.metadata for named in objects.items]

    def pages(
        self, resource: Resource[T], namespace: str = ALL_NAMESPACES, *, field_selector: str = ""
    ) -> Iterator[Page[T]]:
        """Yield a list page by page; the next page is requested while the last one is processed.

        Args:
            resource: The resource to list.
            namespace: The namespace to list, or ``ALL_NAMESPACES``.
            field_selector: A field selector in kubectl's syntax.

        Raises:
            ForbiddenError: The user may not list it.
            ExpiredError: The API server has compacted the list. The pages so far are incomplete, and more would mix two
                states of the cluster. See ``fold``.
            SourceError: It fails for another reason, or repeats a continue token.
        """
        request = self._request(resource, namespace, field_selector)
        return paging.follow(request, lambda: responses.ListDecoder(resource).page)

    def _request(self, resource: Resource[T], namespace: str, field_selector: str) -> paging.Request:
        query: dict[str, str | int] = {}
        if self._chunk_size:
            query["limit"] = self._chunk_size
        if field_selector:
            query["fieldSelector"] = field_selector

        def request(token: str) -> Response:
            continued = {"continue": token} if token else {}
            response = self._transport.get(resource.path(namespace), {**query, **continued}, _OBJECTS)
            responses.check(response, verb="list", resource=resource.plural)
            return response

        return request

    def fold(
        self,
        resource: Resource[T],
        begin: Callable[[], F],
        add: Callable[[F, Page[T]], object],
        namespace: str = ALL_NAMESPACES,
        *,
        field_selector: str = "",
    ) -> F:
        """Return the value of ``begin`` after ``add`` was called on it with every page of a list.

        If the API server compacts the list half-way, this starts again, once, so that the value has every object of one
        state of the cluster exactly once.

        Raises:
            ForbiddenError: The user may not list it.
            NotFoundError: The API server has no such resource.
            ExpiredError: The API server compacted the list twice.
            SourceError: It fails for another reason.
        """

        def read() -> F:
            folded = begin()
            number = promised = 0
            for page in self.pages(resource, namespace, field_selector=field_selector):
                add(folded, page)
                number += len(page)
                promised = max(promised, number + page.metadata.remaining_item_count)
                if page.metadata.continue_:
                    total = "" if page.remaining is None else f" of {number + page.remaining:,}"
                    self._progress(f"{resource.plural}: {number:,}{total}")
            if number < promised:
                problem = f"{number:,} objects in a list of {promised:,}"
                raise SourceError(f"Server returned an unexpected response: {problem}")
            return folded

        try:
            try:
                return read()
            except ExpiredError as error:
                self._say(f"{error}: the list of {resource.plural} is read again from its beginning")
                return read()
        except (ExpiredError, ForbiddenError):
            raise
        except SourceError as error:
            kind = NotFoundError if isinstance(error, NotFoundError) else SourceError
            raise kind(f"{error} (the list of {resource.plural} is not complete)") from error

    def _get(self, path: str, accept: str) -> Response:
        response = self._transport.get(path, {}, accept)
        responses.check(response, verb="get", resource=path)
        return response


def _number(text: str) -> int | None:
    """Return the number at the beginning of a version part such as ``37+``."""
    match = _DIGITS.match(text)
    return int(match[0]) if match else None


def feature_gates(metrics: bytes | bytearray) -> dict[str, bool]:
    """Return the feature gates in the metrics of an API server."""
    return {match[1].decode(): match[2] == b"1" for match in _GATE.finditer(b"\n" + metrics)}
