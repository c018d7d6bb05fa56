"""``kubectl spread completion``, and the program that kubectl runs for candidates.

kubectl runs ``kubectl_complete-spread`` with the words after the plugin's name, the incomplete one last. It prints one
candidate per line, a tab and a description after some of them, and in the last line ``:`` and a directive of Cobra.
"""

from __future__ import annotations

import os
import sys
from typing import Final

import click
from click.shell_completion import CompletionItem, ShellComplete, add_completion_class, get_completion_class

from kubectl_spread.cli import PROGRAM, VARIABLE, cli, options, output

_NO_SPACE, _NO_FILES, _DIRECTORIES, _DEFAULT = 2, 4, 16, 0
"""Directives. Source: cobra v1.10 completions.go, ShellCompDirective."""
_KUBECTL: Final = "kubectl"
_SHELLS: Final = ("bash", "fish", _KUBECTL, "powershell", "zsh")


@add_completion_class
class KubectlComplete(ShellComplete):
    """Prints candidates in the form that kubectl reads."""

    name = _KUBECTL
    source_template = """\
#!/bin/sh
# Save this as kubectl_complete-spread, executable, in a directory of PATH.
%(complete_var)s=kubectl_complete exec %(prog_name)s "$@"
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the complete words and the incomplete one; kubectl passes "" where a new word begins."""
        *words, incomplete = sys.argv[1:] or [""]
        return words, incomplete

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return the line of a candidate."""
        return f"{item.value}\t{item.help}" if item.help else item.value

    def complete(self) -> str:
        """Return the lines of all candidates and of the directive."""
        candidates = self.get_completions(*self.get_completion_args())
        lines = [self.format_completion(candidate) for candidate in candidates if candidate.type == "plain"]
        return "\n".join([*lines, f":{_directive(candidates)}"])


def _directive(candidates: list[CompletionItem[str]]) -> int:
    types = {candidate.type for candidate in candidates}
    if "file" in types:
        return _DEFAULT
    if "dir" in types:
        return _DIRECTORIES
    unfinished = bool(candidates) and all(candidate.value.endswith("=") for candidate in candidates)
    return _NO_FILES | (_NO_SPACE if unfinished else 0)


@options.command(
    examples={
        "source <(kubectl-spread completion bash)": "Complete kubectl-spread in this shell",
        "kubectl spread completion kubectl > DIRECTORY/kubectl_complete-spread": (
            "Complete kubectl spread: an executable for a directory of PATH"
        ),
    }
)
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print a script that completes commands, options and names in a shell."""
    complete = get_completion_class(shell)
    if complete is not None:
        # Not ``complete.source()``: for bash it runs the first bash on PATH to check its version.
        output.data(ShellComplete.source(complete(cli, {}, PROGRAM, VARIABLE)))


def main() -> None:
    """Print candidates for kubectl; called as ``kubectl_complete-spread``."""
    silence()
    click.echo(KubectlComplete(cli, {}, PROGRAM, VARIABLE).complete())


def silence() -> None:
    """Close stdin and stderr, so that no message and no prompt of a credential plugin disturbs the line being typed."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdin, sys.stderr):
        if stream is not None:
            os.dup2(nowhere, stream.fileno())
