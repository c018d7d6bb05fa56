"""``kubectl spread completion``, and what the shell and kubectl call for candidates.

kubectl asks an executable ``kubectl_complete-spread`` with the words after the plugin's name, the one to complete last.
It prints a candidate a line, a description after a tab, and at the end ``:`` with what the shell is to do: a number of
Cobra's.
"""

from __future__ import annotations

import os
import sys
from typing import Final

import click
from click.shell_completion import CompletionItem, ShellComplete, add_completion_class, get_completion_class

from kubectl_spread.app import output
from kubectl_spread.cli import PROGRAM, VARIABLE, cli

_NO_SPACE, _NO_FILES, _FOLDERS, _DEFAULT = 2, 4, 16, 0
"""Directives. Source: cobra v1.10 completions.go, ShellCompDirective."""
_KUBECTL: Final = "kubectl"
_SHELLS: Final = ("bash", "fish", _KUBECTL, "powershell", "zsh")


@add_completion_class
class KubectlComplete(ShellComplete):
    """What kubectl asks of a plugin."""

    name = _KUBECTL
    source_template = """\
#!/bin/sh
# Save this as kubectl_complete-spread, executable, in a folder of PATH.
%(complete_var)s=kubectl_complete exec %(prog_name)s "$@"
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one to complete, and that one; kubectl gives "" for a new one."""
        *before, last = sys.argv[1:] or [""]
        return before, last

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return the line of a candidate."""
        return f"{item.value}\t{item.help}" if item.help else item.value

    def complete(self) -> str:
        """Return all lines."""
        found = self.get_completions(*self.get_completion_args())
        lines = [self.format_completion(item) for item in found if item.type == "plain"]
        return "\n".join([*lines, f":{_directive(found)}"])


def _directive(found: list[CompletionItem[str]]) -> int:
    types = {item.type for item in found}
    if "file" in types:
        return _DEFAULT
    if "dir" in types:
        return _FOLDERS
    unfinished = bool(found) and all(item.value.endswith("=") for item in found)
    return _NO_FILES | (_NO_SPACE if unfinished else 0)


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print a script that makes a shell complete commands, options and names.

    \b
      source <(kubectl-spread completion bash)              for kubectl-spread itself
      kubectl spread completion kubectl > FOLDER/kubectl_complete-spread
                                                            for kubectl spread: an executable for a folder of PATH
    """  # noqa: D301 - click wants the backspace character itself
    found = get_completion_class(shell)
    if found is not None:
        # Not ``source()``: that of bash runs the first bash on PATH, to say on stderr what it thinks of it.
        output.data(ShellComplete.source(found(cli, {}, PROGRAM, VARIABLE)))


def main() -> None:
    """Print the candidates that kubectl asks for; called as ``kubectl_complete-spread``."""
    silence()
    click.echo(KubectlComplete(cli, {}, PROGRAM, VARIABLE).complete())


def silence() -> None:
    """Let nothing disturb the line that the user types: no words of ours or of a credential plugin, and no question."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdin, sys.stderr):
        if stream is not None:
            os.dup2(nowhere, stream.fileno())
