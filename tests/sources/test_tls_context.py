"""The TLS context that the connections of all threads share."""

from __future__ import annotations

import ssl

import pytest

from kubectl_spread.sources.auth import credentials


def hello(context: ssl.SSLContext) -> bytes:
    """Return the first message of a handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="cluster.example").do_handshake()
    return outgoing.read()


def test_a_connection_cannot_change_the_protocols_of_the_others() -> None:
    """urllib3 sets the protocols for each connection, while another thread may copy them."""
    context = credentials.tls_context({}, {})
    assert b"\x08http/1.1" in hello(context)
    context.set_alpn_protocols(["other"])
    assert b"\x08http/1.1" in hello(context)
