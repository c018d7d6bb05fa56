"""A real bash, zsh and fish complete ``kubectl spread`` through the real kubectl, with names of a real cluster."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pexpect
import pytest

from tests.builders import constraint
from tests.commands import BIN
from tests.controlplane import binaries
from tests.controlplane.cluster import ControlPlane
from tests.e2e.faulty import NAMESPACE, OWNER
from tests.e2e.manifests import pod

pytestmark = pytest.mark.e2e

BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[a-zA-Z]|\][^\x07]*\x07|[=>])|[\r\x07\x08]")


@pytest.fixture(scope="module")
def cluster(faulty_cluster: ControlPlane) -> ControlPlane:
    """Return a cluster with two Deployments, some pods and the usual nodes."""
    for name in ("web", "website", "api"):
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        faulty_cluster.api.create(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "spec": {"selector": {"matchLabels": labels}, "template": template},
            }
        )
    return faulty_cluster


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory of PATH with kubectl, the plugin and its completion program."""
    path = tmp_path_factory.mktemp("path")
    for name in ("kubectl-spread", "kubectl_complete-spread"):
        (path / name).symlink_to(BIN / name)
    (path / "kubectl").symlink_to(binaries.kubectl())
    return path


@pytest.fixture
def environment(cluster: ControlPlane, directory: Path, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a shell."""
    variables = {**cluster.environment(), "HOME": str(tmp_path), "PATH": f"{directory}{os.pathsep}{os.environ['PATH']}"}
    return {**variables, "PS1": "$ ", "TERM": "dumb", "INPUTRC": "/dev/null", "ZDOTDIR": str(tmp_path)}


def need(program: str) -> None:
    """Skip where a shell is not installed; on CI, fail."""
    missing = shutil.which(program) is None or (program == "bash" and not BASH_COMPLETION.exists())
    if missing and os.environ.get("CI"):
        pytest.fail(f"{program}, or its completion, is not installed")
    if missing:
        pytest.skip(f"{program}, or its completion, is not installed")


class Shell:
    """An interactive shell, and a user who presses TAB."""

    def __init__(self, command: str, setup: list[str], environment: Mapping[str, str]) -> None:
        """Start the shell and enable completion."""
        program, *arguments = shlex.split(command)
        self._child = pexpect.spawn(
            program, arguments, env=dict(environment), encoding="utf-8", timeout=60, dimensions=(200, 200)
        )
        self._child.delaybeforesend = None
        for line in setup:
            self._child.sendline(line)
        self._child.sendline("echo ready-$((1+1))")
        self._child.expect("ready-2")

    def press(self, text: str, expected: Sequence[str]) -> str:
        """Type a text, press TAB repeatedly, and return the output once it has all expected words."""
        self._child.send(f"{text}\t")
        screen, end = "", time.monotonic() + 60
        again = time.monotonic() + 3
        while time.monotonic() < end and not all(words in screen for words in expected):
            with suppress(pexpect.TIMEOUT):
                screen = _ESCAPES.sub("", screen + self._child.read_nonblocking(4096, timeout=0.5))
            if time.monotonic() > again:
                # For several candidates bash first writes their common beginning, and shows them at the third TAB.
                self._child.send("\t")
                again += 3
        self._child.send("\x15")
        return screen

    def close(self) -> None:
        """End the shell."""
        self._child.close(force=True)


@pytest.fixture(params=["bash", "zsh"])
def shell(request: pytest.FixtureRequest, environment: dict[str, str]) -> Iterator[Shell]:
    """Return an interactive shell with kubectl's own completion, and ours for the program itself."""
    need(request.param)
    begin = [f"source {BASH_COMPLETION}"] if request.param == "bash" else ["autoload -U compinit", "compinit -u"]
    setup = [f"source <({program} completion {request.param})" for program in ("kubectl", "kubectl-spread")]
    command = "bash --norc --noprofile -i" if request.param == "bash" else "zsh -f -i"
    with closing(Shell(command, [*begin, *setup], environment)) as interactive:
        yield interactive


PRESSED: Mapping[str, list[str]] = {
    "kubectl spread ch": ["kubectl spread check "],
    "kubectl spread check --name": ["kubectl spread check --namespace"],
    f"kubectl spread explain -n {NAMESPACE} deploy/we": ["deploy/web", "deploy/website"],
    f"kubectl spread check -n {NAMESPACE} deployment ap": [f"-n {NAMESPACE} deployment api "],
    "kubectl spread check -n sho": [f"kubectl spread check -n {NAMESPACE} "],
    "kubectl spread check --fail-on=war": ["--fail-on=warning"],
    "kubectl-spread ch": ["kubectl-spread check "],
    f"kubectl-spread check -n {NAMESPACE} deployment ap": [f"-n {NAMESPACE} deployment api "],
}


def test_tab_completes_commands_flags_names_and_values(shell: Shell) -> None:
    """This works through kubectl and for the program itself; the names are those of the cluster."""
    for text, expected in PRESSED.items():
        screen = shell.press(text, expected)
        assert all(words in screen for words in expected), (text, screen)


def test_the_shell_completes_files(shell: Shell, tmp_path: Path) -> None:
    """The word after ``-f`` is completed as for any other command."""
    (tmp_path / "manifest.yaml").touch()
    assert "manifest.yaml" in shell.press(f"kubectl spread check -f {tmp_path}/mani", ["manifest.yaml"])


def test_fish_completes_words(environment: dict[str, str]) -> None:
    """It prints its candidates without a terminal."""
    need("fish")
    for text, expected in PRESSED.items():
        word = text.rpartition(" ")[2]
        program = text.partition(" ")[0]
        line = f"{program} completion fish | source; complete -C {shlex.quote(text)}"
        completed = subprocess.run(
            ["fish", "--no-config", "-c", line], check=True, capture_output=True, text=True, env=environment
        )
        candidates = [candidate.partition("\t")[0] for candidate in completed.stdout.splitlines()]
        last_words = [words.split()[-1] for words in expected]
        assert [words for words in candidates if words.startswith(word)], (text, completed.stdout)
        assert set(last_words) <= set(candidates), (text, completed.stdout)


def through_kubectl(environment: Mapping[str, str], *words: str) -> tuple[list[str], int]:
    """Return the candidates that kubectl gives a shell, and its directive."""
    completed = subprocess.run(
        ["kubectl", "__complete", "spread", *words],
        check=True,
        capture_output=True,
        text=True,
        env=dict(environment),
        timeout=60,
    )
    *lines, last = completed.stdout.splitlines()
    # kubectl itself prints these lines; the plugin prints none.
    assert all(line.startswith(("[Debug] ", "Completion ended ")) for line in completed.stderr.splitlines()), (
        completed.stderr
    )
    return [line.partition("\t")[0] for line in lines], int(last.removeprefix(":"))


LIVE: Mapping[str, list[str]] = {
    f"check -n {NAMESPACE} deploy/": ["deploy/api", "deploy/web", "deploy/website"],
    f"check -n {NAMESPACE} deploy/web deploy/": ["deploy/api", "deploy/website"],
    f"check -n {NAMESPACE} deployment web web": ["website"],
    f"check -n {NAMESPACE} web-0": [f"web-0{number}" for number in range(10)],
    f"explain -n {NAMESPACE} pod/web-29": ["pod/web-29"],
    "check -n sho": [NAMESPACE],
    f"check --exclude-namespace default,{NAMESPACE[:2]}": [f"default,{NAMESPACE}"],
    "check --field-selector spec.nodeName=a": ["spec.nodeName=a1", "spec.nodeName=a2"],
    "domains node a": ["a1", "a2"],
    "domains -A hostname a1": ["a1"],
    "domains zone a": ["a"],
    "domains zone=": ["zone=a", "zone=b", "zone=c"],
    "simulate --lose zone=": ["zone=a", "zone=b", "zone=c"],
    "simulate -A --drain zone=a,zone=": ["zone=a,zone=b", "zone=a,zone=c"],
    "simulate --lose b": ["b1", "b2"],
    "simulate --add topology.kubernetes.io/zone=": [f"topology.kubernetes.io/zone={zone}" for zone in "abc"],
    "simulate -f x.json --lose zone=": [],
    "check -A deploy/": [],
    "check -f x.yaml deploy/": [],
    "check --context nowhere deploy/": [],
    "check --as nobody -n sho": [],
}


@pytest.mark.parametrize("line", LIVE)
def test_names_of_the_cluster_are_candidates_as_the_options_say(environment: dict[str, str], line: str) -> None:
    """Nothing is printed where the API server does not answer."""
    candidates, directive = through_kubectl(environment, *line.split(" "))
    assert candidates == LIVE[line]
    assert directive == 4


def test_only_the_first_names_of_a_long_list_are_requested(cluster: ControlPlane, environment: dict[str, str]) -> None:
    """The apiserver limits the list, which is requested once, without the objects."""
    names = [f"many-{number:03}" for number in range(520)]
    with cluster.namespace() as namespace:
        spread = [constraint(match=["rev"])]
        cluster.api.create_all(
            pod(name, spread, labels={"app": "many"}, namespace=namespace, metadata={"ownerReferences": [OWNER]})
            for name in names
        )
        before = cluster.audit_position()
        candidates, _ = through_kubectl(environment, "check", "-n", namespace, "many-")
    assert candidates == names[:500]
    events = [event for event in cluster.audited(before) if event.get("userAgent", "").startswith("kubectl-spread/")]
    # A watch of an earlier test is logged when it ends.
    requests = [event["requestURI"] for event in events if event["verb"] != "watch"]
    assert len(requests) == 1, requests
    assert "limit=500" in requests[0]


def test_completion_does_not_wait_long_for_a_silent_server(environment: dict[str, str]) -> None:
    import socket  # noqa: PLC0415 - only here

    with socket.create_server(("127.0.0.1", 0)) as server:
        begin = time.monotonic()
        address = f"https://127.0.0.1:{server.getsockname()[1]}"
        candidates, _ = through_kubectl(environment, "check", "--server", address, "deploy/")
    assert candidates == []
    assert time.monotonic() - begin < 15
