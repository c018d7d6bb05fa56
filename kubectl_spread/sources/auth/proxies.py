"""The proxy on the way to a server.

Source: golang.org/x/net/http/httpproxy, which Go's HTTP client and so kubectl use; kubernetes v1.37.1
client-go/tools/clientcmd/client_config.go for ``proxy-url``. The kubernetes package reads the environment too, but
sends loopback addresses through the proxy, respects ``ALL_PROXY``, lets ``NO_PROXY`` override ``proxy-url``, and sends
no credentials to a proxy.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec
import urllib3
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.paths import without_query

_PORTS: Final = {"http": 80, "https": 443}
_SCHEMES: Final = frozenset({"http", "https", "socks5", "socks5h"})


class Proxy(msgspec.Struct, frozen=True):
    """A proxy, which also looks up the names of servers.

    Attributes:
        url: Its address for urllib3.
        headers: The credentials for the proxy; with SOCKS they are in the address.
    """

    url: str
    headers: dict[str, str]


def find(server: str, configured: str, environment: Mapping[str, str]) -> Proxy | None:
    """Return the proxy for a server, or None.

    Args:
        server: The address of the server.
        configured: The ``proxy-url`` of its cluster, which neither ``NO_PROXY`` nor loopback overrides, or "".
        environment: The environment variables.

    Raises:
        SourceError: The address of the server or of its proxy is invalid.
    """
    try:
        parts = urlsplit(server)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        raise SourceError(
            f"{without_query(server)} is not the address of a server (https://, a host and a port)"
        ) from None
    if configured:
        return _proxy(configured)
    scheme = parts.scheme
    if scheme == "http" and environment.get("REQUEST_METHOD"):
        # In a CGI program HTTP_PROXY is a header that a client sent.
        return None
    address = _either(environment, f"{scheme}_proxy")
    if not address or _is_direct((parts.hostname or "").lower(), str(port or ""), _either(environment, "no_proxy")):
        return None
    return _proxy(address if "://" in address else f"http://{address}")


def pool(proxy: Proxy | None, ssl_context: ssl.SSLContext | None = None, **arguments: Any) -> urllib3.PoolManager:
    """Return a pool that sends requests through a proxy, which is verified like the server, as in Go.

    Args:
        proxy: The proxy, or None.
        ssl_context: The context for TLS; None where there is no TLS.
        **arguments: Other arguments of ``urllib3.PoolManager``.
    """
    if proxy is None:
        return urllib3.PoolManager(ssl_context=ssl_context, **arguments)
    if proxy.url.startswith("socks"):
        from urllib3.contrib.socks import SOCKSProxyManager  # noqa: PLC0415 - few have such a proxy

        return SOCKSProxyManager(proxy.url, ssl_context=ssl_context, **arguments)
    return urllib3.ProxyManager(
        proxy.url, proxy_headers=proxy.headers, ssl_context=ssl_context, proxy_ssl_context=ssl_context, **arguments
    )


def _either(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper(), "") or environment.get(name, "")


def _proxy(address: str) -> Proxy:
    try:
        parts = urlsplit(address)
        valid = parts.scheme in _SCHEMES and bool(parts.hostname)
        port = parts.port
        # Refuse hosts that urllib3 cannot connect to.
        parse_url(address)
    except (ValueError, LocationParseError):
        valid = False
    if not valid:
        raise SourceError(
            "the proxy address is invalid: write http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT"
        )
    if parts.scheme.startswith("socks"):
        # As in Go, the proxy looks up the name, which the ``h`` requests.
        return Proxy(f"socks5h://{parts.netloc}", {})
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    url = f"{parts.scheme}://{host}:{port or _PORTS[parts.scheme]}"
    if parts.username is None:
        return Proxy(url, {})
    who = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return Proxy(url, urllib3.make_headers(proxy_basic_auth=who))


def _is_direct(host: str, port: str, exceptions: str) -> bool:
    """Tell whether a server is reached without a proxy: it is on loopback, or among the exceptions."""
    if host == "localhost" or _in_network(host, "127.0.0.0/8") or host == "::1":
        return True
    return any(_matches(entry.strip().lower(), host, port) for entry in exceptions.split(","))


def _matches(entry: str, host: str, port: str) -> bool:
    """Tell whether an entry of ``NO_PROXY`` names a host: an address, a network, a domain, or ``*`` for all."""
    if entry == "*" or _in_network(host, entry):
        return True
    named, _, entry_port = entry.rpartition(":")
    if not named or _is_address(entry):
        named, entry_port = entry, port
    named = named.strip("[]")
    if not named or entry_port != port:
        return False
    if _is_address(named):
        return _in_network(host, named)
    named = named.removeprefix("*")
    # ``.example.org`` matches subdomains only, ``example.org`` also itself.
    return host.endswith(named) if named.startswith(".") else host == named or host.endswith(f".{named}")


def _is_address(host: str) -> bool:
    return _in_network(host, "0.0.0.0/0") or _in_network(host, "::/0")


def _in_network(host: str, network: str) -> bool:
    """Tell whether a host is an address in a network, which may be a single address."""
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
