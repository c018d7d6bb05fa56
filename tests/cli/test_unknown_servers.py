"""A live server of a version that is not known: the exit status, the report, and ``--server-version``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubectl_spread.kube.features import NEWEST_MINOR, NEWEST_RELEASED_MINOR, OLDEST_MINOR
from tests.builders import Json
from tests.cli.test_identity import Routed
from tests.cli.test_requests import WithoutNodes, check

NEWEST = f"1.{NEWEST_MINOR}"
KNOWN = f"1.{OLDEST_MINOR} to {NEWEST} are known; --server-version chooses one"


def version(major: str, minor: str, **more: str) -> Json:
    return {"major": major, "minor": minor, "gitVersion": f"v{major}.{minor}.0", **more}


@pytest.mark.parametrize(
    "served",
    [
        version("1", str(NEWEST_MINOR + 1)),
        version("1", "99"),
        version("1", "99+", gitVersion="v1.99.0-alpha.1"),
        version("1", "99", emulationMajor="1", emulationMinor="98"),
    ],
    ids=["next", "1.99", "pre-release", "emulating"],
)
@pytest.mark.parametrize("fail_on", ["error", "never"])
def test_a_newer_server_is_evaluated_as_the_newest_known_minor_and_not_with_status_0(
    served: Json, fail_on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Routed, "version", served)
    outcome = check(Routed, tmp_path, "-o", "json", "--fail-on", fail_on)
    assert outcome.exit_code == 2
    cluster = json.loads(outcome.stdout)["cluster"]
    newer = cluster["warnings"][0]
    assert f"is newer than {NEWEST}, the newest that is known: evaluated as {NEWEST}" in newer
    assert f"error: {newer}" in outcome.stderr.splitlines()
    assert (cluster["evaluatedAs"], cluster["versionSource"]) == (NEWEST, "live")


@pytest.mark.parametrize(
    ("served", "text"),
    [
        (version("1", str(OLDEST_MINOR - 1)), f"1.{OLDEST_MINOR - 1}"),
        (version("1", "37", emulationMinor="26"), "1.26"),
        (version("2", "37"), "2.37"),
        (version("0", "37"), "0.37"),
    ],
    ids=["older", "emulates an older one", "2.37", "0.37"],
)
def test_a_server_that_is_older_or_of_another_major_is_refused(
    served: Json, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Routed, "version", served)
    outcome = check(Routed, tmp_path, "-o", "json")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == f"error: the server's version: Kubernetes {text} is not known ({KNOWN})\n"


@pytest.mark.parametrize("served", [version("1", "99"), version("2", "37"), version("1", "20")])
def test_the_user_chooses_the_version_of_a_server_that_is_not_known(
    served: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Routed, "version", served)
    outcome = check(Routed, tmp_path, "--server-version", f"1.{NEWEST_RELEASED_MINOR}")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert f"evaluated as 1.{NEWEST_RELEASED_MINOR}" in outcome.stdout


NOT_LOOKED_UP = "error: --expect-domains: no nodes were read, and only nodes tell the domains"


@pytest.mark.parametrize(
    ("server", "arguments", "message"),
    [
        (Routed, ("zome=3",), 'error: --expect-domains: no node has the label "zome"; did you mean "zone"?'),
        (WithoutNodes, ("zone=3",), NOT_LOOKED_UP),
        (Routed, ("zone=3", "--select", "SPR1"), NOT_LOOKED_UP),
    ],
    ids=["misspelt", "forbidden", "not needed"],
)
def test_a_live_topology_key_that_cannot_be_looked_up_is_an_error(
    server: type[Routed], arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    outcome = check(server, tmp_path, "--expect-domains", *arguments)
    assert outcome.exit_code == 2
    assert message in outcome.stderr


def test_a_pre_release_that_is_known_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Routed, "version", version("1", f"{NEWEST_MINOR}+"))
    outcome = check(Routed, tmp_path)
    assert outcome.exit_code == 0
    assert f"Kubernetes {NEWEST} is evaluated as its pre-release" in outcome.stderr
