"""Answers of the plugin as pages show them: on a terminal of 100 columns, without colours."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from click.testing import CliRunner

from kubectl_spread.cli import cli
from kubectl_spread.errors import STDIN
from tests.sources.server import Reply, Request, Server, serve, status
from tests.terminals import printed

ROOT: Final = Path(__file__).parent.parent
RAW: Final = "https://raw.githubusercontent.com/kubectl-spread/kubectl-spread/main"
COLUMNS: Final = 100
NOTES: Final = ("check", "--severity", "info", "--color=never")
"""Arguments that show all findings."""
VERSION: Final = Reply(body=b'{"major": "1", "minor": "37", "gitVersion": "v1.37.1"}')
FORBIDDEN: Final = status(
    403, "Forbidden", 'pods is forbidden: User "jane" cannot list resource "pods" in API group "" at the cluster scope'
)


class Forbidding(Server):
    """An API server that tells its version and forbids everything else."""

    def next(self, request: Request) -> Reply:
        return VERSION if request.path.endswith("/version") else FORBIDDEN


def on_terminal(*arguments: str) -> str:
    """Return a command and everything that it prints."""
    return _block(shlex.join(arguments), _printed(arguments))


def check(command: str, path: str) -> str:
    """Return a check of a live cluster, and what it prints for a file except the line about the cluster."""
    return _block(command, _on_file(command, path).partition("\n\n")[2])


def explain(command: str, path: str, paragraphs: int) -> str:
    """Return an explanation on a live cluster, and the first paragraphs of what it prints for a file."""
    answer = _on_file(command, path).split("\n\n")
    return _block(command, "\n\n".join(answer[:paragraphs]) + ("\n…" if answer[paragraphs:] else ""))


def section(command: str, path: str, title: str) -> str:
    """Return an explanation of a file, of which only the section that begins with a title is shown."""
    answer = _on_file(command, path).split("\n\n")
    [text] = [paragraph for paragraph in answer if paragraph.startswith(title)]
    return _block(f"{command} -f {path}", f"…\n\n{text}\n\n…")


def fetched(command: str, path: str, lines: int) -> str:
    """Return a command on a file of the repository that curl downloads, and the first lines of the answer."""
    answer = printed(COLUMNS, *shlex.split(command), "-f", "-", "--color=never", stdin=(ROOT / path).read_bytes())
    opening = "\n".join(answer.splitlines()[:lines])
    return _console(f"curl -sL {RAW}/{path} | kubectl spread {command} -f -", f"{opening}\n…")


def piped(renderer: str, path: Path) -> str:
    """Return a check of what another program renders; a file has its output."""
    return piped_block(renderer, printed(COLUMNS, *NOTES, "-f", "-", stdin=path.read_bytes()))


def piped_block(renderer: str, answer: str) -> str:
    """Return a command that pipes its output into a check, and the answer."""
    return _console(f"{renderer} | kubectl spread {shlex.join(NOTES[:-1])} -f -", answer)


def kustomized(directory: str, path: Path) -> str:
    """Return a check of a kustomization; a file has what kubectl renders for it."""
    answer = printed(COLUMNS, *NOTES, "-f", "-", stdin=path.read_bytes())
    return kustomized_block(directory, answer.replace(f"{STDIN}:", f"{directory}:"))


def kustomized_block(directory: str, answer: str) -> str:
    """Return the check of a kustomization, and the answer."""
    return _block(f"{shlex.join(NOTES[:-1])} -k {directory}", answer)


def domains(command: str, path: str) -> str:
    """Return a command of ``domains`` on a live cluster, and what it prints for a file."""
    return _block(command, _printed([*shlex.split(command), "-f", path]))


def plan(command: str, path: str) -> str:
    """Return a plan for a live cluster, and what it prints for a file."""
    return _block(command, _printed([*shlex.split(command), "-f", path]).replace(f" -f {path}", ""))


def waves(command: str, path: str) -> str:
    """Return the end of the script of a plan for a file, which has its waves."""
    text = _printed([*shlex.split(command), "-f", path])
    return f"```sh\n{text[text.index('main() {') :].rstrip()}\n```\n"


def failure(command: str) -> str:
    """Return a command, its output on both streams, and its exit status."""
    return _failure(command, command)


def forbidden(command: str) -> str:
    """Return a command of a user who may list no pods."""
    with serve(Reply()) as server:
        server.__class__ = Forbidding
        return _failure(command, f"{command} --server {server.url}")


def _failure(shown: str, command: str) -> str:
    answer = CliRunner().invoke(cli, shlex.split(command), prog_name="kubectl spread", env={"KUBECONFIG": "/dev/null"})
    return _block(shown, f"{answer.output}$ echo $?\n{answer.exit_code}")


def _on_file(command: str, path: str) -> str:
    return _printed([*shlex.split(command), "-f", path, "--server-version", "1.37"])


def _printed(arguments: list[str] | tuple[str, ...]) -> str:
    return printed(COLUMNS, *arguments, "--color=never")


def _block(command: str, answer: str) -> str:
    return _console(f"kubectl spread {command}", answer)


def _console(line: str, answer: str) -> str:
    lines = "\n".join(line.rstrip() for line in answer.strip().splitlines())
    return f"```console\n$ {line}\n{lines}\n```\n"
