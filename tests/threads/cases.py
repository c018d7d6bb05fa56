"""Questions from public threads, each with an input like the asker's and the answer of the tool.

A case is a directory: ``input.yaml`` begins with a header of comments, ``answer.txt`` has the output of the commands.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from click.testing import CliRunner

from kubectl_spread.cli import cli
from kubectl_spread.rules import RULES

HERE: Final = Path(__file__).parent
INPUT: Final = "input.yaml"
ANSWER: Final = "answer.txt"
NAMES: Final = ("thread", "asks", "command", "exit", "answer")
OPTIONAL: Final = ("code", "never")
_HEADER: Final = re.compile(r"# (\w+): (.+)")
_ISSUE: Final = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")
_FILE: Final = re.compile(r"([\w.-]+/[\w.-]+):(\S+)")


@dataclass(frozen=True, slots=True)
class Case:
    """One question and its answer, from the header of the input.

    Attributes:
        directory: The directory of the case; its commands run there.
        threads: The public threads, as ``owner/repository#number``, or ``owner/repository:path`` of a file.
        asks: The question, in a sentence.
        commands: The commands that answer it; ``a | b`` and ``a < file`` as in a shell.
        exits: The exit status of each command.
        answers: Phrases that must be in the answer.
        codes: Rules that must be in the answer.
        nevers: Phrases that must not be in the answer, because they would mislead.
    """

    directory: Path
    threads: tuple[str, ...]
    asks: str
    commands: tuple[str, ...]
    exits: tuple[int, ...]
    answers: tuple[str, ...]
    codes: tuple[str, ...]
    nevers: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the directory."""
        return self.directory.name

    @property
    def links(self) -> list[str]:
        """The threads as Markdown links."""
        return [f"[{thread}]({link(thread)})" for thread in self.threads]

    @property
    def answered_by(self) -> str:
        """The rules and commands that answer, as Markdown."""
        names = {rule.code: rule.name for rule in RULES}
        rules = [f"[{code} {names[code]}](rules.md#{code.lower()})" for code in self.codes]
        return ", ".join([*rules, *(f"`{command}`" for command in dict.fromkeys(self._calls()))])

    def _calls(self) -> Iterator[str]:
        """Yield the commands without the flags for the input and the version."""
        for command in self.commands:
            for stage in command.split(" | "):
                yield re.sub(r"( -f \S+| --server-version \S+| < \S+)", "", stage)


def load() -> list[Case]:
    """Return all cases, in the order of their names."""
    return [_case(directory) for directory in sorted(HERE.iterdir()) if (directory / INPUT).exists()]


def link(thread: str) -> str:
    """Return the address of a thread; GitHub redirects from ``issues`` to a pull request.

    Raises:
        ValueError: The thread has neither form.
    """
    if match := _ISSUE.fullmatch(thread):
        return f"https://github.com/{match[1]}/issues/{match[2]}"
    if match := _FILE.fullmatch(thread):
        return f"https://github.com/{match[1]}/blob/HEAD/{match[2]}"
    raise ValueError(f"{thread} is neither owner/repository#number nor owner/repository:path")


def run(command: str) -> tuple[str, int]:
    """Run a command in the working directory; return its output on both streams and its exit status."""
    printed, output, status = "", "", 0
    for stage in command.split(" | "):
        arguments, _, stdin = stage.partition(" < ")
        value = Path(stdin).read_text(encoding="utf-8") if stdin else printed
        invocation = CliRunner().invoke(
            cli, shlex.split(arguments), input=value, prog_name="kubectl spread", catch_exceptions=False
        )
        printed, output, status = invocation.stdout, output + invocation.stderr, invocation.exit_code
    return output + printed, status


def transcript(command: str, printed: str, status: int) -> str:
    """Return a command and its output as in a terminal."""
    called = command.replace(" | ", " | kubectl spread ")
    return f"$ kubectl spread {called}\n{printed}{f'[exit status {status}]' if status else ''}\n"


def page() -> str:
    """Return docs/threads.md."""
    head = (
        "# Threads\n\n"
        "Questions that people asked in public, each with an input like theirs and what this tool answers, in\n"
        "[tests/threads](../tests/threads/).\n\n"
        "| thread | what was asked | answered by | case |\n|---|---|---|---|\n"
    )
    rows = (
        f"| {'<br>'.join(case.links)} | {case.asks} | {case.answered_by} "
        f"| [{case.name}](../tests/threads/{case.name}/{ANSWER}) |\n"
        for case in load()
    )
    return head + "".join(rows)


def _case(directory: Path) -> Case:
    headers: dict[str, list[str]] = {name: [] for name in (*NAMES, *OPTIONAL)}
    for line in (directory / INPUT).read_text(encoding="utf-8").splitlines():
        match = _HEADER.fullmatch(line)
        if match is None:
            break
        headers.setdefault(match[1], []).append(match[2])
    unknown = headers.keys() - set(NAMES) - set(OPTIONAL)
    missing = [name for name in NAMES if not headers[name]]
    if unknown or missing or len(headers["exit"]) != len(headers["command"]):
        raise ValueError(
            f"{directory.name}: header with {unknown or 'nothing'} unknown and {missing or 'nothing'} missing"
        )
    return Case(
        directory=directory,
        threads=tuple(thread.strip() for line in headers["thread"] for thread in line.split(",")),
        asks=" ".join(headers["asks"]),
        commands=tuple(headers["command"]),
        exits=tuple(int(status) for status in headers["exit"]),
        answers=tuple(headers["answer"]),
        codes=tuple(headers["code"]),
        nevers=tuple(headers["never"]),
    )
