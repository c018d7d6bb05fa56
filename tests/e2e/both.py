"""The real kubectl and the plugin, side by side: the same kubeconfig, flags and environment."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.builders import Json
from tests.controlplane import binaries
from tests.e2e.recorder import Recorder, Request
from tests.e2e.spread import Answer, Plugin, Program

_AMBIENT = ("KUBECONFIG", "KUBERNETES_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD")
ASK = ("get", "--raw", "/version")
"""The request of kubectl; ``check`` sends it too."""


@dataclass(frozen=True)
class Pair:
    """The answers of both programs."""

    kubectl: Answer
    spread: Answer

    @property
    def complaints(self) -> tuple[str, str]:
        """The last lines on stderr, without full stops at their ends."""
        assert self.kubectl.status == 1
        assert (self.spread.status, self.spread.stdout) == (2, "")
        assert "Traceback" not in self.spread.stderr
        first, second = (answer.stderr.splitlines()[-1].rstrip(".") for answer in (self.kubectl, self.spread))
        return first, second


class Both:
    """Both programs, with a home directory of their own.

    Attributes:
        directory: The home directory; the kubeconfig is ``config`` in it.
        path: The PATH of both.
        spread: The plugin alone.
    """

    def __init__(self, directory: Path, plugin: Plugin) -> None:
        """Write kubeconfigs into ``directory``."""
        self.directory = directory
        remaining = {name: value for name, value in os.environ.items() if not name.upper().startswith(_AMBIENT)}
        self.path = f"{plugin.directory}{os.pathsep}{remaining['PATH']}"
        self._environment = {
            **remaining,
            "HOME": str(directory),
            "PATH": self.path,
            "KUBECONFIG": str(directory / "config"),
        }
        self.spread = Program(plugin.directory, self._environment)

    def write(self, content: Json | str, name: str = "config") -> Path:
        """Write a kubeconfig."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    def run(
        self,
        *flags: str,
        environment: Mapping[str, str] | None = None,
        wrapper: Sequence[str] = (),
        stdin: int = subprocess.DEVNULL,
        asking: Sequence[str] = ASK,
    ) -> Pair:
        """Run both programs with these flags.

        Args:
            flags: Flags of both programs.
            environment: Variables that differ from those of the tests.
            wrapper: A command that runs them.
            stdin: An open file.
            asking: The command of kubectl; that of the plugin is ``check``.
        """
        environment_of_both = {**self._environment, **(environment or {})}
        kubectl = str(binaries.kubectl())
        answers = []
        for command in ([kubectl, *asking], [kubectl, "spread", "check"]):
            completed = subprocess.run(
                [*wrapper, *command, *flags],
                check=False,
                capture_output=True,
                text=True,
                stdin=stdin,
                env=environment_of_both,
                timeout=120,
            )
            answers.append(Answer(completed.returncode, completed.stdout, completed.stderr))
        return Pair(*answers)

    def ask(self, content: Json | str, *flags: str, **options: Any) -> Pair:
        """Write the kubeconfig and run both programs."""
        self.write(content)
        return self.run(*flags, **options)


def matching_request(recorder: Recorder) -> Request:
    """Return the plugin's request that is the same as the only request of kubectl, with the same credentials.

    The plugin sends other requests at the same time, all with these credentials. A request of its run before may arrive
    late, but before that of kubectl.
    """
    (theirs,) = _of_kubectl(recorder)
    ours = [request for request in recorder.requests[recorder.requests.index(theirs) :] if request.by_plugin]
    assert all(request.who == theirs.who for request in ours), ours
    (same,) = [request for request in ours if request.target == theirs.target]
    recorder.requests.clear()
    return same


def _of_kubectl(recorder: Recorder) -> Iterator[Request]:
    """Yield the requests of kubectl, without those of a dispatcher that chooses a kubectl to run."""
    for request in recorder.requests:
        if not request.by_plugin and not request.header("User-Agent").startswith("kubectl-dispatcher/"):
            yield request
