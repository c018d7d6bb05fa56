"""YAML has the values that kubectl reads from it."""

from __future__ import annotations

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.decode import yaml_scalars
from kubectl_spread.sources.decode.json_documents import Record
from kubectl_spread.sources.decode.yaml_values import documents, read_all


def values(text: str) -> list[object]:
    return read_all(text.encode(), "f.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("On", True),
        ("y", True),
        ("TRUE", True),
        ("no", False),
        ("OFF", False),
        ("N", False),
        ("yEs", "yEs"),
        ("~", None),
        ("", None),
        ("Null", None),
        ("1", 1),
        ("+1", 1),
        ("-1", -1),
        ("0x1F", 31),
        ("0b101", 5),
        ("0o17", 15),
        ("017", 15),
        ("08", 8),
        ("1_000", 1000),
        ("18446744073709551615", 2**64 - 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.0", 1),
        ("1e3", 1000),
        ("12:30", "12:30"),
        ("2001-01-01", "2001-01-01"),
        ("2001-01-01T00:00:00Z", "2001-01-01T00:00:00Z"),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
        ("0x", "0x"),
        ("zone-a", "zone-a"),
        ("\u0661", "\u0661"),
    ],
)
def test_a_plain_scalar_has_the_value_that_go_yaml_gives_it(text: str, value: object) -> None:
    actual = yaml_scalars.plain(text)
    assert (actual, type(actual)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'yes'", "yes"),
        ('"1"', "1"),
        ("!!str 1", "1"),
        ("!!int '1'", 1),
        ("!!float 1", 1),
        ("!!bool 'yes'", True),
        ("!own text", "text"),
        ("|\n  yes\n", "yes\n"),
        ("{1: a, true: b, 1.5: c}", {"1": "a", "true": "b", "1.5": "c"}),
        ("{a: &x {b: 1}, c: *x}", {"a": {"b": 1}, "c": {"b": 1}}),
        ("[&x 1, *x]", [1, 1]),
        ("{a: &x {b: 1, c: 1}, d: {c: 2, <<: *x}}", {"a": {"b": 1, "c": 1}, "d": {"c": 2, "b": 1}}),
        ("{<<: [{a: 1}, {a: 2, b: 2}]}", {"a": 1, "b": 2}),
        ("{'<<': 1}", {"<<": 1}),
    ],
)
def test_a_document_becomes_json_values(text: str, value: object) -> None:
    assert values(text) == [value]


def test_empty_documents_are_skipped() -> None:
    assert values("# nothing\n---\n---\na: 1\n---\n# nothing\n---\n~\n--- b\n...\n") == [{"a": 1}, "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: 1\na: 2", "f.yaml:2: key 'a' is duplicated", id="duplicate key"),
        pytest.param("1: a\n'1': b", "f.yaml:2: key '1' is duplicated", id="alike once strings"),
        pytest.param("a:\n\tb: 1", "f.yaml:2: found character that cannot start any token", id="tab"),
        pytest.param("a: b: c", "f.yaml:1: mapping values are not allowed in this context", id="two colons"),
        pytest.param("a: [", "f.yaml:1: ", id="unfinished"),
        pytest.param(
            "a:\n  - *b", "f.yaml:2: found undefined alias (quote a value that begins with * or !)", id="unknown alias"
        ),
        pytest.param("a: &a [*a]", "f.yaml:1: an anchor's value contains itself", id="cycle"),
        pytest.param("&a {<<: *a}", "f.yaml:1: an anchor's value contains itself", id="merge cycle"),
        pytest.param("<<: 1", "f.yaml:1: map merge requires map", id="merge of a number"),
        pytest.param("[\n" * 5000, "f.yaml:201: nested too deeply", id="deep"),
        pytest.param(
            "a0: &a0 1\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 1000)),
            "f.yaml:201: nested too deeply",
            id="deep by aliases",
        ),
        pytest.param("a: 1\nb: 'c\n d: 2\n", "f.yaml:2: the quote that opens here is never closed", id="open quote"),
        pytest.param(
            "\n" * 9 + 'a: "{{ b }}', "f.yaml:10: the quote that opens here is never closed (if", id="in a template"
        ),
        pytest.param("a: .inf", "f.yaml:1: JSON has no number .inf", id="infinite"),
        pytest.param("a: !!int b", "f.yaml:1: cannot decode the value as a !!int", id="wrong tag"),
        pytest.param("? [a]\n: b", "f.yaml:1: a key must be a string", id="key is a list"),
        pytest.param("~: b", "f.yaml:1: a key must be a string", id="key is null"),
        pytest.param("a: \x00", "f.yaml:1: character U+0000 is not allowed", id="control character"),
        pytest.param('"\\UFFFFFFFF"', "f.yaml:1: found invalid Unicode", id="no such character"),
    ],
)
def test_faulty_yaml_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(SourceError) as refused:
        values(text)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_documents_before_an_open_quote_are_read() -> None:
    first, second, fault = documents(memoryview(b"a: 1\n---\nb: 2\n---\nc: 3\nd: '\n"), "f.yaml")
    assert [getattr(record, "content", None) for record in (first, second)] == [b'{"a":1}', b'{"b":2}']
    assert "the quote that opens here" in str(fault)


def test_an_alias_bomb_is_refused() -> None:
    levels = [f"{chr(98 + level)}: &{chr(98 + level)} [{', '.join(['*' + chr(97 + level)] * 9)}]" for level in range(9)]
    with pytest.raises(SourceError, match="excessive aliasing"):
        values("\n".join(["a: &a [x, x]", *levels]))


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    with pytest.raises(SourceError, match=r"^f\.yaml:2: byte 0x89 is not UTF-8 text$"):
        read_all(b"a: 1\n\x89PNG", "f.yaml")


def test_each_field_has_its_line() -> None:
    (document,) = documents(memoryview(b"# why\na: 1\nb:\n- c: 2\n- d:\n    e: 3\n"), "f.yaml")
    assert isinstance(document, Record)
    assert document.line_of() == 2
    assert document.line_of(("b", 1, "d", "e")) == 6
    assert document.line_of(("b", 1, "missing", "e")) == 5


WRITTEN = ("*{}", "*{}: x", "!a!{} x", "!!int {}", "!!bool {}", "&{} [*{}]", "@{}", "%{}", "|{}", "[{}")


@pytest.mark.parametrize("written", WRITTEN)
def test_no_error_shows_a_value(written: str) -> None:
    """The value may be a password that should have been quoted."""
    body = f"password: {written.format('hunter2', 'hunter2')}\n".encode()
    with pytest.raises(SourceError, match=r"^f\.yaml:") as refused:
        read_all(body, "f.yaml")
    assert "hunter2" not in str(refused.value)
