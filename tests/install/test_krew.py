"""krew installs the plugin from the manifest and the archive, and kubectl runs it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from kubectl_spread import __version__
from release import manifest
from tests.controlplane.cluster import ControlPlane
from tests.e2e.spread import Plugin
from tests.install.krew import Index, Krew, served
from tests.install.programs import program

pytestmark = pytest.mark.install

_DOWNLOADS = "https://github.com/kubectl-spread/kubectl-spread/releases/download"


def test_the_index_would_take_the_manifest(dist: Path) -> None:
    """The check of krew-index, without installing the archives of all platforms from their release."""
    checked = [str(program("validate-krew-manifest")), "-manifest", str(dist / "spread.yaml"), "-skip-install"]
    completed = subprocess.run(checked, check=False, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    assert "all spec.platform[] items are used" in completed.stderr


def test_kubectl_finds_what_krew_installed(krew: Krew) -> None:
    answer = krew.spread()("--version")
    assert answer.stdout.startswith(f"Client Version: v{__version__}\n")
    assert {"LICENSE", "THIRD-PARTY-NOTICES.txt"} <= {path.name for path in krew.program.parent.iterdir()}
    assert (krew.program.parent / "share" / "man" / "man1" / "kubectl-spread.1").is_file()


def test_krew_installs_upgrades_and_uninstalls_from_an_index(dist: Path, tmp_path: Path) -> None:
    """The commands are those of users; the index and the downloads are on loopback instead of GitHub."""
    index = Index(tmp_path / "index")
    krew = Krew(tmp_path, str(index.directory))
    digests = manifest.digests(dist)
    with served(dist) as address:
        for version in ("0.0.9", __version__):
            published = manifest.text(digests, version).replace(f"{_DOWNLOADS}/v{version}", address)
            index.publish(published)
            krew("update")
            krew("install" if version == "0.0.9" else "upgrade", "spread")
            assert krew.program.parent == krew.root / "store" / "spread" / f"v{version}"
            assert krew.spread()("rules").status == 0
    assert [path.name for path in (krew.root / "store" / "spread").iterdir()] == [f"v{__version__}"]
    krew("uninstall", "spread")
    assert not (krew.root / "store" / "spread").exists()
    assert not (krew.root / "bin" / "kubectl-spread").is_symlink()


def test_krew_refuses_another_archive(dist: Path, tmp_path: Path, archive: Path) -> None:
    """Only the archive has the sha256 of the manifest."""
    changed = tmp_path / archive.name
    changed.write_bytes(archive.read_bytes() + b"\0")
    with pytest.raises(AssertionError, match="checksum does not match"):
        Krew(tmp_path)("install", f"--manifest={dist / 'spread.yaml'}", f"--archive={changed}")


@pytest.mark.parametrize(
    "arguments",
    [
        ("check",),
        ("check", "-A", "-o", "json"),
        ("explain", "deploy/web"),
        ("check", "-o", "wide"),
        ("check", "nothing"),
    ],
    ids=" ".join,
)
def test_it_answers_as_the_checkout_does(
    arguments: tuple[str, ...], web: ControlPlane, krew: Krew, tmp_path: Path
) -> None:
    """The text and the exit status about the same cluster are the same."""
    expected = Plugin(tmp_path).on(web)(*arguments)
    answer = krew.spread(web.environment())(*arguments)
    assert (answer.status, _settled(answer.stdout), answer.stderr) == (
        expected.status,
        _settled(expected.stdout),
        expected.stderr,
    )
    assert answer.stdout or answer.stderr


def _settled(text: str) -> str:
    """Return the output without the revisions of the cluster, which its own programs change, and without the time."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    text = re.sub(r'(resourceVersion"?:? "?)\d+', r"\1N", text)
    # The revision of each list, in JSON.
    return re.sub(r'(\b[a-z]+": ")\d+"', r'\1N"', text)
