"""Changes are applied to copies of files that have the changed text exactly once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import overlays
from tests.conformance.overlays import Change


def module(directory: Path, text: str) -> Path:
    (directory / "pkg").mkdir(parents=True)
    (directory / "pkg" / "a.go").write_text(text, encoding="utf-8")
    return directory


def test_changes_are_written_to_copies(tmp_path: Path) -> None:
    upstream = module(tmp_path / "module", "one two three")
    changes = (Change("pkg/a.go", "one", "1"), Change("pkg/a.go", "three", "3"))
    replaced = overlays.write(changes, upstream, tmp_path / "changed")
    assert replaced == {str(upstream / "pkg/a.go"): str(tmp_path / "changed/pkg/a.go")}
    assert (tmp_path / "changed/pkg/a.go").read_text(encoding="utf-8") == "1 two 3"
    assert (upstream / "pkg/a.go").read_text(encoding="utf-8") == "one two three"


@pytest.mark.parametrize(
    ("text", "number"), [pytest.param("two", 0, id="absent"), pytest.param("one, one", 2, id="twice")]
)
def test_a_file_must_have_the_changed_text_exactly_once(tmp_path: Path, text: str, number: int) -> None:
    with pytest.raises(ValueError, match=f"pkg/a.go has {number} places, not one, to change: one"):
        overlays.write((Change("pkg/a.go", "one", "1"),), module(tmp_path / "module", text), tmp_path / "changed")
