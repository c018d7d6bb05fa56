"""Which proxy stands before a server; ``tests/e2e/test_proxies.py`` holds it against kubectl."""

from __future__ import annotations

from base64 import b64encode

import pytest
import urllib3

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.auth import proxies
from kubectl_spread.sources.auth.proxies import Proxy

SERVER = "https://api.example.test:6443"
PROXY = {"HTTPS_PROXY": "http://proxy:3128"}


def test_without_any() -> None:
    assert proxies.find(SERVER, "", {}) is None
    assert type(proxies.pool(None)) is urllib3.PoolManager


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("http://proxy:3128", "http://proxy:3128"),
        ("http://proxy", "http://proxy:80"),
        ("https://proxy", "https://proxy:443"),
        ("https://[::1]:8443/", "https://[::1]:8443"),
        ("socks5://proxy:1080", "socks5h://proxy:1080"),
        ("socks5://me:word@proxy:1080", "socks5h://me:word@proxy:1080"),
    ],
)
def test_addresses(address: str, url: str) -> None:
    proxy = proxies.find(SERVER, address, {"NO_PROXY": "*"})
    assert proxy == Proxy(url, {})
    assert isinstance(proxies.pool(proxy), urllib3.ProxyManager | urllib3.PoolManager)


def test_credentials_become_a_header() -> None:
    proxy = proxies.find(SERVER, "http://me%40home:wo%3Ard@proxy:1", {})
    who = b64encode(b"me@home:wo:rd").decode()
    assert proxy == Proxy("http://proxy:1", {"proxy-authorization": f"Basic {who}"})


@pytest.mark.parametrize("address", ["ftp://secret@proxy", "http://", "http://proxy:secret", "http://[secret"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(SourceError, match="the proxy address is invalid") as refused:
        proxies.find(SERVER, address, {})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("server", "exceptions", "direct"),
    [
        (SERVER, "", False),
        ("https://localhost:1", "", True),
        ("https://127.1.2.3:1", "", True),
        ("https://[::1]:1", "", True),
        ("https://10.1.2.3", "10.0.0.0/8", True),
        ("https://10.1.2.3", "10.0.0.0/33", False),
        ("https://10.1.2.3", "10.1.2.3", True),
        ("https://10.1.2.3", "10.1.2.3:443", True),
        ("https://10.1.2.3", "10.1.2.3:6443", False),
        ("https://[fd00::1]:6443", "fd00::1", True),
        ("https://[fd00::1]:6443", "[fd00:0::1]:6443", True),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        (SERVER, "10.0.0.1, ,example.test", True),
        (SERVER, "ample.test", False),
        (SERVER, "*.example.test", True),
        (SERVER, ":6443", False),
    ],
)
def test_exceptions(server: str, exceptions: str, direct: bool) -> None:
    assert (proxies.find(server, "", {**PROXY, "no_proxy": exceptions}) is None) == direct


def test_a_cgi_program_trusts_no_header() -> None:
    environment = {"HTTP_PROXY": "http://proxy:1"}
    assert proxies.find("http://api.test", "", environment) is not None
    assert proxies.find("http://api.test", "", {**environment, "REQUEST_METHOD": "GET"}) is None
