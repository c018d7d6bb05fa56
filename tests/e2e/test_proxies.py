"""The way to the server: proxies of the kubeconfig and of the environment, as the real kubectl takes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import pytest

from tests.builders import Json
from tests.controlplane.processes import LOOPBACK, free_port
from tests.e2e import proxy
from tests.e2e.both import Both, matching_request
from tests.e2e.proxy import Proxy
from tests.e2e.recorder import Recorder
from tests.kubeconfigs import config

pytestmark = pytest.mark.e2e

Scheme = Literal["http", "https", "socks5"]
SCHEMES: tuple[Scheme, ...] = ("http", "https", "socks5")
NAME = "apiserver.test"
SERVER = f"https://{NAME}:6443"
"""An address that nobody but the proxy can look up."""


@contextmanager
def through(recorder: Recorder, scheme: Scheme, who: str = "") -> Iterator[Proxy]:
    """Run a proxy that leads to the recorder."""
    pair = recorder.authority.server("proxy", [LOOPBACK]) if scheme == "https" else None
    with proxy.running(scheme, {NAME: recorder.port, LOOPBACK: recorder.port}, who=who, pair=pair) as running:
        yield running


def named(recorder: Recorder, server: str = SERVER, **cluster: object) -> Json:
    """Return a kubeconfig for an address of the recorder."""
    return config(server, recorder.authority.certificate, {"token": "abc"}, **cluster)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_proxy_of_the_kubeconfig_is_always_used(both: Both, recorder: Recorder, scheme: Scheme) -> None:
    """The proxy looks up the name; neither NO_PROXY nor a loopback address goes around it."""
    with through(recorder, scheme) as passed:
        for server in (SERVER, recorder.url):
            both.ask(named(recorder, server, proxy_url=passed.url), environment={"NO_PROXY": f"{NAME},{LOOPBACK}"})
            assert matching_request(recorder).header("Authorization") == "Bearer abc"
            assert len(passed.targets) >= 2
            assert set(passed.targets) == {server.removeprefix("https://")}
            passed.targets.clear()


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_credentials_of_a_proxy_are_sent_and_not_printed(both: Both, recorder: Recorder, scheme: Scheme) -> None:
    """They are part of its address; the message after a refusal leaves them out."""
    with through(recorder, scheme, "me:word") as passed:
        both.ask(named(recorder, proxy_url=passed.url_with_credentials))
        matching_request(recorder)
        refused = passed.url_with_credentials.replace("me:word", "me:secret")
        pair = both.ask(named(recorder, proxy_url=refused))
    words = "Proxy Authentication Required" if scheme == "http" else "authentication failed"
    assert all(line.startswith("Unable to connect to the server: ") and words in line for line in pair.complaints)
    assert "secret" not in pair.spread.stderr


def test_a_flag_names_the_proxy(both: Both, recorder: Recorder) -> None:
    """``--proxy-url``, which kubectl has since 1.37, means what it means in the kubeconfig."""
    with through(recorder, "http") as passed:
        both.ask(named(recorder), "--proxy-url", passed.url)
        assert {request.header("Authorization") for request in recorder.requests if request.by_plugin} == {"Bearer abc"}


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_proxy_of_the_environment_is_used(both: Both, recorder: Recorder, scheme: Scheme, variable: str) -> None:
    """The variable may be in upper or lower case, and the proxy of any kind that proxy-url allows."""
    with through(recorder, scheme) as passed:
        both.ask(named(recorder), environment={variable: passed.url})
        matching_request(recorder)
        assert set(passed.targets) == {f"{NAME}:6443"}


def test_a_proxy_without_a_scheme_is_http(both: Both, recorder: Recorder) -> None:
    """Only the environment may leave out the scheme."""
    with through(recorder, "http") as passed:
        both.ask(named(recorder), environment={"HTTPS_PROXY": passed.url.removeprefix("http://")})
        matching_request(recorder)


def test_loopback_is_reached_without_the_proxy_of_the_environment(both: Both, recorder: Recorder) -> None:
    """This is so in kubectl and in the plugin."""
    with through(recorder, "http") as passed:
        both.ask(named(recorder, recorder.url), environment={"HTTPS_PROXY": passed.url})
        matching_request(recorder)
        assert passed.targets == []


def test_other_variables_are_not_respected(both: Both, recorder: Recorder) -> None:
    """HTTP_PROXY is for plain HTTP, and kubectl does not know ALL_PROXY."""
    with through(recorder, "http") as passed:
        pair = both.ask(named(recorder), environment={"HTTP_PROXY": passed.url, "ALL_PROXY": passed.url})
        assert all("no such host" in line for line in pair.complaints)
        assert passed.targets == []


EXCEPTIONS: Mapping[str, bool] = {
    "apiserver.test": True,
    "test": True,
    ".test": True,
    "*.test": True,
    "apiserver.test:6443": True,
    "*": True,
    "other.test, APISERVER.TEST": True,
    ".apiserver.test": False,
    "apiserver.test:443": False,
    "server.test": False,
    "10.0.0.0/8": False,
}


@pytest.mark.parametrize("exceptions", EXCEPTIONS)
def test_no_proxy_names_servers_that_are_reached_directly(both: Both, recorder: Recorder, exceptions: str) -> None:
    """Both programs then look up the name themselves, which fails."""
    with through(recorder, "http") as passed:
        pair = both.ask(named(recorder), environment={"HTTPS_PROXY": passed.url, "NO_PROXY": exceptions})
        if EXCEPTIONS[exceptions]:
            assert all("no such host" in line for line in pair.complaints)
        else:
            matching_request(recorder)
        assert bool(passed.targets) != EXCEPTIONS[exceptions]


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_missing_proxy_is_an_error_that_names_the_server(both: Both, recorder: Recorder, scheme: str) -> None:
    """Neither program names the proxy."""
    theirs, ours = both.ask(named(recorder, proxy_url=f"{scheme}://{LOOPBACK}:{free_port()}")).complaints
    assert ours == theirs


def test_an_address_with_an_unsupported_scheme(both: Both, recorder: Recorder) -> None:
    """Both refuse it; the plugin does not print it, since it may hold a password."""
    pair = both.ask(named(recorder, proxy_url="ftp://me:secret@127.0.0.1:1"))
    theirs, ours = pair.complaints
    assert theirs.endswith("must be http, https, or socks5")
    assert ours == (
        "error: the proxy address is invalid: write http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT"
    )
    assert "secret" not in pair.spread.stderr


@pytest.mark.parametrize("how", ["flag", "kubeconfig", "not at all"])
def test_compression_is_requested_unless_a_flag_forbids_it(both: Both, recorder: Recorder, how: str) -> None:
    """On loopback the plugin never requests it."""
    with through(recorder, "http") as passed:
        content = named(recorder, proxy_url=passed.url, disable_compression=how == "kubeconfig")
        both.ask(content, *(["--disable-compression"] if how == "flag" else []))
    compressed = {
        "gzip" in request.header("Accept-Encoding")
        for request in recorder.requests
        if _is_real(request.header("User-Agent"))
    }
    assert compressed == {how == "not at all"}


def _is_real(agent: str) -> bool:
    """Tell whether kubectl is not a dispatcher that looks for another kubectl to run."""
    return not agent.startswith("kubectl-dispatcher/")
