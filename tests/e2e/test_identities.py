"""Tokens, passwords, certificates and impersonation reach the server as from the real kubectl."""

from __future__ import annotations

import json
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

import pytest

from kubectl_spread.sources.apiserver.cluster import LiveCluster
from kubectl_spread.sources.auth.connection import ConnectionFlags
from tests.builders import Json
from tests.controlplane.cluster import ControlPlane
from tests.e2e.both import Both, matching_request
from tests.e2e.faulty import Faulty
from tests.e2e.recorder import PLUGIN, Recorder, Request
from tests.kubeconfigs import config

pytestmark = pytest.mark.e2e


def ask(both: Both, recorder: Recorder, user: Json, *flags: str) -> Request:
    """Run both, and return the plugin's request, which has the credentials of kubectl's."""
    both.ask(config(recorder.url, recorder.authority.certificate, user), *flags)
    return matching_request(recorder)


def test_a_token_is_sent(both: Both, recorder: Recorder) -> None:
    """It is in the kubeconfig or a flag."""
    assert ask(both, recorder, {"token": "abc"}).header("Authorization") == "Bearer abc"
    assert ask(both, recorder, {}, "--token", "abc").header("Authorization") == "Bearer abc"


def test_a_token_file_goes_before_a_token(both: Both, recorder: Recorder) -> None:
    """It also goes before ``--token``, as for kubectl."""
    path = both.write("in-file\n", "token")
    for user, flags in (({}, []), ({"token": "a"}, []), ({}, ["--token", "flag"])):
        request = ask(both, recorder, {"tokenFile": str(path), **user}, *flags)
        assert request.header("Authorization") == "Bearer in-file"


def test_a_token_file_is_read_again_after_its_token_is_refused(both: Both, recorder: Recorder) -> None:
    """The next run reads it too."""
    path = both.write("first", "token")
    user = {"tokenFile": str(path)}
    assert ask(both, recorder, user).header("Authorization") == "Bearer first"
    path.write_text("second", encoding="utf-8")
    assert ask(both, recorder, user).header("Authorization") == "Bearer second"

    def rotate(request: Request) -> int:
        path.write_text("third", encoding="utf-8")
        return 401 if request.header("Authorization") == "Bearer second" else 403

    recorder.answer = rotate
    file = both.write(config(recorder.url, recorder.authority.certificate, user))
    with pytest.raises(Exception, match="Forbidden"):
        LiveCluster.connect(ConnectionFlags(kubeconfig=str(file))).version()
    assert [request.header("Authorization") for request in recorder.requests] == ["Bearer second", "Bearer third"]


def test_a_user_name_and_password_are_sent(both: Both, recorder: Recorder) -> None:
    """They are in the kubeconfig or in flags; no apiserver has accepted them since 1.19."""
    expected = f"Basic {b64encode('jörg:b:c'.encode()).decode()}"
    user = {"username": "jörg", "password": "b:c"}
    assert ask(both, recorder, user).header("Authorization") == expected
    assert ask(both, recorder, {}, "--username", "jörg", "--password", "b:c").header("Authorization") == expected
    assert ask(both, recorder, {"username": "a", "password": "b"}, "--password", "c").header("Authorization") == (
        f"Basic {b64encode(b'a:c').decode()}"
    )


def test_a_client_certificate_is_used(both: Both, recorder: Recorder) -> None:
    """It is in files, data or flags, also together with a token."""
    pair, of_flags = (recorder.authority.client(name, name) for name in ("bob", "eve"))
    files = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    data = {f"{key}-data": b64encode(Path(path).read_bytes()).decode() for key, path in files.items()}
    flags = ["--client-certificate", str(of_flags.certificate), "--client-key", str(of_flags.key)]
    assert ask(both, recorder, files).certificate == "bob"
    assert ask(both, recorder, data).certificate == "bob"
    assert ask(both, recorder, files, *flags).certificate == "eve"
    # kubectl 1.32 refuses this combination, as if the flags were in the file.
    both.ask(config(recorder.url, recorder.authority.certificate, data), *flags)
    assert {request.certificate for request in recorder.requests} == {"eve"}
    recorder.requests.clear()
    assert ask(both, recorder, {**files, "token": "a"}).who["headers"] == [("Authorization", "Bearer a")]


def test_credentials_are_not_sent_without_tls(both: Both, tmp_path: Path) -> None:
    """Exec plugins are not run either; the impersonated user is sent, because it is not a secret."""
    from tests.e2e.recorder import record  # noqa: PLC0415 - only here without TLS

    ran = tmp_path / "ran"
    plugin = both.write(f"#!/bin/sh\ntouch {ran}\n", "plugin")
    plugin.chmod(0o755)
    command = {"command": "./plugin", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
    with record(tmp_path, tls=False) as recorder:
        for user in ({"token": "abc"}, {"username": "a", "password": "b"}, {"exec": command}):
            both.ask(config(recorder.url, None, {**user, "as": "bob"}))
            assert matching_request(recorder).who["headers"] == [("Impersonate-User", "bob")]
    assert not ran.exists()


IMPERSONATED: Mapping[str, tuple[Json, list[str]]] = {
    "user": ({"as": "bob"}, []),
    "everything": ({"as": "Jörg", "as-uid": "1", "as-groups": ["a", "b"], "as-user-extra": {"k": ["1", "2"]}}, []),
    "odd key": ({"as": "bob", "as-user-extra": {"Example.com/A key!%": ["x"]}}, []),
    "flags": ({}, ["--as", "bob", "--as-uid", "1", "--as-group", "a", "--as-group", "b"]),
    "flags before the file": (
        {"as": "eve", "as-groups": ["a", "b"], "as-uid": "1"},
        ["--as", "bob", "--as-group", "c"],
    ),
}


@pytest.mark.parametrize("name", IMPERSONATED)
def test_impersonation_headers_are_equal(both: Both, recorder: Recorder, name: str) -> None:
    """The values of one name are in the same order."""
    user, flags = IMPERSONATED[name]
    request = ask(both, recorder, {"token": "abc", **user}, *flags)
    assert any(header == "Impersonate-User" for header, _ in request.who["headers"])


def test_extras_in_flags_have_the_effect_of_extras_in_a_kubeconfig(both: Both, recorder: Recorder) -> None:
    """These flags are in kubectl since 1.35."""
    user = {"token": "abc", "as": "bob"}
    file = {"as-user-extra": {"k": ["1", "2=3"]}}
    expected = ask(both, recorder, {**user, **file}).who
    both.ask(config(recorder.url, recorder.authority.certificate, user), "--as-user-extra=k=1", "--as-user-extra=k=2=3")
    assert next(request for request in recorder.requests if request.by_plugin).who == expected
    answer = both.run("--as-user-extra", "k").spread
    assert answer.error == 'error: invalid extra "k" of --as-user-extra: write KEY=VALUE'


def test_the_audit_log_has_the_same_user_for_both(control_plane: ControlPlane, both: Both) -> None:
    """The user is known by certificate, token and impersonation."""
    as_bob = ["--as", "bob", "--as-uid", "7", "--as-group", "system:authenticated", "--as-group", "shop"]
    admin = control_plane.kubeconfig_for("carol", ["system:masters"])
    token = control_plane.token_kubeconfig("token-user")
    for file, flags in ((admin, []), (admin, as_bob), (token, [])):
        before = control_plane.audit_position()
        both.run("--kubeconfig", str(file), *flags)
        users = [(event["user"], event.get("impersonatedUser")) for event in _versions(control_plane, before)]
        assert len(users) >= 2
        assert all(who == users[0] for who in users)


def _versions(cluster: ControlPlane, offset: int) -> list[Json]:
    """Return the requests for the version since an offset in the audit log; both programs are among them."""
    versions = [event for event in cluster.audited(offset) if event["requestURI"].startswith("/version")]
    assert {event["userAgent"].startswith(PLUGIN) for event in versions} == {True, False}
    return versions


def test_the_namespace_of_the_context_is_read(faulty_cluster: ControlPlane, both: Both) -> None:
    """With ``-n`` both read the namespace of the flag."""
    content = json.loads(faulty_cluster.kubeconfig.read_text(encoding="utf-8"))
    content["contexts"][0]["context"]["namespace"] = "kube-node-lease"
    both.write(content)
    for flags, where in (([], "kube-node-lease"), (["-n", "kube-public"], "kube-public")):
        pair = both.run(*flags, asking=("get", "pods"))
        assert pair.kubectl.stderr == pair.spread.stderr == f"No resources found in {where} namespace.\n"


def jwt(lifetime: float) -> str:
    """Return an unsigned token with an expiry time."""
    parts: list[Json] = [{"alg": "none"}, {"exp": int(time.time() + lifetime)}, {}]
    return ".".join(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)


def oidc(**settings: str) -> Json:
    """Return a user of an OIDC issuer that does not exist."""
    usual = {"idp-issuer-url": "https://127.0.0.1:1", "client-id": "kubernetes"}
    return {"auth-provider": {"name": "oidc", "config": {**usual, **settings}}}


def test_an_oidc_token_that_has_not_expired_is_sent(both: Both, recorder: Recorder) -> None:
    """This is the only provider that kubectl still has."""
    token = jwt(3600)
    assert ask(both, recorder, oidc(**{"id-token": token})).header("Authorization") == f"Bearer {token}"
    assert ask(both, recorder, {**oidc(), "token": "a"}).header("Authorization") == "Bearer a"


NO_TOKEN: Mapping[str, Json] = {
    "expired": oidc(**{"id-token": jwt(-60)}),
    "none": oidc(),
    "no client": oidc(**{"client-id": ""}),
    "no issuer": oidc(**{"idp-issuer-url": ""}),
    "unknown provider": {"auth-provider": {"name": "keystone"}},
}


@pytest.mark.parametrize("name", NO_TOKEN)
def test_a_missing_oidc_token_is_an_error(both: Both, recorder: Recorder, name: str) -> None:
    """The message is that of kubectl."""
    theirs, ours = both.ask(config(recorder.url, recorder.authority.certificate, NO_TOKEN[name])).complaints
    assert ours == theirs


@pytest.mark.parametrize("name", ["azure", "gcp"])
def test_the_replacement_of_a_removed_provider_is_named(both: Both, recorder: Recorder, name: str) -> None:
    """The plugin does so in one line."""
    user = {"auth-provider": {"name": name}}
    pair = both.ask(config(recorder.url, recorder.authority.certificate, user))
    instead = {"azure": "kubelogin", "gcp": "gke-gcloud-auth-plugin"}[name]
    first = f"error: The {name} auth plugin has been removed"
    assert pair.kubectl.stderr.startswith(first)
    assert instead in pair.kubectl.stderr
    assert pair.spread.error == f"{first}: use the credential plugin {instead}"


def test_a_user_without_credentials_is_anonymous(both: Both, recorder: Recorder) -> None:
    """Kubectl prompts for a name and a password, while the plugin sends no credentials."""
    pair = both.ask(config(recorder.url, recorder.authority.certificate, {}))
    assert pair.kubectl.stdout == "Please enter Username: "
    headers = [request.who["headers"] for request in recorder.requests if request.by_plugin]
    assert headers
    assert not any(headers)


def test_refused_credentials_are_an_error(behind: Faulty, both: Both) -> None:
    """The apiserver does not know the token, and accepts no password."""
    server, authority = behind.cluster.api.server, behind.authority.certificate
    pair = both.ask(config(server, authority, {"token": "unknown-secret"}))
    assert pair.complaints == ("error: You must be logged in to the server (Unauthorized)",) * 2
    pods = ("get", "--raw", "/api/v1/namespaces/default/pods")
    pair = both.ask(config(server, authority, {"username": "a", "password": "word"}), asking=pods)
    assert pair.complaints[0] == pair.complaints[1]
    assert 'User "system:anonymous" cannot list resource "pods"' in pair.spread.error
