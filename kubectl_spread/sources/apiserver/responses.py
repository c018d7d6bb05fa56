"""The API server's responses: objects, pages and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec
from google.protobuf.message import DecodeError as ProtobufError

from kubectl_spread.errors import ForbiddenError, NotFoundError, SourceError
from kubectl_spread.kube.api import sparse
from kubectl_spread.kube.api.sparse import DetailedPod, SparsePod
from kubectl_spread.kube.api.types import Message, TypeMeta
from kubectl_spread.sources.apiserver.transport import Response
from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_objects import ITEMS, ListPage, MalformedFieldError
from kubectl_spread.sources.decode.protobuf import decoder
from kubectl_spread.sources.decode.protobuf.decoder import MAGIC, Decoder
from kubectl_spread.sources.decode.protobuf.sparse_pods import SparsePods
from kubectl_spread.sources.decode.resources import Page, Resource
from kubectl_spread.sources.paths import without_query

T = TypeVar("T", bound=Message)

_UNEXPECTED: Final = "Server returned an unexpected response"
_OK: Final = 200
_REDIRECTS: Final = range(300, 400)
_REASONS: Final = {
    403: "Forbidden",
    404: "NotFound",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_LONGEST_TEXT: Final = 200
# An OSError means a time that the system cannot represent.
MALFORMED: Final = (msgspec.DecodeError, ProtobufError, LookupError, ValueError, OverflowError, OSError, RecursionError)


class ExpiredError(SourceError):
    """The rest of a list can no longer be read, because too much time has passed."""


class UnauthorizedError(SourceError):
    """The API server does not accept the credentials, not even new ones."""


class Status(Message, frozen=True):
    """The Status that the API server returns instead of an object."""

    message: Annotated[str, 3] = ""
    reason: Annotated[str, 4] = ""


class ListDecoder(Generic[T]):
    """Decodes the pages of one list, and remembers the parts that its objects share."""

    def __init__(self, resource: Resource[T]) -> None:
        self._resource = resource
        self._decoder: Any = SparsePods() if resource.type is SparsePod else Decoder(resource.type)

    def page(self, response: Response) -> Page[T]:
        """Return the page in a response.

        Every list of an API server has a type and a revision, and in JSON items. A body without these may be the
        beginning of a list, and would pass for an empty one.

        Raises:
            SourceError: It holds no list, or a list of another type. The page raises it for a malformed object.
        """
        try:
            if response.body.startswith(MAGIC):
                check_type(response, decoder.type_meta(response.body), self._resource.list_type)
                listed = self._decoder.page(response.body)
            else:
                undecoded = json_objects.list_page(bytes(response.body))
                check_type(response, undecoded, self._resource.list_type)
                listed = _decoded(undecoded, self._resource.type)
        except MalformedFieldError as error:
            if error.path == ITEMS:
                raise SourceError(f"{_UNEXPECTED}: {error}") from error
            raise _unexpected(response) from error
        except MALFORMED as error:
            raise _unexpected(response) from error
        if not listed.resource_version:
            raise _unexpected(response)
        return msgspec.structs.replace(listed, decode=_guarded(response, listed.decode))


def _decoded(listed: ListPage, type_: type[T]) -> Page[T]:
    if type_ is not SparsePod:
        return json_objects.page(listed, type_)
    pods: Any = json_objects.page(listed, DetailedPod).map(sparse.alone)
    return pods  # type: ignore[no-any-return]


def check_type(response: Response, type_meta: TypeMeta, expected: TypeMeta) -> None:
    """Check that a response has the requested type.

    Raises:
        SourceError: It has another type, or none.
    """
    if not type_meta.kind:
        raise _unexpected(response)
    if (type_meta.api_version, type_meta.kind) != (expected.api_version, expected.kind):
        raise SourceError(f"{_UNEXPECTED}: {_described(type_meta)} instead of {_described(expected)}")


def _described(type_: TypeMeta) -> str:
    return f"{type_.kind} ({type_.api_version or 'no apiVersion'})"


def decode_object(response: Response, type_: type[T], decoder: Decoder[T] | None = None) -> T:
    """Return the object in a response; a ``decoder`` remembers parts that several objects share.

    Raises:
        SourceError: It holds no object.
    """
    try:
        if response.body.startswith(MAGIC):
            return (decoder or Decoder(type_)).decode_response(response.body)
        return json_objects.decode(bytes(response.body), type_)
    except (*MALFORMED, MalformedFieldError) as error:
        raise _unexpected(response) from error


def check(response: Response, *, verb: str, resource: str) -> None:
    """Check that a response is not an error.

    Args:
        response: The response.
        verb: ``list``, ``get`` or ``watch``.
        resource: The resource in the plural, or a path.

    Raises:
        NotFoundError: There is no such object, or no such resource.
        ForbiddenError: The user may not read it.
        UnauthorizedError: The credentials are not accepted.
        ExpiredError: The list has to be read again from its beginning.
        SourceError: Anything else.
    """
    if response.status == _OK:
        return
    if response.status in _REDIRECTS:
        raise SourceError(_redirect(response))
    status = _status(response)
    reason = status.reason or _REASONS.get(response.status, "")
    message = f"Error from server ({reason}): " if reason else "Error from server: "
    message += status.message or f"HTTP status {response.status}"
    match response.status:
        case 401:
            raise UnauthorizedError(f"You must be logged in to the server ({status.message or 'Unauthorized'})")
        case 403:
            raise ForbiddenError(message)
        case 404 if verb == "get":
            raise NotFoundError(message)
        case 404:
            raise NotFoundError(f'the server doesn\'t have a resource type "{resource}"')
        case 410:
            raise ExpiredError(message)
    raise SourceError(message)


def _guarded(response: Response, decode: Callable[[Any], T]) -> Callable[[Any], T]:
    def guarded(record: object) -> T:
        try:
            return decode(record)
        except MalformedFieldError as error:
            raise SourceError(f"{_UNEXPECTED}: {error}") from error
        except MALFORMED as error:
            raise _unexpected(response) from error

    return guarded


def _redirect(response: Response) -> str:
    # It is not followed, because another server would see the credentials.
    where = f" to {without_query(response.location)}" if response.location else ""
    return f"{_UNEXPECTED}: HTTP status {response.status}, a redirect{where}"


def _status(response: Response) -> Status:
    # Some responses are plain text, and a proxy's may be anything.
    if response.body.startswith(MAGIC) or "json" in response.content_type:
        try:
            return decode_object(response, Status)
        except SourceError:
            return Status()
    if "html" in response.content_type:
        return Status()
    text = " ".join(response.body.decode(errors="replace").split())
    return Status(message=text[:_LONGEST_TEXT])


def _unexpected(response: Response) -> SourceError:
    kind = response.content_type or "no content type"
    return SourceError(f"{_UNEXPECTED}: not a Kubernetes object ({kind})")
