"""Kubeconfig files and the flags that overrule them, as the real kubectl reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.builders import Json
from tests.controlplane.processes import free_port
from tests.e2e.both import Both, matching_request
from tests.e2e.recorder import Recorder, record
from tests.kubeconfigs import config

pytestmark = pytest.mark.e2e


def base(recorder: Recorder, **user: object) -> Json:
    """Return a kubeconfig for the recorder."""
    return config(recorder.url, recorder.authority.certificate, dict(user))


def test_the_first_of_several_files_wins(both: Both, recorder: Recorder) -> None:
    """Nothing is added to an entry from a later file."""
    first = config(recorder.url, recorder.authority.certificate, {"token": "first"})
    second = config("https://127.0.0.1:1", None, {"token": "second", "as": "somebody"})
    second["users"].append({"name": "v", "user": {"token": "added"}})
    second["contexts"].append({"name": "y", "context": {"cluster": "c", "user": "v"}})
    second["current-context"] = "y"
    files = [both.write(first, "first"), both.directory / "missing", both.write(second, "second"), ""]
    listed = {"KUBECONFIG": os.pathsep.join(map(str, files))}
    both.run(environment=listed)
    assert matching_request(recorder).who["headers"] == [("Authorization", "Bearer first")]
    both.run("--context", "y", environment=listed)
    assert matching_request(recorder).who["headers"] == [("Authorization", "Bearer added")]


def test_the_current_context_may_be_in_another_file(both: Both, recorder: Recorder) -> None:
    """The first file with a current context decides."""
    content = base(recorder, token="a")
    del content["current-context"]
    files = [both.write(content, "first"), both.write("current-context: x\n", "second")]
    both.run(environment={"KUBECONFIG": os.pathsep.join(map(str, files))})
    assert matching_request(recorder).header("Authorization") == "Bearer a"


def test_paths_are_relative_to_their_file(both: Both, recorder: Recorder) -> None:
    """Certificates and token files are read next to the kubeconfig, not in the current directory."""
    pair = recorder.authority.client("bob", "bob")
    both.write("from-a-file\n", "inner/token")
    user = {
        "tokenFile": "token",
        "client-certificate": f"../{pair.certificate.relative_to(both.directory)}",
        "client-key": f"../{pair.key.relative_to(both.directory)}",
    }
    content = config(recorder.url, None, user, certificate_authority="../pki/ca.crt")
    path = both.write(content, "inner/config")
    both.run(environment={"KUBECONFIG": str(path)})
    request = matching_request(recorder)
    assert (request.header("Authorization"), request.certificate) == ("Bearer from-a-file", "bob")


def test_the_file_in_the_home_directory_is_the_default(both: Both, recorder: Recorder) -> None:
    """It is read without KUBECONFIG and without a flag."""
    both.write(base(recorder, token="home"), ".kube/config")
    both.run(environment={"KUBECONFIG": ""})
    assert matching_request(recorder).header("Authorization") == "Bearer home"


def test_a_flag_names_the_file(both: Both, recorder: Recorder) -> None:
    """No other file is merged with it."""
    both.write(base(recorder, token="environment"))
    path = both.write(base(recorder, token="flag"), "other")
    both.run("--kubeconfig", str(path))
    assert matching_request(recorder).header("Authorization") == "Bearer flag"


OVERRULED: Mapping[str, tuple[list[str], list[tuple[str, str]]]] = {
    "nothing": ([], [("Authorization", "Bearer a")]),
    "--token": (["--token", "flag"], [("Authorization", "Bearer flag")]),
    "--user": (["--user", "v"], [("Authorization", "Bearer b")]),
    "--context": (["--context", "y"], [("Authorization", "Bearer b")]),
    "--user before --context": (["--user", "u", "--context", "y"], [("Authorization", "Bearer a")]),
    "--token before --user": (["--user", "v", "--token", "flag"], [("Authorization", "Bearer flag")]),
}


@pytest.mark.parametrize("name", OVERRULED)
def test_flags_overrule_the_context(both: Both, recorder: Recorder, name: str) -> None:
    """One part of a context can be replaced without the others."""
    flags, headers = OVERRULED[name]
    content = base(recorder, token="a")
    content["users"].append({"name": "v", "user": {"token": "b"}})
    content["contexts"].append({"name": "y", "context": {"cluster": "c", "user": "v"}})
    both.ask(content, *flags)
    assert matching_request(recorder).who["headers"] == headers


def test_the_server_can_be_replaced(both: Both, recorder: Recorder) -> None:
    """The expected name in the certificate belongs to the replaced server, so it is dropped."""
    nowhere = f"https://127.0.0.1:{free_port()}"
    content = config(nowhere, recorder.authority.certificate, {"token": "a"}, tls_server_name="other.test")
    cluster = {"server": recorder.url, "certificate-authority": str(recorder.authority.certificate)}
    content["clusters"].append({"name": "d", "cluster": cluster})
    both.ask(content, "--server", recorder.url)
    matching_request(recorder)
    both.ask(content, "--cluster", "d")
    matching_request(recorder)
    both.ask(content, "--server", recorder.url, "--tls-server-name", "apiserver.test")
    assert matching_request(recorder).server_name == "apiserver.test"


def test_a_server_without_a_scheme_is_http(both: Both, tmp_path: Path) -> None:
    """This holds next to options of TLS too, so no credentials are sent."""
    with record(tmp_path, tls=False) as recorder:
        both.ask(config(f"127.0.0.1:{recorder.port}", recorder.authority.certificate, {"token": "a"}))
        assert matching_request(recorder).who["headers"] == []


def test_the_path_of_a_server_is_kept(both: Both, recorder: Recorder) -> None:
    """Each path of a request follows it, as behind Rancher."""
    content = config(f"{recorder.url}/k8s/one/", recorder.authority.certificate, {"token": "a"})
    both.ask(content, asking=("version",))
    assert all(request.target.startswith("/k8s/one/") for request in recorder.requests)
    assert "/k8s/one/version" in {request.target for request in recorder.requests if request.by_plugin}


REFUSED: Mapping[str, tuple[Json, list[str]]] = {
    "no such context": ({}, ["--context", "z"]),
    "no such cluster": ({}, ["--cluster", "z"]),
    "no such user": ({}, ["--user", "z"]),
    "groups without a user": ({"as-groups": ["a"]}, []),
    "key that is not there": ({"client-certificate": "pki/ca.crt", "client-key": "gone"}, []),
    "authority that is not there": ({}, ["--certificate-authority", "/gone"]),
    "insecure with an authority": (
        {"token": "a"},
        ["--insecure-skip-tls-verify", "--certificate-authority", "pki/ca.crt"],
    ),
    "no such file": ({}, ["--kubeconfig", "/no/where"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_contradictions_and_missing_parts_are_refused(
    both: Both, recorder: Recorder, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request is sent, and the message is that of kubectl."""
    monkeypatch.chdir(both.directory)
    user, flags = REFUSED[name]
    theirs, ours = both.ask(base(recorder, **user), *flags).complaints
    if name == "no such file":
        assert theirs == "error: stat /no/where: no such file or directory"
        assert ours == "error: error loading config file /no/where: no such file or directory"
    else:
        assert ours == theirs
    assert not [request for request in recorder.requests if request.by_plugin]


MALFORMED: Mapping[str, str] = {
    "another kind": 'no kind "Pod" is registered for version "v1"',
    "another version": 'no kind "Config" is registered for version "v2"',
    "a name twice": 'duplicate name "u" in list',
    "no YAML": "",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_named(both: Both, recorder: Recorder, name: str) -> None:
    """The message of kubectl about a duplicate name would show the token."""
    content = base(recorder, token="very-secret")
    if name == "a name twice":
        content["users"] *= 2
    changed = {"another kind": {"kind": "Pod"}, "another version": {"apiVersion": "v2"}}.get(name, {})
    pair = both.ask("{" if name == "no YAML" else {**content, **changed})
    theirs, ours = pair.complaints
    assert theirs.startswith(f'error: error loading config file "{both.directory}/config": ')
    assert ours.startswith(f"error: error loading config file {both.directory}/config:")
    assert MALFORMED[name] in theirs
    assert MALFORMED[name] in ours
    assert "very-secret" not in pair.spread.stderr


def test_missing_parts_of_a_context_are_named(both: Both, recorder: Recorder) -> None:
    """In these cases kubectl prompts for a user name, or connects to localhost:8080."""
    for part, what in (("user", "auth info"), ("cluster", "cluster")):
        content = base(recorder, token="a")
        content["contexts"][0]["context"][part] = "gone"
        answer = both.ask(content).spread
        assert answer.error == f'Error in configuration: {what} "gone" was not found for the context'
    assert not [request for request in recorder.requests if request.by_plugin]
