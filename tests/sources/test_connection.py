"""Kubeconfig files and flags mean what they mean to kubectl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_spread.errors import SourceError, UsageError
from kubectl_spread.sources.auth import connection
from kubectl_spread.sources.auth.connection import ConnectionFlags, Settings, settings

BETA = "client.authentication.k8s.io/v1beta1"
PLUGIN = {"apiVersion": BETA}


def config(**changes: Any) -> str:
    base: dict[str, Any] = {
        "clusters": [
            {
                "name": "c",
                "cluster": {"server": "https://c", "certificate-authority": "ca.pem", "tls-server-name": "n"},
            },
            {"name": "d", "cluster": {"server": "https://d", "certificate-authority-data": "AA=="}},
        ],
        "users": [
            {"name": "u", "user": {"client-certificate": "u.pem", "client-key-data": "AA=="}},
            {"name": "v", "user": {"exec": {"command": "./plugin", "apiVersion": BETA, "env": None}}},
        ],
        "contexts": [
            {"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
            {"name": "y", "context": {"cluster": "d", "user": "v"}},
            {"name": "broken", "context": {"cluster": "gone", "user": "u"}},
        ],
        "current-context": "x",
    }
    return json.dumps(base | changes)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(config())
    for name in ("ca", "own", "u", "c", "k"):
        (tmp_path / f"{name}.pem").touch()
    return path


def settings_of(file: Path, **flags: Any) -> Settings:
    return settings(ConnectionFlags(**flags), {"KUBECONFIG": str(file)})


def test_settings_of_the_current_context(file: Path) -> None:
    assert settings_of(file) == Settings(
        cluster={
            "server": "https://c",
            "certificate-authority": str(file.parent / "ca.pem"),
            "tls-server-name": "n",
        },
        user={"client-certificate": str(file.parent / "u.pem"), "client-key-data": "AA=="},
        namespace="team",
        context="x",
        cluster_name="c",
    )


@pytest.mark.parametrize(
    ("flags", "context", "name"),
    [
        pytest.param({}, "x", "c", id="current context"),
        pytest.param({"context": "y"}, "y", "d", id="another context"),
        pytest.param({"user": "v"}, "x", "c", id="another user of the same cluster"),
        pytest.param({"cluster": "c"}, "x", "c", id="the cluster of the context"),
        pytest.param({"cluster": "d"}, "", "d", id="another cluster than the context's"),
        pytest.param({"server": "https://s"}, "", "", id="a server that the kubeconfig does not name"),
    ],
)
def test_what_the_cluster_is_called(file: Path, flags: dict[str, Any], context: str, name: str) -> None:
    """A name is only told where it stands for the server that is asked."""
    connection_settings = settings_of(file, **flags)
    assert (connection_settings.context, connection_settings.cluster_name) == (context, name)


def test_a_cluster_without_a_server_has_no_name(file: Path) -> None:
    """It is another one that is asked then: localhost, or the cluster of the pod."""
    file.write_text(config(clusters=[{"name": "c", "cluster": {}}]))
    assert (settings_of(file).context, settings_of(file).cluster_name) == ("", "")


@pytest.mark.parametrize(
    ("flags", "cluster"),
    [
        pytest.param(
            {"server": "https://s"},
            {"server": "https://s", "certificate-authority": "/ca.pem"},
            id="a server drops the TLS name",
        ),
        pytest.param(
            {"insecure_skip_tls_verify": True},
            {"server": "https://c", "tls-server-name": "n", "insecure-skip-tls-verify": True},
            id="insecure drops the authority",
        ),
        pytest.param(
            {"certificate_authority": "/own.pem", "tls_server_name": "m"},
            {"server": "https://c", "tls-server-name": "m", "certificate-authority": "/own.pem"},
            id="authority and TLS name",
        ),
        pytest.param(
            {"cluster": "d", "certificate_authority": "/own.pem"},
            {"server": "https://d", "certificate-authority": "/own.pem"},
            id="authority replaces data",
        ),
        pytest.param({"context": "y"}, {"server": "https://d", "certificate-authority-data": "AA=="}, id="context"),
    ],
)
def test_cluster_flags(file: Path, flags: dict[str, Any], cluster: dict[str, Any]) -> None:
    assert settings_of(file, **placed(file, flags)).cluster == placed(file, cluster)


def placed(file: Path, values: dict[str, Any]) -> dict[str, Any]:
    """Return values with their files next to the kubeconfig."""
    return {
        key: str(file.parent / value[1:]) if str(value).endswith(".pem") else value for key, value in values.items()
    }


@pytest.mark.parametrize(
    ("flags", "user"),
    [
        pytest.param({"user": "v", "token": "t"}, {"token": "t"}, id="token next to the plugin"),
        pytest.param(
            {"client_certificate": "/c.pem", "client_key": "/k.pem"},
            {"client-certificate": "/c.pem", "client-key": "/k.pem"},
            id="certificate replaces data",
        ),
        pytest.param(
            {"user": "v", "as_user": "bob", "as_groups": ("a", "b"), "as_uid": "1", "as_user_extra": ("k=1", "k=2=3")},
            {"as": "bob", "as-groups": ["a", "b"], "as-uid": "1", "as-user-extra": {"k": ["1", "2=3"]}},
            id="impersonation",
        ),
    ],
)
def test_user_flags(file: Path, flags: dict[str, Any], user: dict[str, Any]) -> None:
    plugin = {"exec": {**PLUGIN, "command": str(file.parent / "plugin")}} if "user" in flags else {}
    assert settings_of(file, **placed(file, flags)).user == {**plugin, **placed(file, user)}


def test_a_plugin_given_as_a_path_is_relative_to_its_file(file: Path) -> None:
    command = settings_of(file, context="y").user["exec"]["command"]
    assert Path(command) == file.parent / "plugin"


def test_namespace(file: Path) -> None:
    assert settings_of(file, namespace="own").namespace == "own"
    assert settings_of(file, context="y").namespace == "default"


def test_the_first_of_several_files_wins(file: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.write_text(
        config(
            **{
                "current-context": "y",
                "clusters": [
                    {"name": "c", "cluster": {"server": "https://other"}},
                    {"name": "e", "cluster": {"server": "https://e"}},
                ],
            }
        )
    )
    listed = f"{tmp_path / 'missing'}::{file}:{second}"
    environment = {"KUBECONFIG": listed}
    assert settings(ConnectionFlags(), environment).cluster["server"] == "https://c"
    assert settings(ConnectionFlags(cluster="e"), environment).cluster["server"] == "https://e"


def test_without_any_file(tmp_path: Path) -> None:
    environment = {"KUBECONFIG": str(tmp_path / "missing")}
    assert settings(ConnectionFlags(), environment) == Settings({"server": "http://localhost:8080"}, {}, "default")
    assert settings(ConnectionFlags(server="localhost:1"), environment).cluster == {"server": "http://localhost:1"}
    environment["KUBERNETES_MASTER"] = "https://m"
    assert settings(ConnectionFlags(), environment).cluster == {"server": "https://m"}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"context": "z"}, 'context "z" does not exist'),
        ({"cluster": "z"}, 'cluster "z" does not exist'),
        ({"user": "z"}, 'auth info "z" does not exist'),
        ({"context": "broken"}, 'Error in configuration: cluster "gone" was not found for the context'),
        ({"as_groups": ("a",)}, "requesting uid, groups or user-extra for u without impersonating a user"),
        (
            {"insecure_skip_tls_verify": True, "certificate_authority": "own.pem"},
            "specifying a root certificates file with the insecure flag is not allowed",
        ),
        ({"kubeconfig": "/no/where"}, "error loading config file /no/where: no such file or directory"),
    ],
)
def test_settings_refuses(file: Path, flags: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    with pytest.raises(SourceError) as refused:
        settings_of(file, **flags)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("clusters: [", ":1: did not find expected node content", id="YAML"),
        pytest.param("a:\n\tb", ":2: found character", id="tab"),
        pytest.param("- a", ": Expected object, got array", id="list"),
        pytest.param("text", ": Expected object, got str", id="text"),
        pytest.param("users: [{name: 1}]", ": users[0].name: Expected str, got int", id="name"),
        pytest.param("users: [{user: {}}]", ": users[0]: Object missing required field name", id="no name"),
        pytest.param("current-context: gone", "", id="current context"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(SourceError) as refused:
        settings_of(path)
    beginning = f"error loading config file {path}{message}"
    if not message:
        beginning = "Error in configuration: context was not found for specified context: gone"
    assert str(refused.value).startswith(beginning)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "# nothing", "clusters: null\nusers: ~\n"])
def test_empty_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    assert settings_of(path).cluster == {"server": "http://localhost:8080"}


def test_all_that_is_wrong_is_one_line(tmp_path: Path) -> None:
    user = {"client-certificate": "gone", "client-key": "gone", "as-groups": ["a"]}
    path = tmp_path / "config"
    path.write_text(config(users=[{"name": "u", "user": user}]))
    with pytest.raises(SourceError) as refused:
        settings_of(path)
    message = str(refused.value)
    assert message.startswith("Error in configuration: unable to read client-cert ")
    assert message.count("; unable to read ") == 2
    assert "; requesting uid, groups or user-extra for u without impersonating a user; " in message
    assert "\n" not in message


def test_flags_keep_the_token_to_themselves() -> None:
    flags = ConnectionFlags(token="secret")
    assert "secret" not in repr(flags)
    assert "secret" not in repr(settings(flags, {"KUBECONFIG": "/no/where"}))


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("30", 30), ("30s", 30), ("1m30s", 90), ("1.5h", 5400), ("500ms", 0.5)]
)
def test_seconds(text: str, seconds: float) -> None:
    assert connection.seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1 s", "1d", "soon", "1.5"])
def test_seconds_refuses(text: str) -> None:
    with pytest.raises(UsageError, match=r"^Invalid timeout value"):
        connection.seconds(text)
