"""Certificates that both trust, and common flags of kubectl."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

import pytest

from tests.controlplane.certificates import Authority
from tests.controlplane.processes import free_port
from tests.e2e.both import Both, matching_request
from tests.e2e.recorder import Recorder
from tests.kubeconfigs import config

pytestmark = pytest.mark.e2e

UNTRUSTED = "Unable to connect to the server: tls: failed to verify certificate: x509: "
TOKEN = {"token": "abc"}


def test_the_name_in_the_certificate(both: Both, recorder: Recorder) -> None:
    """It is asked for and expected, be it of the kubeconfig or a flag."""
    authority = recorder.authority.certificate
    both.ask(config(recorder.url, authority, TOKEN, tls_server_name="apiserver.test"))
    assert matching_request(recorder).server_name == "apiserver.test"
    both.ask(config(recorder.url, authority, TOKEN), "--tls-server-name", "apiserver.test")
    assert matching_request(recorder).server_name == "apiserver.test"
    pair = both.ask(config(recorder.url, authority, TOKEN, tls_server_name="other.test"))
    assert all(line.startswith(UNTRUSTED) and "other.test" in line for line in pair.complaints)


def test_an_authority(both: Both, recorder: Recorder) -> None:
    """As a file, as data, and as a flag that replaces either."""
    authority = recorder.authority.certificate
    stranger = Authority(both.directory / "other").certificate
    data = {"certificate_authority_data": b64encode(authority.read_bytes()).decode()}
    wrong = {"certificate_authority_data": b64encode(stranger.read_bytes()).decode()}
    both.ask(config(recorder.url, None, TOKEN, **data))
    matching_request(recorder)
    both.ask(config(recorder.url, stranger, TOKEN), "--certificate-authority", str(authority))
    matching_request(recorder)
    both.ask(config(recorder.url, None, TOKEN, **wrong), "--certificate-authority", str(authority))
    matching_request(recorder)


@pytest.mark.parametrize("named", [False, True])
def test_an_unknown_authority(both: Both, recorder: Recorder, named: bool) -> None:
    """Neither sends a request."""
    stranger = Authority(both.directory / "other").certificate if named else None
    theirs, ours = both.ask(config(recorder.url, stranger, TOKEN)).complaints
    assert ours == f"{UNTRUSTED}certificate signed by unknown authority"
    assert theirs.startswith(ours)
    assert recorder.requests == []


def test_authorities_of_the_system(both: Both, recorder: Recorder) -> None:
    """Without any in the kubeconfig they count; SSL_CERT_FILE says where they are."""
    trusted = {"SSL_CERT_FILE": str(recorder.authority.certificate)}
    both.ask(config(recorder.url, None, TOKEN), environment=trusted)
    assert matching_request(recorder).header("Authorization") == "Bearer abc"


def test_an_authority_that_is_not_pem(both: Both, recorder: Recorder) -> None:
    """Both refuse it before they send a request."""
    bad = both.write("no PEM", "bad.crt")
    pair = both.ask(config(recorder.url, bad, TOKEN))
    theirs, ours = pair.complaints
    assert theirs == "error: unable to load root certificates: unable to parse bytes as PEM block"
    assert ours == "Unable to connect to the server: tls: no certificate or crl found"
    assert recorder.requests == []


def test_verification_can_be_switched_off(both: Both, recorder: Recorder) -> None:
    """Of the kubeconfig or as a flag, which takes the authority away."""
    both.ask(config(recorder.url, None, TOKEN, insecure_skip_tls_verify=True))
    matching_request(recorder)
    stranger = Authority(both.directory / "other").certificate
    both.ask(config(recorder.url, stranger, TOKEN), "--insecure-skip-tls-verify")
    assert matching_request(recorder).header("Authorization") == "Bearer abc"


TIMES: Mapping[str, tuple[str, str]] = {
    "one that passes": ("1s", ""),
    "without a unit": ("1", ""),
    "none": ("soon", "Invalid timeout value"),
}


@pytest.mark.parametrize("name", TIMES)
def test_request_timeout(both: Both, recorder: Recorder, name: str) -> None:
    """What is not a time is refused in the same words."""
    time, words = TIMES[name]
    theirs, ours = both.ask(
        config(recorder.url, recorder.authority.certificate, TOKEN), f"--request-timeout={time}"
    ).complaints
    if words:
        assert words in theirs
        assert words in ours
    else:
        assert ours == theirs


def test_a_server_that_is_silent(both: Both) -> None:
    """Both give up when the time is over."""
    import socket  # noqa: PLC0415 - only here

    with socket.create_server(("127.0.0.1", free_port())) as server:
        address = f"https://127.0.0.1:{server.getsockname()[1]}"
        theirs, ours = both.ask(config(address, None, TOKEN), "--request-timeout=300ms").complaints
    assert "Unable to connect to the server: " in theirs
    assert ours == "Unable to connect to the server: no answer within 0.3s"


def test_a_cache_directory_stays_unused(both: Both, recorder: Recorder) -> None:
    """``--cache-dir`` is taken; the plugin writes nothing into it."""
    directory = both.directory / "cache"
    content = config(recorder.url, recorder.authority.certificate, TOKEN)
    both.ask(content, "--cache-dir", str(directory))
    matching_request(recorder)
    assert not list(directory.rglob("*spread*"))
