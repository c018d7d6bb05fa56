"""In any environment, a run that cannot be done ends with one line on stderr and exit status 2.

Exit status 1 means findings, so no unexpected error may end with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from kubectl_spread.cli import cli
from kubectl_spread.sources.apiserver import paging, responses
from tests.builders import pod_json
from tests.commands import SPREAD
from tests.hostile.commands import as_nobody, check, open_to_all
from tests.sources.server import Reply, serve

UNKNOWN: Final = 54321
"""A user without an entry in passwd."""
LONG: Final = "a" * 300
DIGITS: Final = "9" * 5000
NOT_UTF8: Final = os.fsdecode(b"\xff")
NOWHERE: Final = "https://127.0.0.1:1"


@dataclass(frozen=True)
class Case:
    """A run in the directory of the fixture, and a part of the line that it ends with.

    Attributes:
        arguments: The command line.
        words: A part of the line.
        environment: Variables to set; None to unset.
        stdin: Whether standard input is open.
    """

    arguments: Sequence[str]
    words: str
    environment: Mapping[str, str | None] = field(default_factory=dict)
    stdin: bool = True


CASES: Final = {
    "HTTPS_PROXY": Case(["check", "-s", "https://0.0.0.0:1"], "proxy", {"HTTPS_PROXY": "http://a b"}),
    "tls-server-name with an empty label": Case(
        ["check", "-s", NOWHERE, "--tls-server-name", ".x"], 'invalid tls-server-name ".x"'
    ),
    "tls-server-name that is not ASCII": Case(
        ["check", "-s", NOWHERE, "--tls-server-name", "é..x"], 'invalid tls-server-name "é..x"'
    ),
    "tls-server-name with a long label": Case(
        ["check", "-s", NOWHERE, "--tls-server-name", f"{'a' * 64}.x"], "invalid tls-server-name"
    ),
    "a server with a long label": Case(["check", "-s", f"https://{'a' * 64}.x"], "label empty or too long"),
    "-o to a link to itself": Case(
        ["check", "-f", "pod.yaml", "-o", "html=LOOP"], "cannot write LOOP: Too many levels"
    ),
    "-f of a link to itself": Case(["check", "-f", "LOOP"], 'the path "LOOP" cannot be accessed'),
    "closed standard input": Case(["check", "-f", "-"], "error reading -: bad file descriptor", stdin=False),
    "closed standard input, merge": Case(["merge", "-f", "-"], "error reading -: bad file descriptor", stdin=False),
    "a long name, -f": Case(["check", "-f", LONG], "cannot be accessed: file name too long"),
    "a long name, KUBECONFIG": Case(["check"], "file name too long", {"KUBECONFIG": LONG}),
    "a long name, -o": Case(["check", "-f", "pod.yaml", "-o", f"json={LONG}"], "File name too long"),
    "a namespace that is not UTF-8": Case(["check", "-s", NOWHERE, "-n", NOT_UTF8], "argument is not UTF-8 text"),
    "--as that is not UTF-8": Case(["check", "-s", NOWHERE, "--as", NOT_UTF8], "characters that cannot be sent"),
    "a cluster name that is not UTF-8": Case(
        ["check", "-f", "pod.yaml", "-o", "json", "--cluster-name", NOT_UTF8], "argument is not UTF-8 text"
    ),
    "--request-timeout of 400 digits": Case(
        ["check", "-s", NOWHERE, "--request-timeout", "9" * 400], "Invalid timeout value"
    ),
    "--request-timeout of 30 digits and a unit": Case(
        ["check", "-s", NOWHERE, "--request-timeout", f"{'9' * 30}h"], "Invalid timeout value"
    ),
    "--request-timeout of 100 years": Case(["check", "-s", NOWHERE, "--request-timeout", "876000h"], "was refused"),
    "an empty namespace": Case(["check", "-n", ""], "--namespace: the value is empty"),
    "an empty list": Case(
        ["check", "--exclude-namespace", "a", "--exclude-namespace", ","], "--exclude-namespace: the"
    ),
    "a cluster with -f": Case(["check", "-f", "pod.yaml", "--context", "c"], "--context: no cluster is contacted"),
    "a cluster with --manifests": Case(["check", "--manifests", "--as", "u", "pod.yaml"], "--as: no cluster is"),
    "a timeout with -f": Case(
        ["explain", "p", "-f", "pod.yaml", "--request-timeout", "3parsecs"],
        "--request-timeout: no cluster is contacted",
    ),
    "a cluster with domains -f": Case(["domains", "-f", "pod.yaml", "--server", NOWHERE], "--server: no cluster is"),
    "an endless kubeconfig": Case(["check"], "/dev/zero: larger than 16 MiB", {"KUBECONFIG": "/dev/zero"}),
    "an endless quote": Case(["check", "-f", "quote.yaml"], "quote.yaml:2: the quote that opens here is never closed"),
    "--server-version": Case(["check", "-f", "pod.yaml", "--server-version", f"1.{DIGITS}"], "--server-version: "),
    "--to": Case(["check", "-f", "pod.yaml", "--to", f"1.{DIGITS}"], "--to: "),
    "--expect-domains": Case(["check", "-f", "pod.yaml", "--expect-domains", f"zone={DIGITS}"], "--expect-domains: "),
    "--by": Case(["check", "-f", "pod.yaml", "--by", DIGITS], "--by: "),
    "--replicas": Case(["explain", "p", "-f", "pod.yaml", "--replicas", f"+{DIGITS}"], "--replicas"),
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory that every user may search, with a manifest, links and a directory for its owner alone."""
    open_to_all(tmp_path)
    pod = json.dumps(pod_json("p"))
    (tmp_path / "pod.yaml").write_text(pod)
    (tmp_path / "quote.yaml").write_text(f"kind: Pod\nmetadata: '{'x' * (1 << 20)}\n")
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed/pod.yaml").write_text(pod)
    (tmp_path / "link.yaml").symlink_to("closed/pod.yaml")
    (tmp_path / "links").mkdir()
    (tmp_path / "links/link.yaml").symlink_to("../closed/pod.yaml")
    (tmp_path / "LOOP").symlink_to("LOOP")
    (tmp_path / "closed").chmod(0 if os.geteuid() else 0o700)
    return tmp_path


def run_script(directory: Path, case: Case) -> tuple[int, list[str]]:
    """Return the exit status and the lines on stderr of the console script."""
    environment = {**os.environ, "KUBECONFIG": "", "NO_PROXY": "127.0.0.1", **case.environment}
    command = [str(SPREAD), *case.arguments]
    if not case.stdin:
        command = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    process = subprocess.run(
        command,
        cwd=directory,
        env={name: value for name, value in environment.items() if value is not None},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert not process.stdout
    return process.returncode, [line for line in process.stderr.splitlines() if not line.startswith("evaluated as")]


@pytest.mark.parametrize("name", CASES)
def test_an_impossible_run_ends_with_one_line(directory: Path, name: str) -> None:
    case = CASES[name]
    status, lines = run_script(directory, case)
    assert (status, len(lines)) == (2, 1), lines
    assert case.words in lines[0]


FORBIDDEN: Final = {
    "KUBECONFIG in a directory that may not be searched": (
        ("-s", NOWHERE),
        {"KUBECONFIG": "closed/config"},
        "error: error loading config file closed/config: permission denied\n",
    ),
    "HOME in a directory that may not be searched": (
        ("-s", NOWHERE),
        {"KUBECONFIG": "", "HOME": "closed"},
        "error: error loading config file closed/.kube/config: permission denied\n",
    ),
    "a file through a link": (
        ("-f", "link.yaml"),
        {},
        'error: the path "link.yaml" cannot be accessed: permission denied\n',
    ),
    "a link in a directory": (("-f", "links"), {}, "error: error reading links/link.yaml: permission denied\n"),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_file_that_the_user_may_not_read_is_named(
    directory: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, environment, line = FORBIDDEN[name]
    monkeypatch.chdir(directory)
    monkeypatch.setenv("KUBECONFIG", "/no/where")
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    status, stderr = as_nobody(*arguments)
    assert status == 2
    assert stderr.endswith(line)


def test_a_user_without_a_home_has_no_kubeconfig(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is the same as with an empty home."""
    monkeypatch.chdir(directory)
    for variable in ("HOME", "KUBECONFIG"):
        monkeypatch.delenv(variable, raising=False)
    if os.geteuid():
        pytest.skip("only root can be another user")
    refused = "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?\n"
    assert check("-s", NOWHERE) == (2, refused)
    assert as_nobody("-s", NOWHERE, user=UNKNOWN) == (2, refused)


def test_files_are_read_without_standard_input(directory: Path) -> None:
    case = Case(["check", "-f", "pod.yaml", "-o", "json=out"], "", stdin=False)
    assert run_script(directory, case) == (0, [])
    assert json.loads((directory / "out").read_text())["kind"] == "SpreadReport"


VERSION: Final = {"major": "1", "minor": "37"}


@pytest.mark.parametrize("part", ["major", "minor"])
def test_a_server_version_of_5000_digits_is_an_error(directory: Path, part: str) -> None:
    with serve(Reply(body=json.dumps({**VERSION, part: DIGITS}).encode())) as server:
        status, lines = run_script(directory, Case(["check", "-s", server.url], ""))
    assert (status, len(lines)) == (2, 1), lines
    assert "error: the server says that its version is" in lines[0]


def test_a_revision_of_5000_digits_is_ignored(directory: Path) -> None:
    """The annotation does not count as a number."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    metadata = {"name": "r", "uid": "u", "annotations": {"deployment.kubernetes.io/revision": DIGITS}}
    pod = pod_json("p")
    pod["metadata"]["ownerReferences"] = [owner]
    (directory / "owned.json").write_text(
        json.dumps({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata}) + json.dumps(pod)
    )
    status, _ = run_script(directory, Case(["check", "-f", "owned.json", "-o", "json=out"], ""))
    assert status == 0


def raising(error: BaseException) -> Callable[..., object]:
    def fail(*_: object) -> object:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            MemoryError(),
            "error: there is not enough memory: check fewer objects at once, or set a smaller --chunk-size",
        ),
        (KeyError("secret"), "error: unexpected KeyError at run/collect.py:"),
        (EOFError("secret"), "error: unexpected EOFError at run/collect.py:"),
        (RecursionError("secret"), "error: unexpected RecursionError at run/collect.py:"),
        (PermissionError(13, "Permission denied", "x\x1b"), "error: x\\x1b: permission denied (unexpected; run"),
        (TimeoutError(110, "Timed out"), "error: timed out (unexpected; run"),
    ],
)
def test_an_unexpected_error_is_one_line_without_its_values(
    error: BaseException, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is raised in a function that every check calls."""
    monkeypatch.setattr("kubectl_spread.run.collect.target_for", raising(error))
    invocation = CliRunner().invoke(cli, ["check", "-f", "-"])
    assert (invocation.exit_code, invocation.stdout) == (2, "")
    assert invocation.stderr.startswith(line)
    assert invocation.stderr.count("\n") == 1
    assert "secret" not in invocation.stderr


@pytest.mark.parametrize("arguments", [(), ("--watch",)], ids=["once", "watch"])
def test_an_error_in_a_thread_is_one_line(arguments: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are read in threads; an error there ends the program like any other error."""
    check_answer = responses.check

    def failing(*arguments: Any, **named: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise KeyError("secret")
        check_answer(*arguments, **named)

    monkeypatch.setattr(responses, "check", failing)
    monkeypatch.setenv("KUBECONFIG", "/no/where")
    with serve(Reply(body=json.dumps(VERSION).encode())) as server:
        invocation = CliRunner().invoke(cli, ["check", "-s", server.url, *arguments])
    assert (invocation.exit_code, invocation.stdout) == (2, "")
    assert invocation.stderr.startswith("error: unexpected KeyError at ")
    assert invocation.stderr.count("\n") == 1
    assert "secret" not in invocation.stderr


@pytest.mark.parametrize("flag", ["-v", "--verbose", "-Av"])
def test_verbose_prints_the_traceback(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_spread.run.collect.target_for", raising(KeyError("x\x1b")))
    invocation = CliRunner().invoke(cli, ["check", "-f", "-", flag])
    assert invocation.exit_code == 2
    first, *_, last = invocation.stderr.splitlines()
    assert first.startswith("Traceback")
    assert last.startswith("error: unexpected KeyError")
    assert "\x1b" not in invocation.stderr


def test_every_command_has_verbose() -> None:
    for name in cli.list_commands(cli.make_context("x", ["rules"])):
        invocation = CliRunner().invoke(cli, [name, "--help"])
        assert "--verbose" in invocation.stdout, name


_INTERRUPTING: Final = """
import _signal, os, sys
module = sys.argv.pop(1)
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), _signal.SIGINT)
_signal.signal(_signal.SIGINT, _signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
from kubectl_spread.__main__ import main
main()
"""
"""Sends SIGINT to itself when a module is imported."""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(
    "module",
    ["enum", "kubectl_spread.cli", "click", "threading", "kubectl_spread.cli.check", "kubectl_spread.run.collect"],
)
def test_ctrl_c_during_an_import_prints_nothing(directory: Path, module: str) -> None:
    command = [sys.executable, "-c", _INTERRUPTING, module, "check", "-f", "pod.yaml"]
    completed = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout, completed.stderr) == (130, "", "")


_WITHOUT_SHA3 = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("_hashlib", "_sha3"):
            raise ImportError("failed to map segment")
sys.meta_path.insert(0, Missing())
from kubectl_spread.__main__ import main
main()
"""
"""Cannot load two modules of hashlib, which logs that and continues without them."""


def test_what_hashlib_logs_about_modules_that_cannot_be_loaded_is_not_printed(directory: Path) -> None:
    command = [sys.executable, "-c", _WITHOUT_SHA3, "check", "-f", "pod.yaml", "--server-version", "1.37"]
    completed = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stderr) == (0, "")


@pytest.mark.parametrize("size", [18, 20, 22, 24, 28, 32, 36, 40])
def test_a_lack_of_memory_at_any_time_is_one_line(directory: Path, size: int) -> None:
    """With the smaller sizes, in MiB, not even the imports succeed; the larger ones may be enough on some systems."""
    resource = pytest.importorskip("resource")
    limit = size << 20
    completed = subprocess.run(
        [sys.executable, "-m", "kubectl_spread", "check", "-f", "pod.yaml", "--server-version", "1.37"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    if completed.returncode == 0:
        assert completed.stdout
    else:
        assert (completed.returncode, completed.stderr[:7], completed.stderr.count("\n")) == (2, "error: ", 1)


def test_a_thread_without_memory_is_an_error() -> None:
    with pytest.raises(MemoryError):
        paging.background(raising(MemoryError())).result(10)


def test_a_lack_of_memory_is_an_error(directory: Path) -> None:
    """The error is a real MemoryError, in any function."""
    resource = pytest.importorskip("resource")
    large = directory / "large.json"
    with large.open("w") as file:
        file.write('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {')
        file.write(",".join(f'"{index}": "{"x" * 60}"' for index in range(3_000_000)))
        file.write("}}}")
    limit = 400 << 20
    process = subprocess.run(
        [SPREAD, "check", "-f", "large.json"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert process.returncode == 2
    assert process.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in process.stderr
