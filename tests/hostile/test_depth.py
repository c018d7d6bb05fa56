"""Input that grows while it is read (nesting, aliases, lists in lists) is refused early."""

from __future__ import annotations

import pytest

from tests.hostile.commands import refusal, run

LEVELS = 100_000
HEAD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
JSON_HEAD = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},\n'
LIST = '{"apiVersion": "v1", "kind": "List", "items": [\n'


@pytest.mark.parametrize("command", ["check", "merge", "unmerge"])
@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param(JSON_HEAD + '"x":\n' + "[" * LEVELS + "]" * LEVELS + "}", "STDIN:1", id="JSON arrays"),
        pytest.param(JSON_HEAD + '"x":\n' + '{"a":\n' * LEVELS + "1" + "}" * (LEVELS + 1), "STDIN:1", id="objects"),
        pytest.param("[\n" * LEVELS, "STDIN:201", id="YAML in brackets"),
        pytest.param(HEAD + "x:\n " + "- " * LEVELS + "1\n", "STDIN:5", id="YAML dashes"),
        pytest.param(HEAD + "x: " + "[" * 300 + "]" * 300, "STDIN:4", id="no more than Python could follow"),
        pytest.param(
            HEAD + "a0: &a0 1\n" + "".join(f"a{level}: &a{level} [*a{level - 1}]\n" for level in range(1, 1000)),
            "STDIN:204",
            id="aliases of aliases",
        ),
    ],
)
def test_deep_nesting_is_refused_with_its_line(text: str, place: str, command: str) -> None:
    assert refusal(text, command) == f"error: {place}: nested too deeply"


def test_lists_in_lists_are_refused_with_their_line() -> None:
    assert refusal(LIST * 100 + "]}" * 100) == f"error: STDIN:18: List: {'items[0].' * 16}items[0]: nested too deeply"
    assert run(LIST * 10 + "]}" * 10).exit_code == 0


def test_merge_refuses_nesting_that_it_cannot_write_again() -> None:
    """``check`` skips an unknown field of any depth; ``merge`` has to write it again."""
    text = JSON_HEAD + '"x": ' + "[" * 700 + "]" * 700 + "}"
    assert run(text).exit_code == 0
    assert refusal(text, "merge", "-o", "yaml") == "error: STDIN:1: nested too deeply"


def test_merge_refuses_each_depth_that_the_reader_can_follow_and_the_editor_cannot() -> None:
    for levels in range(900, 990):
        text = LIST * 5 + JSON_HEAD + '"spec": {"containers": []}, "x": ' + "[" * levels + "]" * levels + "}" + "]}" * 5
        assert refusal(text, "merge").endswith(": nested too deeply"), levels


@pytest.mark.parametrize(
    "level",
    [
        pytest.param("{name}: &{name} [{nine}]\n", id="sequences"),
        pytest.param("{name}: &{name} {{{keys}}}\n", id="mappings"),
    ],
)
def test_a_billion_laughs_are_refused(level: str) -> None:
    lines = ["a: &a {lol: lol}\n"]
    for before, name in zip("abcdefghij", "bcdefghijk", strict=True):
        nine = ", ".join([f"*{before}"] * 9)
        keys = ", ".join(f"k{index}: *{before}" for index in range(9))
        lines.append(level.format(name=name, nine=nine, keys=keys))
    line = refusal(HEAD + "".join(lines))
    assert line.startswith("error: STDIN:")
    assert line.endswith("document contains excessive aliasing")


def test_a_long_text_aliased_often_is_refused() -> None:
    text = f"{HEAD}a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 10_000)}]\n"
    assert refusal(text) == "error: STDIN:5: document contains excessive aliasing"
