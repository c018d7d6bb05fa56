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


def test_the_expected_name_in_the_certificate_can_be_set(both: Both, recorder: Recorder) -> None:
    """It is in the kubeconfig or a flag, and is sent to the server too."""
    authority = recorder.authority.certificate
    both.ask(config(recorder.url, authority, TOKEN, tls_server_name="apiserver.test"))
    assert matching_request(recorder).server_name == "apiserver.test"
    both.ask(config(recorder.url, authority, TOKEN), "--tls-server-name", "apiserver.test")
    assert matching_request(recorder).server_name == "apiserver.test"
    pair = both.ask(config(recorder.url, authority, TOKEN, tls_server_name="other.test"))
    assert all(line.startswith(UNTRUSTED) and "other.test" in line for line in pair.complaints)


def test_the_authority_of_the_kubeconfig_or_a_flag_is_trusted(both: Both, recorder: Recorder) -> None:
    """It is a file or data in the kubeconfig, or a flag that replaces either."""
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
def test_an_unknown_authority_gets_no_request(both: Both, recorder: Recorder, named: bool) -> None:
    """This holds for both programs."""
    stranger = Authority(both.directory / "other").certificate if named else None
    theirs, ours = both.ask(config(recorder.url, stranger, TOKEN)).complaints
    assert ours == f"{UNTRUSTED}certificate signed by unknown authority"
    assert theirs.startswith(ours)
    assert recorder.requests == []


def test_authorities_of_the_system_are_trusted_if_none_is_configured(both: Both, recorder: Recorder) -> None:
    """SSL_CERT_FILE names their file."""
    trusted = {"SSL_CERT_FILE": str(recorder.authority.certificate)}
    both.ask(config(recorder.url, None, TOKEN), environment=trusted)
    assert matching_request(recorder).header("Authorization") == "Bearer abc"


def test_an_authority_that_is_not_pem_is_refused(both: Both, recorder: Recorder) -> None:
    """No request is sent."""
    bad = both.write("no PEM", "bad.crt")
    pair = both.ask(config(recorder.url, bad, TOKEN))
    theirs, ours = pair.complaints
    assert theirs == "error: unable to load root certificates: unable to parse bytes as PEM block"
    assert ours == "Unable to connect to the server: tls: no certificate or crl found"
    assert recorder.requests == []


def test_verification_can_be_switched_off(both: Both, recorder: Recorder) -> None:
    """This is done in the kubeconfig, or by a flag, which removes the authority."""
    both.ask(config(recorder.url, None, TOKEN, insecure_skip_tls_verify=True))
    matching_request(recorder)
    stranger = Authority(both.directory / "other").certificate
    both.ask(config(recorder.url, stranger, TOKEN), "--insecure-skip-tls-verify")
    assert matching_request(recorder).header("Authorization") == "Bearer abc"


TIMES: Mapping[str, tuple[str, str]] = {
    "one that passes": ("1m", ""),
    "without a unit": ("60", ""),
    "none": ("soon", "Invalid timeout value"),
}


@pytest.mark.parametrize("name", TIMES)
def test_an_invalid_request_timeout_has_the_error_of_kubectl(both: Both, recorder: Recorder, name: str) -> None:
    """Valid times are accepted by both programs."""
    time, words = TIMES[name]
    theirs, ours = both.ask(
        config(recorder.url, recorder.authority.certificate, TOKEN), f"--request-timeout={time}"
    ).complaints
    if words:
        assert words in theirs
        assert words in ours
    else:
        assert ours == theirs


def test_both_give_up_on_a_silent_server_after_the_timeout(both: Both) -> None:
    import socket  # noqa: PLC0415 - only here

    with socket.create_server(("127.0.0.1", free_port())) as server:
        address = f"https://127.0.0.1:{server.getsockname()[1]}"
        theirs, ours = both.ask(config(address, None, TOKEN), "--request-timeout=300ms").complaints
    assert "Unable to connect to the server: " in theirs
    assert ours == "Unable to connect to the server: no answer within 0.3s"
