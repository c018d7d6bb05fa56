"""A list that is read item by item has the same objects and errors as a list that is read as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.decode import documents, json_objects
from kubectl_spread.sources.decode.listing import Record
from kubectl_spread.sources.files import rawobjects
from kubectl_spread.sources.files.rawobjects import RawObject

HERE = Path(__file__).parents[2]
FILES = sorted(path for directory in ("tests", "examples", "docs") for path in (HERE / directory).rglob("*.y*ml"))


def read(body: bytes, *, listed: bool) -> list[RawObject | SourceError]:
    """Read a file as ``check -f`` does, or with its YAML lists as a whole."""
    members: list[RawObject | SourceError] = []
    try:
        for document in documents.read(memoryview(body), "f", listed=listed):
            members += rawobjects.contents(document)
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
    value = json_objects.values(record.content)
    return value, record.path, record.line_of(), [record.position_of("f", path) for path in paths(value)]


def descriptions(members: list[RawObject | SourceError]) -> list[str]:
    return sorted(
        str(member)
        if isinstance(member, SourceError)
        else str((member.kind, member.type, str(member.fault), places(member.record)))
        for member in members
    )


def contents(member: RawObject | SourceError) -> str:
    return str(member if isinstance(member, SourceError) else json_objects.values(member.record.content))


def at_fault(raw_object: RawObject | SourceError) -> bool:
    """Tell whether an object cannot be read, or has a wrong header, which may be at the end of a list."""
    if isinstance(raw_object, SourceError) or not raw_object.is_kubernetes:
        return True
    return str(raw_object.fault).startswith(("kind: ", "apiVersion: "))


def assert_alike(body: bytes) -> None:
    """Compare both ways; in a file with a fault, only one of them may read the other parts."""
    whole, parts = read(body, listed=False), read(body, listed=True)
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
    assert_alike(path.read_bytes())


@settings(max_examples=300)
@given(texts())
def test_any_text_is_read_alike(text: str) -> None:
    assert_alike(text.encode())


@settings(max_examples=200)
@given(LISTS, st.sampled_from([None, 4]))
def test_a_list_has_the_same_objects_in_json_and_in_yaml(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    in_json, in_yaml = read(text.encode(), listed=False), read(f"# YAML\n{text}".encode(), listed=True)
    if not any(map(at_fault, in_yaml)):
        # In YAML an item without a kind waits until the kind of the list is read.
        assert sorted(map(contents, in_json)) == sorted(map(contents, in_yaml))


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
def test_empty_documents_change_nothing(text: str) -> None:
    assert_alike(text.encode())
