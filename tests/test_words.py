"""``make lint`` finds the words to replace in prose and ignores names."""

from __future__ import annotations

import pytest

from tests import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a folder", [(0, "folder")], id="a word"),
        pytest.param("one\ntwo is\nno list", [(1, "is no")], id="words on two lines, with the first line"),
        pytest.param("There is no pod.", [], id='"there is no" is common English'),
        pytest.param("It is no longer there.", [], id='"no longer" is common English'),
        pytest.param("counted otherwise", [(0, "otherwise")], id='"otherwise" in the meaning of "differently"'),
        pytest.param("Otherwise none; otherwise all.", [], id='"otherwise" in the meaning of "else"'),
        pytest.param("``folder`` and `folder` and {folder}", [], id="names and placeholders"),
        pytest.param("[a link](folder/page.md)", [], id="the address of a link"),
    ],
)
def test_words_to_replace(text: str, expected: list[tuple[int, str]]) -> None:
    assert list(words.find(text)) == expected


@pytest.mark.parametrize(("strings", "lines"), [(False, [1, 3]), (True, [1, 2, 3])])
def test_strings_are_read_where_users_see_them(*, strings: bool, lines: list[int]) -> None:
    source = '"""A folder."""\nname, text = "folder", f"no {folder} folder"\n# A folder.\n'
    assert [line for line, text in sorted(words.texts(source, strings=strings)) if list(words.find(text))] == lines


def test_a_place_says_what_to_write() -> None:
    place = words.Place("docs/cli.md", 3, "stands twice")
    assert str(place) == 'docs/cli.md:3: write "appears twice, is duplicated", not "stands twice"'
