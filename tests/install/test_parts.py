"""Parts of a release that can be tested without a build."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

from release import changelog, notices, pruning
from release.environments import ROOT


def _package(directory: Path, *names: str) -> None:
    for name in names:
        path = directory / "kubernetes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("from . import everything\n")


def test_pruning_leaves_the_modules_that_the_plugin_imports(tmp_path: Path) -> None:
    """Packages that import other modules are emptied, and those modules are removed."""
    _package(
        tmp_path,
        *pruning.MODULES,
        *pruning.EMPTIED,
        "config/kube_config.py",
        "client/models/v1_pod.py",
        "aio/stream.py",
    )
    pruning.prune(tmp_path)
    left = {path.relative_to(tmp_path / "kubernetes").as_posix(): path.read_text() for path in tmp_path.rglob("*.py")}
    assert set(left) == {*pruning.MODULES, *pruning.EMPTIED, "config/kube_config.py"}
    assert {name for name, text in left.items() if not text} == pruning.EMPTIED


def test_pruning_refuses_a_package_of_another_layout(tmp_path: Path) -> None:
    _package(tmp_path, "__init__.py", "client/__init__.py")
    with pytest.raises(FileNotFoundError, match="laid out in another way"):
        pruning.prune(tmp_path)


def test_notices_hold_the_licences_of_distributions() -> None:
    text = notices.text([distribution("certifi")], [])
    assert "\nPython 3." in text
    assert "Mozilla Public License" in text


@pytest.mark.parametrize("library", ["libcrypto.so.3", "libssl-3-x64.dll", "libz.so.1", "libffi-8.dll", "liblzma.so.5"])
def test_the_libraries_of_python_are_in_every_archive(library: str) -> None:
    """Some builds of Python have them in their own file, where no name shows them."""
    assert notices.text([], [library]) == notices.text([], [])
    for title in ("OpenSSL", "zlib", "libffi", "Expat", "liblzma", "bzip2", "libmpdec"):
        assert f"\n{title}\n====" in notices.text([], [])


@pytest.mark.parametrize(
    ("library", "words"),
    [
        ("libgcc_s.so.1", "GCC RUNTIME LIBRARY EXCEPTION"),
        ("libstdc++.so.6", "GNU GENERAL PUBLIC LICENSE"),
        ("VCRUNTIME140_1.dll", "Microsoft Visual C++ runtime"),
        ("api-ms-win-crt-math-l1-1-0.dll", "Universal C Runtime"),
    ],
)
def test_the_libraries_of_a_compiler_have_their_licence(library: str, words: str) -> None:
    assert words in notices.text([], [library])
    assert words not in notices.text([], [])


def test_an_unknown_library_is_refused() -> None:
    with pytest.raises(notices.UnlicensedError, match=r"libstrange\.so\.1 is none of the libraries"):
        notices.text([], ["libstrange.so.1"])


def test_a_distribution_without_a_licence_is_refused(tmp_path: Path) -> None:
    (tmp_path / "METADATA").write_text("Metadata-Version: 2.1\nName: unlicensed\nVersion: 1\n")
    with pytest.raises(notices.UnlicensedError, match="unlicensed has neither"):
        notices.text([Distribution.at(tmp_path)], [])


@pytest.mark.parametrize("value", ["/users/own", None])
def test_the_environment_of_the_user_is_restored(value: str | None) -> None:
    """PyInstaller's loader sets LD_LIBRARY_PATH, and keeps the value of the user under another name."""
    loaded = {"LD_LIBRARY_PATH": "/archive", "_PYI_ARCHIVE_FILE": "x", "KEPT": "yes"}
    if value:
        loaded["LD_LIBRARY_PATH_ORIG"] = value
    script = (ROOT / "release" / "user_environment.py").read_text() + "\nprint(sorted(os.environ.items()))"
    completed = subprocess.run(
        [sys.executable, "-I", "-c", script], env=loaded, check=True, capture_output=True, text=True
    )
    expected = {"KEPT": "yes", **({"LD_LIBRARY_PATH": value} if value else {})}
    assert [variable for variable in ast.literal_eval(completed.stdout) if variable[0] != "LC_CTYPE"] == sorted(
        expected.items()
    )


def test_notes_are_the_section_of_the_version() -> None:
    text = "# Changelog\n\n## 0.10.0\n\nNew.\n\n## 0.1.0 (1 December 2026)\n\n- One.\n\n- Two.\n\n## 0.0.9\n\nOld.\n"
    assert changelog.notes(text, "0.1.0") == "- One.\n\n- Two.\n"
    assert changelog.notes(text, "0.0.9") == "Old.\n"


def test_links_of_notes_are_absolute() -> None:
    text = "## 0.1.0\n\n[a](docs/rules.md#spr101), [b](https://example.com/x)\n"
    page = "https://github.com/kubectl-spread/kubectl-spread/blob/v0.1.0/docs/rules.md#spr101"
    assert changelog.notes(text, "0.1.0") == f"[a]({page}), [b](https://example.com/x)\n"


@pytest.mark.parametrize("text", ["## Unreleased\n\nx\n", "## 0.1.0\n\n## 0.0.9\n\nx\n", "## 0x1x0\n\nx\n"])
def test_a_version_without_a_section_has_no_notes(text: str) -> None:
    with pytest.raises(LookupError, match="has no text below"):
        changelog.notes(text, "0.1.0")
