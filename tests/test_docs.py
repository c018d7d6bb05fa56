"""The documentation agrees with the code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import click
import pytest

from kubectl_spread import __version__
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.cli import cli
from kubectl_spread.explain.causes import CauseName
from tests import answers, generated


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands in the checkout, as the README says."""
    monkeypatch.chdir(generated.ROOT)


@pytest.mark.parametrize("path", dict.fromkeys((*generated.OF_THE_RELEASE, *generated.PAGES, *generated.BLOCKS)))
def test_generated_text_is_current(path: str) -> None:
    """If this fails, run ``make docs`` and review the difference."""
    assert generated.page(path) == (generated.ROOT / path).read_text(encoding="utf-8")


def test_pull_requests_hide_generated_pages() -> None:
    command = ["git", "check-attr", "linguist-generated", *generated.PAGES]
    answer = subprocess.run(command, cwd=generated.ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert [line for line in answer.splitlines() if not line.endswith(": set")] == []


@pytest.mark.parametrize("path", generated.OF_THE_RELEASE)
def test_make_docs_names_a_new_release(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated, "__version__", "9.9.9")
    text = generated.page(path)
    assert "9.9.9" in text
    assert __version__ not in text


@pytest.mark.parametrize("verdict", [str(verdict) for verdict in Verdict])
def test_every_verdict_is_documented(verdict: str) -> None:
    assert f"`{verdict}`" in _read("docs/counting.md")


@pytest.mark.parametrize("cause", [str(cause) for cause in CauseName])
def test_every_cause_is_documented(cause: str) -> None:
    assert f"`{cause}`" in _read("docs/explain.md")


def test_every_command_is_named_in_the_readme() -> None:
    assert all(f"kubectl spread {name}" in _read("README.md") for name in cli.list_commands(click.Context(cli)))


def test_the_readme_names_the_two_commands_that_set_everything_up() -> None:
    readme, targets = _read("README.md"), _read("Makefile")
    for target in ("demo", "test"):
        assert f"`make {target}`" in readme
        assert re.search(rf"^{target}:", targets, flags=re.MULTILINE)


def test_the_address_in_the_readme_is_that_of_a_file_of_the_repository() -> None:
    """The first command has to work where nobody has a checkout."""
    (path,) = re.findall(rf"{re.escape(answers.RAW)}/(\S+)", _read("README.md"))
    assert (generated.ROOT / path).is_file()


def test_the_first_screen_of_the_readme_has_the_words_that_people_search_for() -> None:
    screen = " ".join(_read("README.md").split()[:60])
    for words in (
        "topology spread",
        "topologySpreadConstraints",
        "didn't match pod topology spread constraints",
        "Pending",
    ):
        assert words in screen


def test_the_changelog_names_the_version_or_what_is_not_released() -> None:
    headings = re.findall(r"^## (.*)$", _read("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] in {__version__, "Unreleased"}


def test_the_map_has_five_parts() -> None:
    """``tests/test_pages.py`` shows that it names every page once."""
    parts = re.findall(r"^## (.*)$", _read("docs/README.md"), re.MULTILINE)
    assert parts == ["Start", "Use", "Understand", "Reference", "Project"]


def test_people_can_read_what_people_wrote() -> None:
    """Cut something before you raise the limit: nobody reads more."""
    pages = (path.relative_to(generated.ROOT).as_posix() for path in (generated.ROOT / "docs").rglob("*.md"))
    assert sum(_words(page) for page in pages if page not in generated.PAGES) < 45_000


_LOOKED_UP = {"docs/development.md", "docs/glossary.md", "docs/json.md"}


def test_a_page_answers_one_question() -> None:
    """Split or shorten a page before you raise the limit; people only look things up in the pages that are longer."""
    pages = (path.relative_to(generated.ROOT).as_posix() for path in (generated.ROOT / "docs").rglob("*.md"))
    lengths = {page: _words(page) for page in pages if page not in generated.PAGES}
    assert {page: words for page, words in lengths.items() if words > 1_200 and page not in _LOOKED_UP} == {}


def _words(page: str) -> int:
    """Return the number of words of a page, without the blocks that code writes."""
    written = re.sub(r"<!-- begin ([\w -]+) -->.*?<!-- end \1 -->", "", _read(page), flags=re.DOTALL)
    return len(re.findall(r"\S*\w\S*", written))


def test_files_that_pages_name_exist() -> None:
    for page in Path("docs").rglob("*.md"):
        for named in re.findall(r"`((?:docs|kubectl_spread|tests)/[\w./-]+)`", page.read_text(encoding="utf-8")):
            assert Path(named).exists(), f"{page} names {named}"


def _read(path: str) -> str:
    return (generated.ROOT / path).read_text(encoding="utf-8")
