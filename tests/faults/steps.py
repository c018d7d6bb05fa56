"""The faults of a request: steps for ``Proxy.script``, and functions that return them."""

from __future__ import annotations

import json
import os
import socket
import struct
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from tests.faults.proxy import Exchange, Reply, Step, passed

Json = dict[str, Any]
_JSON = "application/json"
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER that makes the end of a connection a reset."""


def answer(status: int, body: bytes = b"", content_type: str = "text/plain", **headers: str) -> Step:
    """Answer instead of the apiserver; the name of a header is written with underscores."""
    sent_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.send(Reply(status, body, content_type, sent_headers))


def status(code: int, reason: str, message: str, **headers: str) -> Step:
    """Answer with a Status, as the apiserver does."""
    body = {"kind": "Status", "apiVersion": "v1", "reason": reason, "message": message, "code": code}
    return answer(code, json.dumps(body).encode(), _JSON, **headers)


def silent(seconds: float) -> Step:
    """Wait, then pass the request on."""

    def step(exchange: Exchange) -> None:
        exchange.wait(seconds)
        passed(exchange)

    return step


def slow(seconds: float, parts: int = 20) -> Step:
    """Send the real answer in parts over a number of seconds."""

    def step(exchange: Exchange) -> None:
        reply = exchange.forward()
        exchange.send_head(reply)
        size = -(-len(reply.body) // parts)
        for start in range(0, len(reply.body), size):
            exchange.send_part(reply.body[start : start + size])
            exchange.wait(seconds / parts)

    return step


def reset(exchange: Exchange) -> None:
    """Send half of the real answer and reset the connection."""
    reply = exchange.forward()
    exchange.send_head(reply)
    exchange.send_part(reply.body[: len(reply.body) // 2])
    reset_connection(exchange)


def reset_connection(exchange: Exchange) -> None:
    """Reset the connection after what was sent."""
    # The client must have read it before the reset, which discards unread data.
    exchange.wait(0.2)
    exchange.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    # close() would wait for the file objects of the socket.
    os.close(exchange.socket.detach())
    exchange.hang_up()


def cut_off(exchange: Exchange) -> None:
    """Send half of the real answer and close the connection."""
    reply = exchange.forward()
    exchange.send_head(reply)
    exchange.send_part(reply.body[: len(reply.body) // 2])
    exchange.hang_up()


def shortened(length: int | None = None) -> Step:
    """Send the beginning of the real answer, by default one half, with the Content-Length of that part."""

    def step(exchange: Exchange) -> None:
        reply = exchange.forward()
        exchange.send(replace(reply, body=reply.body[: len(reply.body) // 2 if length is None else length]))

    return step


def edited(change: Callable[[Json], object]) -> Step:
    """Send the real answer as JSON, although protobuf was requested, after ``change``."""

    def step(exchange: Exchange) -> None:
        document = json.loads(exchange.forward(Accept=_JSON).body)
        change(document)
        exchange.send(Reply(200, json.dumps(document).encode(), _JSON))

    return step


def as_token(token: str) -> Step:
    """Pass the request on with another bearer token."""
    return lambda exchange: exchange.send(exchange.forward(Authorization=f"Bearer {token}"))


def expired(exchange: Exchange) -> None:
    """Ask for the page of a revision so old that the apiserver has forgotten it, and pass on what it says."""
    old = changed_token(exchange.request.token, {"rv": 2})
    path = exchange.request.target.replace(quote(exchange.request.token, safe=""), quote(old, safe=""))
    exchange.send(exchange.forward(path))


def bomb(mebibytes: int) -> Step:
    """Answer with zeros, compressed to a thousandth of their size."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    body = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(mebibytes)), packer.flush()])
    return answer(200, body, _JSON, Content_Encoding="gzip")


def no_objects(document: Json) -> None:
    """Empty the first page of a list, and set its token to the beginning of the list."""
    first = document["items"][0]["metadata"]
    document["metadata"]["continue"] = changed_token(
        document["metadata"]["continue"], {"start": f"{first['namespace']}/{first['name']}"}
    )
    document["items"] = []


def revision(token: str) -> int:
    """Return the resource version in a continue token of the apiserver."""
    return int(_content(token)["rv"])


def changed_token(token: str, changes: Mapping[str, object]) -> str:
    """Return a continue token of the apiserver with other values in it."""
    return urlsafe_b64encode(json.dumps({**_content(token), **changes}).encode()).decode().rstrip("=")


def _content(token: str) -> Json:
    content: Json = json.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return content
