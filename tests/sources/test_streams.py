"""A list has the same objects in JSON and in YAML."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_spread.sources.decode import json_objects
from kubectl_spread.sources.decode.json_documents import Record
from kubectl_spread.sources.files import inputs, rawobjects
from kubectl_spread.sources.files.rawobjects import RawObject


def objects(text: str) -> list[tuple[str, object]]:
    """Return the kind and the content of each object of a text, as ``check -f`` reads it."""
    members: list[RawObject] = []
    for document in inputs.documents(memoryview(text.encode()), "f"):
        assert isinstance(document, Record)
        members += rawobjects.members(document)
    return [(member.kind, json_objects.values(member.record.content)) for member in members]


KEYS = st.sampled_from(["a", "items", "kind", "apiVersion", "metadata", "on", "1", "long key"])
SCALARS = st.sampled_from(
    ["a", "yes", "0x1F", "~", "", "- x", "k: v", "é", "x\ny", "1e3", "<<", 1, 1.5, -7, True, None]
)
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


@settings(max_examples=200)
@given(LISTS, st.sampled_from([None, 4]))
def test_a_list_has_the_same_objects_in_json_and_in_yaml(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert objects(text) == objects(f"# YAML\n{text}")
