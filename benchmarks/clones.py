"""Pages in protobuf of many objects, each a clone of one that a real apiserver (v1.37.1) sent.

The recorded pod was made by a Deployment and bound by kube-scheduler; its status and annotations are such as kubelet
and a network plugin write. A clone has other names, UIDs, addresses (shorter or longer), times, node and zone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import UUID

from kubectl_spread.sources.decode.protobuf.decoder import MAGIC
from kubectl_spread.sources.decode.resources import BY_KIND, NODES, PODS, Resource
from tests.fuzz.wire import Field, encode, parse, varint

_RECORDED: Final = Path(__file__).parent / "recorded"
_ZONES: Final = "abc"
_PODS_A_WORKLOAD: Final = 30
_PODS_A_NODE: Final = 30
_NAMESPACES: Final = 20
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_FIRST_TIME: Final = 1_795_000_000
"""A number beyond this one is a time."""
_BYTES: Final = 2
_OBJECT: Final = 2

Values: TypeAlias = Mapping[bytes, bytes]
"""Maps a text of the recorded object to that of a clone."""
Part: TypeAlias = "bytes | tuple[bytes, bytes | list[Part] | None]"
"""A field that all clones share, encoded; or a tag with a text, the fields of a message, or nothing for a time."""


class Mould:
    """A recorded object in which some texts, and all times, are replaced."""

    def __init__(self, resource: Resource[Any], *texts: bytes) -> None:
        """Take the first object of a recorded list, in which ``texts`` are replaced."""
        # A longer text first, since it may contain a shorter one.
        self._texts = re.compile(b"|".join(map(re.escape, sorted(texts, key=len, reverse=True))))
        self._parts = list(self._split(_first_object(resource)))

    def clone(self, values: Values, time: int) -> bytes:
        """Return the object with other texts and other times."""
        return self._filled(self._parts, values, varint(time))

    def _split(self, fields: list[Field]) -> Iterator[Part]:
        for field in fields:
            tag = varint(field.number << 3 | field.wire)
            match field.value:
                case list(inner) if self._texts.search(encode([field])) or _has_time(inner):
                    yield tag, list(self._split(inner))
                case bytes(text) if self._texts.search(text):
                    yield tag, text
                case int(number) if number > _FIRST_TIME:
                    yield tag, None
                case _:
                    yield encode([field])

    def _filled(self, parts: list[Part], values: Values, time: bytes) -> bytes:
        filled = bytearray()
        for part in parts:
            match part:
                case bytes():
                    filled += part
                case tag, None:
                    filled += tag + time
                case tag, bytes(text):
                    filled += _sized(tag, self._texts.sub(lambda match: values[match[0]], text))
                case tag, list(inner):
                    filled += _sized(tag, self._filled(inner, values, time))
        return bytes(filled)


class Clones:
    """A cluster as its apiserver would list it.

    Attributes:
        pages: Maps a resource in the plural to its pages.
    """

    def __init__(self, pods: int, page: int = 500) -> None:
        """Make so many pods, thirty to a node and thirty to a ReplicaSet, in pages of ``page`` objects."""
        self._chance = random.Random(pods)
        self._nodes = [self._address() for _ in range(-(-pods // _PODS_A_NODE))]
        self._workloads = [self._workload(number) for number in range(-(-pods // _PODS_A_WORKLOAD))]
        # An apiserver lists by namespace, then by name.
        self._workloads.sort(key=lambda values: (values[b"team-00"], values[b"service-00000"]))
        self.pages = {
            NODES.plural: _pages(NODES, self._node_objects(), page),
            PODS.plural: _pages(PODS, self._pod_objects(pods), page),
        }
        for kind in ("Deployment", "ReplicaSet"):
            resource = BY_KIND[kind]
            mould = Mould(resource, *self._workloads[0])
            objects = [mould.clone(values, self._time()) for values in self._workloads]
            self.pages[resource.plural] = _pages(resource, objects, page)

    def _workload(self, number: int) -> Values:
        return {
            b"service-00000": b"service-%05d" % number,
            b"team-00": b"team-%02d" % (number % _NAMESPACES),
            b"7685bfc985": self._text(10),
            b"3ca20cb4-048d-46af-a5d9-36ab60643cbd": self._uid(),
            b"39525c0c-86f2-4933-ad6a-5dfd59666ff6": self._uid(),
        }

    def _node_objects(self) -> Iterator[bytes]:
        recorded = b"europe-west1-a1", b"europe-west1-a", b"10.0.12.34", b"6ddbec29-e3ee-46c4-9168-20d0553cc663"
        mould = Mould(NODES, *recorded)
        for number in sorted(range(len(self._nodes)), key=self._node_name):
            values = self._node_name(number), self._zone(number), self._nodes[number], self._uid()
            yield mould.clone(dict(zip(recorded, values, strict=True)), self._time())

    def _pod_objects(self, pods: int) -> Iterator[bytes]:
        mould = Mould(PODS, *self._workloads[0], *self._pod(0, b""))
        for place, workload in enumerate(self._workloads):
            first = place * _PODS_A_WORKLOAD
            suffixes = sorted(self._text(5) for _ in range(min(_PODS_A_WORKLOAD, pods - first)))
            for index, suffix in enumerate(suffixes, first):
                yield mould.clone({**workload, **self._pod(index % len(self._nodes), suffix)}, self._time())

    def _pod(self, node: int, suffix: bytes) -> Values:
        """Return the texts in which a pod differs from other pods of its template; it is bound to a node."""
        return {
            b"c4lqb": suffix,
            b"xxxxx": self._text(5),
            b"cd" * 32: self._chance.randbytes(32).hex().encode(),
            b"9465084f-fcb7-4272-b9a5-8742925d7c84": self._uid(),
            b"10.244.12.34": self._address(),
            b"10.0.12.34": self._nodes[node],
            b"europe-west1-a1": self._node_name(node),
            b"europe-west1-a": self._zone(node),
        }

    def _node_name(self, number: int) -> bytes:
        return b"ip-%s.compute.internal" % self._nodes[number].replace(b".", b"-")

    def _zone(self, node: int) -> bytes:
        return b"europe-west1-%s" % _ZONES[node % len(_ZONES)].encode()

    def _address(self) -> bytes:
        return b"10.%d.%d.%d" % (self._chance.randrange(256), self._chance.randrange(256), self._chance.randrange(256))

    def _uid(self) -> bytes:
        return str(UUID(bytes=self._chance.randbytes(16))).encode()

    def _text(self, length: int) -> bytes:
        return "".join(self._chance.choices(_LETTERS, k=length)).encode()

    def _time(self) -> int:
        return _FIRST_TIME + self._chance.randrange(1_000_000)


def _pages(resource: Resource[Any], objects: Iterator[bytes] | list[bytes], size: int) -> list[bytes]:
    """Return objects as an apiserver lists them; the token of a page is its number."""
    items = [_sized(b"\x12", body) for body in objects]
    chunks = [items[start : start + size] for start in range(0, len(items), size)] or [[]]
    return [
        _page(resource, b"".join(chunk), "" if number == len(chunks) else str(number))
        for number, chunk in enumerate(chunks, 1)
    ]


def empty(resource: Resource[Any]) -> bytes:
    """Return the list of a resource without objects."""
    return _page(resource, b"", "")


def _page(resource: Resource[Any], items: bytes, token: str) -> bytes:
    list_type = resource.list_type
    metadata = encode([Field(2, _BYTES, b"1000000"), Field(3, _BYTES, token.encode())])
    return MAGIC + encode(
        [
            Field(
                1, _BYTES, [Field(1, _BYTES, list_type.api_version.encode()), Field(2, _BYTES, list_type.kind.encode())]
            ),
            Field(2, _BYTES, _sized(b"\x0a", metadata) + items),
            Field(3, _BYTES, b""),
            Field(4, _BYTES, b""),
        ]
    )


def _first_object(resource: Resource[Any]) -> list[Field]:
    fields = parse((_RECORDED / f"{resource.plural}.pb").read_bytes()[len(MAGIC) :]) or []
    return _inside(_inside(fields))


def _inside(fields: list[Field]) -> list[Field]:
    """Return the fields of the first field 2: of a list in its envelope, and of an object in a list."""
    return next(field.value for field in fields if field.number == _OBJECT and isinstance(field.value, list))


def _has_time(fields: list[Field]) -> bool:
    return any(
        _has_time(field.value)
        if isinstance(field.value, list)
        else isinstance(field.value, int) and field.value > _FIRST_TIME
        for field in fields
    )


def _sized(tag: bytes, body: bytes) -> bytes:
    return tag + varint(len(body)) + body
