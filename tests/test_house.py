"""The rooms of the package: each is described, one name has one meaning, and pages use the names of the code."""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import grimp

import kubectl_spread

ROOT = Path(kubectl_spread.__file__).parent
DOCS = ROOT.parent / "docs"
MODULES = sorted(ROOT.rglob("*.py"))
TREES = {path.relative_to(ROOT): ast.parse(path.read_bytes()) for path in MODULES}
EMPTY_NAMES = frozenset(["asked", "found", "given", "kept", "known", "meant", "one", "said", "shown", "told", "wanted"])
"""Names that do not describe a value."""
SHARED = 3
"""A class that so many other rooms import needs a row in the glossary."""
USERS = 8
"""So does a class that so many modules import."""


def public_classes() -> Iterator[tuple[Path, str]]:
    """Yield the public classes with their modules."""
    for path, tree in TREES.items():
        for statement in tree.body:
            if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                yield path, statement.name


def identifiers() -> set[str]:
    """Return the names of modules, classes, functions, parameters, variables and attributes."""
    fields = ("name", "id", "attr", "arg")
    nodes = (node for tree in TREES.values() for node in ast.walk(tree))
    names = {getattr(node, field, None) for node in nodes for field in fields}
    places = {part for path in TREES for part in path.with_suffix("").parts}
    return places | {name for name in names if isinstance(name, str)}


def glossary() -> dict[str, list[str]]:
    """Map each word of the glossary to its names in the code."""
    rows = re.findall(r"^\| ([^|]+) \| .* \|(.*)\|$", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    return {word: re.findall(r"`(\w+)`", names) for word, names in rows}


def test_no_public_class_name_is_used_twice() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path, name in public_classes():
        places[name].append(str(path))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_each_package_says_what_question_it_answers() -> None:
    for path in ROOT.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(path.read_bytes())), path


def test_the_names_in_the_glossary_are_those_of_the_code() -> None:
    named = {name for names in glossary().values() for name in names}
    assert named
    assert named - identifiers() == set()


def test_classes_that_rooms_or_many_modules_share_are_in_the_glossary() -> None:
    """Names from the Kubernetes API need no row, nor do errors."""
    importers: defaultdict[str, set[Path]] = defaultdict(set)
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                importers[alias.name].add(path)
    shared = set()
    for path, name in public_classes():
        rooms = {importer.parts[0] for importer in importers[name]} - {path.parts[0]}
        if path.parts[0] != "kube" and not name.endswith("Error"):
            shared |= {name} if len(rooms) >= SHARED or len(importers[name]) >= USERS else set()
    assert shared
    assert shared - {name for names in glossary().values() for name in names} == set()


def test_the_drawing_of_the_rooms_names_each_package() -> None:
    page = (DOCS / "development.md").read_text(encoding="utf-8")
    drawing = re.search(r"^```\nkubectl_spread/\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert drawing
    drawn: list[str] = []
    parts: list[str] = []
    for indentation, name in re.findall(r"^((?:  )*)  ([a-z]+)/ ", drawing[1], re.MULTILINE):
        parts = [*parts[: len(indentation) // 2], name]
        drawn.append("/".join(parts))
    packages = [path.parent.as_posix() for path in TREES if path.name == "__init__.py" and path.parent.name]
    assert sorted(drawn) == sorted([*packages, "schemas"])


def test_the_forms_of_a_pod_are_in_their_modules() -> None:
    page = (DOCS / "development.md").read_text(encoding="utf-8")
    forms = re.findall(r"^\| (`[A-Z]\w+`(?:, `\w+`)*) \| .* \| `([a-z_/]+[.]py)` \|$", page, re.MULTILINE)
    assert forms
    classes = {(str(path), name) for path, name in public_classes()}
    assert {(path, name) for names, path in forms for name in re.findall(r"\w+", names)} <= classes


def test_the_modules_that_the_decisions_name_exist() -> None:
    for page in (DOCS / "decisions").glob("*.md"):
        for name in re.findall(r"`([\w/]+\.py)`", page.read_text(encoding="utf-8")):
            found = [*ROOT.rglob(name), *ROOT.parent.glob(name)]
            assert found, f"{page.name}: {name}"


def test_the_places_of_changes_exist() -> None:
    """A cell names modules by their paths and, next to them, classes, functions and their members."""
    page = (DOCS / "development.md").read_text(encoding="utf-8")
    table = page.partition("## Where a change belongs")[2].partition("## Tests")[0]
    text = "".join(path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py"))
    places = re.findall(r"`([^`]+)`", table)
    paths = [place for place in places if "/" in place or place.endswith(".py")]
    assert paths
    for path in paths:
        assert (ROOT / path).exists() or (ROOT.parent / path).exists() or list(ROOT.rglob(path)), path
    for name in {word for place in places if place not in paths and " " not in place for word in place.split(".")}:
        assert re.search(rf"\b{name}\b", text), name


def test_each_directory_of_tests_is_described() -> None:
    page = (DOCS / "development.md").read_text(encoding="utf-8")
    directories = {path.parent.name for path in (ROOT.parent / "tests").glob("*/*.py")}
    assert directories == set(re.findall(r"^\| `tests/(\w+)` ", page, re.MULTILINE))


def test_each_module_of_the_end_to_end_tests_has_their_mark() -> None:
    """``make unit`` leaves them out, because importing them takes half as long as importing all other modules."""
    modules = (ROOT.parent / "tests" / "e2e").glob("test_*.py")
    mark = re.compile(r"^pytestmark = \[?pytest\.mark\.e2e\b", re.MULTILINE)
    unmarked = [path.name for path in modules if not mark.search(path.read_text(encoding="utf-8"))]
    assert unmarked == []


def empty_names(tree: ast.Module) -> set[str]:
    """Return the variables and parameters of a module whose names say nothing; fields may be part of a contract."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    statements = (statement for node in classes for statement in node.body if isinstance(statement, ast.AnnAssign))
    fields = {statement.target.id for statement in statements if isinstance(statement.target, ast.Name)}
    return names & EMPTY_NAMES - fields


def test_names_of_variables_name_the_value() -> None:
    assert [path.as_posix() for path, tree in TREES.items() if empty_names(tree)] == []


def test_docstrings_name_exceptions_that_exist() -> None:
    """A rename may leave a name that no longer exists, or that cannot be raised."""
    named = {
        (path.as_posix(), name)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for _, section in [(ast.get_docstring(node) or "").partition("Raises:")[::2]]
        for name in re.findall(r"^    ([A-Z]\w+): ", section, re.MULTILINE)
    }
    assert len(named) > 50
    ours = {
        name: import_module(f"kubectl_spread.{'.'.join(path.with_suffix('').parts)}") for path, name in public_classes()
    }
    classes = {**vars(builtins), **{name: getattr(module, name) for name, module in ours.items()}}
    assert {exception for exception in named if not _is_exception(classes.get(exception[1]))} == set()


def _is_exception(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def test_import_chains_are_short_and_end() -> None:
    """A chain of imports, late ones as well, has at most 24 modules, and none is a circle."""
    graph = grimp.build_graph("kubectl_spread", exclude_type_checking_imports=True)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    # A circle ends the order with a CycleError.
    lengths: dict[str, int] = {}
    for module in TopologicalSorter(imported).static_order():
        lengths[module] = 1 + max((lengths[each] for each in imported[module]), default=0)
    assert max(lengths.values()) <= 24
