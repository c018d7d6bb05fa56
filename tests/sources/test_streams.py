"""A list that is read item by item has the same objects and errors as a list that is read as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.decode import documents, json_documents, yaml_documents, yaml_stream
from kubectl_spread.sources.decode.listing import Record
from kubectl_spread.sources.decode.window import Window
from kubectl_spread.sources.files import rawobjects
from kubectl_spread.sources.files.rawobjects import RawObject

HERE = Path(__file__).parents[2]
FILES = sorted(path for directory in ("tests", "examples", "docs") for path in (HERE / directory).rglob("*.y*ml"))


def in_blocks(body: bytes, size: int) -> Iterator[bytes]:
    return (body[start : start + size] for start in range(0, len(body), size))


def streamed(body: bytes, size: int) -> list[RawObject | SourceError]:
    """Read a file as ``check -f`` does."""
    members: list[RawObject | SourceError] = []
    try:
        for document in documents.read(Window(in_blocks(body, size), "f"), "f"):
            members += rawobjects.contents(document)
    except SourceError as error:
        members.append(error)
    return members


def careful(body: bytes) -> list[RawObject | SourceError]:
    """Read documents as a whole, and YAML by ``yaml_documents``."""
    members: list[RawObject | SourceError] = []
    try:
        window = Window([body], "f")
        if json_documents.begins(window):
            for json_record in json_documents.records(window, "f"):
                members += rawobjects.contents(json_record)
        rest, line = bytes(window.body[window.position :]), window.place_at(window.position).line
        for document in yaml_documents.documents(rest, "f", line):
            try:
                members += rawobjects.contents(yaml_documents.record(document))
            except SourceError as error:
                members.append(error)
    except SourceError as error:
        members.append(error)
    return members


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    if isinstance(value, dict):
        for key, field in value.items():
            yield from paths(field, (*path, key))
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from paths(element, (*path, index))


def places(record: Record) -> object:
    value = msgspec.json.decode(record.raw)
    return value, record.path, record.line_of(), [record.place_of(path) for path in paths(value)]


def descriptions(members: list[RawObject | SourceError]) -> list[str]:
    return sorted(
        str(member)
        if isinstance(member, SourceError)
        else str((member.kind, member.type, str(member.fault), places(member.record)))
        for member in members
    )


def at_fault(raw_object: RawObject | SourceError) -> bool:
    """Tell whether an object cannot be read, or has a wrong header, which may be at the end of a list."""
    if isinstance(raw_object, SourceError) or not raw_object.is_kubernetes:
        return True
    return str(raw_object.fault).startswith(("kind: ", "apiVersion: "))


def assert_alike(body: bytes, size: int) -> None:
    """Compare both readers; in a file with a fault, only one of them may read the other parts."""
    whole, parts = careful(body), streamed(body, size)
    if any(map(at_fault, whole)):
        assert any(map(at_fault, parts))
    elif any(map(at_fault, parts)):
        # A document that only looks like a list was read item by item, so an item may have a wrong header too.
        assert "kind: is not a list, but has items" in [str(getattr(part, "fault", part)) for part in parts]
    else:
        assert descriptions(parts) == descriptions(whole)


WORDS = [
    "a",
    "b c",
    "yes",
    "1",
    "0x1F",
    "~",
    "",
    "- x",
    "k: v",
    "# c",
    "é",
    "x\ny",
    "word " * 30,
    "'",
    '"',
    "1e3",
    "{",
    "[&a",
]
WORDS += [
    "*a",
    "!t",
    "%",
    "|",
    ">",
    "2001-01-01",
    "<<",
    "a: b\n",
    " lead",
    "trail ",
    "\\",
    ".inf",
    "?",
    "...",
    "---",
    "null",
]
MARKS = [
    "\n",
    "  ",
    "- ",
    "---\n",
    "...\n",
    "# c\n",
    "&a ",
    "*a",
    "!!str ",
    '"',
    "'",
    ": ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "a: 1\n",
]
MARKS += ["\t", "|\n", ">-\n", "\r\n", "<<: ", "items:\n", "- a\n", "~", "?", "é", "\u2028", "\x85"]
KEYS = st.sampled_from(["a", "items", "kind", "apiVersion", "metadata", "on", "1", "long key"])
SCALARS = st.sampled_from([*WORDS, 1, 1.5, -7, True, None])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
OBJECTS = st.fixed_dictionaries({"apiVersion": st.just("v1"), "kind": st.sampled_from(["Pod", "Foo"]), "x": VALUES})
LISTS = st.permutations(["apiVersion", "kind", "items", "metadata"]).flatmap(
    lambda keys: st.fixed_dictionaries({key: LIST_FIELDS[key] for key in keys})
)
LIST_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "apiVersion": st.just("v1"),
    "kind": st.sampled_from(["List", "PodList"]),
    "items": st.lists(OBJECTS | VALUES, max_size=3),
    "metadata": VALUES,
}
SIZES = st.sampled_from([1, 3, 7, 64, 1 << 20])


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Return documents in any style, some of them with inserted marks."""
    documents = draw(st.lists(LISTS | LISTS | OBJECTS | VALUES, min_size=1, max_size=3))
    flow, width = draw(st.sampled_from([False, None, True])), draw(st.sampled_from([20, 80, 1000]))
    parts = [
        json.dumps(document, indent=2) + "\n"
        if draw(st.integers(0, 5)) == 0
        else yaml.safe_dump(document, sort_keys=False, default_flow_style=flow, width=width, allow_unicode=True)
        for document in documents
    ]
    text = "---\n".join(parts)
    for mark in draw(st.lists(st.sampled_from(["", *MARKS]), max_size=3)):
        place = draw(st.integers(0, len(text)))
        text = text[:place] + mark + text[place + draw(st.integers(0, 2)) :]
    return text


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HERE)))
def test_yaml_files_of_this_repository_are_read_alike(path: Path) -> None:
    assert_alike(path.read_bytes(), 1 << 20)


@settings(max_examples=300)
@given(texts(), SIZES)
def test_any_text_is_read_alike(text: str, size: int) -> None:
    assert_alike(text.encode(), size)


@settings(max_examples=200)
@given(LISTS, st.sampled_from([None, 4]), SIZES)
def test_json_lists_are_read_alike(value: object, indent: int | None, size: int) -> None:
    body = json.dumps(value, indent=indent).encode()
    assert_alike(body, size)
    assert descriptions(careful(body)) == descriptions(streamed(body, size))


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize(
    "text",
    [
        "---\n" * 500 + "a: 1\n" + "---\n" * 500 + "b: 1\n",
        "---  \r\n" * 500 + "--- a\n",
        "# c\n---\n" + "---\n" * 500 + "- a\n",
        "%TAG ! tag:a,2000:\n---\n---\n---\na: !b c\n",
        "a: |\n  ---\n---\n---\n...\n---\nb: 1\n",
    ],
)
def test_empty_documents_change_nothing(text: str, size: int) -> None:
    assert_alike(text.encode(), size)


def test_empty_documents_are_skipped_together() -> None:
    """Reading an empty document costs as much as reading a small object, and a gzipped file may have millions."""
    body = b"---\n" * 1000 + b"a: 1\n" + b"---\n" * 1000 + b"b: 1\n"
    assert len(list(yaml_stream._pieces(Window([body], "f")))) < 10


def test_an_item_that_contains_the_beginning_of_an_item_is_read() -> None:
    """A list is cut where the next item seems to begin, which here is inside an item."""
    inner = [{"apiVersion": "v1", "kind": "Pod", "x": '{}[],\\"'}] * 3
    items = [*inner, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "x": inner}, *inner]
    for indent in (None, 4):
        body = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=indent).encode()
        for size in (1, 100, 1 << 20):
            assert descriptions(careful(body)) == descriptions(streamed(body, size))
