"""Links and commands of the pages work, and the index names each page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path

import click
import pytest

from kubectl_spread.cli import cli
from kubectl_spread.errors import UsageError
from kubectl_spread.run import names
from tests.generated import ROOT

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / name / "README.md" for name in ("examples", "mixin")),
]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
INLINE = re.compile(r"`(kubectl[ -]spread [^`]+)`")
PROMPT = re.compile(r"^\$ (.+)$", re.MULTILINE)
CALL = re.compile(r"kubectl[ -]spread( .*)")
TARGET = re.compile(r"^([\w-]+):", re.MULTILINE)
SEPARATORS = frozenset("|<>;&")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors that links may name: the headings, as GitHub writes them."""
    texts = (LINK.sub(lambda match: match[0].partition("]")[0], heading) for heading in HEADING.findall(prose(page)))
    return frozenset(re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-") for text in texts)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        path, _, anchor = link.partition("#")
        if re.match(r"\w+:", path):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the arguments of each `kubectl spread` in the consoles and sentences of a page."""
    text = page.read_text(encoding="utf-8")
    consoles = "\n".join(body for kind, body in BLOCK.findall(text) if kind == "console")
    for line in [*PROMPT.findall(consoles), *INLINE.findall(prose(page))]:
        for part in _parts(line):
            call = CALL.fullmatch(" ".join(part))
            if call and not call[1].startswith(" --version") and not any(mark in line for mark in ("…", "<TAB>")):
                yield shlex.split(call[1])


def _parts(line: str) -> Iterator[list[str]]:
    """Yield the commands of a line as words, without the files that they read and write."""
    words = shlex.shlex(line, posix=True, punctuation_chars="|<>;&")
    words.whitespace_split = True
    part: list[str] = []
    for word in words:
        if SEPARATORS.issuperset(word):
            yield part
            part = []
        else:
            part.append(shlex.quote(word))
    yield part


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_can_be_called(page: Path) -> None:
    for words in commands(page):
        try:
            parse(words)
        except (click.UsageError, UsageError) as error:
            pytest.fail(f"kubectl spread {shlex.join(words)}: {error}")


def parse(words: list[str]) -> None:
    """Parse arguments without running the command.

    Raises:
        click.UsageError: The command does not take them.
        UsageError: They name no objects.
    """
    context = click.Context(cli, **cli.context_settings)
    _, command, rest = cli.resolve_command(context, words)
    assert command is not None
    # A sentence may name a command without its required names.
    with suppress(click.MissingParameter) if not rest else nullcontext():
        parameters = command.make_context(words[0], rest, parent=context).params
        if not parameters.get("manifests"):
            names.parse(parameters.get("arguments", ()))


def test_the_commands_of_pages_are_found() -> None:
    assert ["simulate", "--lose", "zone=eu-1a", "-A"] in list(commands(ROOT / "README.md"))
    assert ["explain", "POD"] in list(commands(ROOT / "docs" / "troubleshooting.md"))
    assert ["check", "-f", "-", "--server-version", "1.37", "--fail-on", "warning"] in list(
        commands(ROOT / "docs" / "ci.md")
    )


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_targets_of_make_exist(page: Path) -> None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    assert made(page) <= targets


def made(page: Path) -> set[str]:
    """Return the targets of make that a page names."""
    lines = re.findall(r"(?:^\$ |`)make ([^`\n#]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {word for line in lines for word in line.split() if "=" not in word}


def test_the_targets_of_pages_are_found() -> None:
    assert made(ROOT / "README.md") >= {"demo", "test"}


def test_the_index_names_every_page_once() -> None:
    index = ROOT / "docs" / "README.md"
    linked = sorted((index.parent / link).resolve() for link in LINK.findall(prose(index)))
    assert linked == sorted(page for page in index.parent.rglob("*.md") if page != index)


def test_the_glossary_is_sorted() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| ([^|]+) \| ", page, re.MULTILINE)[1:]
    assert words == sorted(set(words), key=str.lower)
