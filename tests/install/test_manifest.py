"""The krew manifest in the repository keeps the rules of krew."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_spread import __version__
from release import archiving, manifest
from release.environments import REPOSITORY, ROOT
from release.platforms import PLATFORMS, Platform

_ARCHITECTURES = {
    "windows": {"386", "amd64", "arm64"},
    "linux": {"386", "amd64", "arm", "arm64", "ppc64le"},
    "darwin": {"386", "amd64", "arm64"},
}
_SEMVER = r"v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?"


@pytest.fixture
def published() -> Any:
    """Return the manifest in the repository."""
    return yaml.safe_load(manifest.MANIFEST.read_text())


def test_the_published_manifest_is_the_template_of_this_version() -> None:
    """Only the sha256 of archives may differ; if this fails, run `make dist`."""
    remaining = re.sub(r'sha256: "[0-9a-f]{64}"', f'sha256: "{manifest.UNBUILT}"', manifest.MANIFEST.read_text())
    assert remaining == manifest.text({})


def test_it_is_a_plugin_as_krew_reads_it(published: Any) -> None:
    """The manifest has the fields that krew requires, and no fields that krew ignores."""
    assert set(published) == {"apiVersion", "kind", "metadata", "spec"}
    assert (published["apiVersion"], published["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert published["metadata"] == {"name": "spread"}
    spec = published["spec"]
    assert set(spec) == {"version", "homepage", "shortDescription", "description", "caveats", "platforms"}
    assert re.fullmatch(_SEMVER, spec["version"])
    assert spec["version"] == f"v{__version__}"
    assert 0 < len(spec["shortDescription"]) <= 50
    assert "\n" not in spec["shortDescription"]


def test_its_texts_fit_a_terminal_and_begin_with_the_purpose(published: Any) -> None:
    """Users see them as they are, and `kubectl krew search` shows the first words."""
    spec = published["spec"]
    assert max(map(len, (*spec["description"].splitlines(), *spec["caveats"].splitlines()))) <= 80
    purpose = (
        "Shows which pods violate their topologySpreadConstraints, why a pod is pending, what happens if a zone is "
        "lost, and prints the commands that fix it."
    )
    assert " ".join(spec["description"].split("\n\n")[0].split()) == purpose


def test_the_project_has_the_address_of_the_manifest(published: Any) -> None:
    """krew-release-bot takes versions from this repository only, and PyPI links to it."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    assert published["spec"]["homepage"] == urls["Homepage"] == REPOSITORY
    assert all(url.startswith(REPOSITORY) for url in urls.values())


def test_its_platforms_are_as_krew_wants_them(published: Any) -> None:
    """Each platform is known to krew, appears once, and moves files within its directory."""
    matched = []
    for entry in published["spec"]["platforms"]:
        assert set(entry) == {"selector", "uri", "sha256", "files", "bin"}
        labels = entry["selector"]["matchLabels"]
        assert set(labels) == {"os", "arch"}
        assert labels["arch"] in _ARCHITECTURES[labels["os"]]
        matched.append((labels["os"], labels["arch"]))
        assert entry["uri"].startswith("https://")
        assert entry["uri"].endswith((".tar.gz", ".zip"))
        assert re.fullmatch("[0-9a-f]{64}", entry["sha256"])
        assert entry["files"] == [{"from": "kubectl-spread/*", "to": "."}]
        assert entry["bin"] == ("kubectl-spread.exe" if labels["os"] == "windows" else "kubectl-spread")
    assert sorted(matched) == sorted(set(matched))
    assert len(matched) == len(PLATFORMS)


def test_each_archive_has_its_own_digest() -> None:
    digests = {platform.archive: f"{number}" * 64 for number, platform in enumerate(PLATFORMS)}
    entries = yaml.safe_load(manifest.text(digests, "1.2.3"))["spec"]["platforms"]
    for entry in entries:
        directory, _, name = entry["uri"].rpartition("/")
        assert directory.endswith("/v1.2.3")
        assert entry["sha256"] == digests[name]


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.archive)
def test_the_release_builds_each_archive(platform: Platform) -> None:
    """The workflow has a runner for each archive of the manifest."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    built = workflow["jobs"]["archive"]["strategy"]["matrix"]["include"]
    assert [entry["platform"] for entry in built].count(f"{platform.system}-{platform.machine}") == 1


@pytest.mark.parametrize("name", ["made.tar.gz", "made.zip"])
def test_archives_depend_on_nothing_but_names_and_content(name: str, tmp_path: Path) -> None:
    """The times and modes of files do not matter, nor do links."""
    written = []
    for run in ("one", "two"):
        directory = tmp_path / run / "kubectl-spread"
        (directory / "lib").mkdir(parents=True)
        (directory / "kubectl-spread").write_text("program")
        (directory / "lib" / "a").write_text("a")
        if run == "one":
            (directory / "lib" / "b").symlink_to("a")
            (directory / "lib" / "a").chmod(0o600)
        else:
            (directory / "lib" / "b").write_text("a")
        target = tmp_path / run / name
        archiving.write(target, directory, frozenset({"kubectl-spread"}), 1_700_000_000)
        written.append(target.read_bytes())
    assert written[0] == written[1]
