"""The house itself: what each directory holds, and that one name means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import kubectl_spread

ROOT = Path(kubectl_spread.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))


def test_no_public_class_name_is_used_twice() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for statement in ast.parse(path.read_bytes()).body:
            if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                places[statement.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_each_package_says_what_question_it_answers() -> None:
    for path in ROOT.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(path.read_bytes())), path
