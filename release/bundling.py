"""The directory of an archive, with the programs and everything that they need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path
from typing import Final

from release import notices
from release.environments import ROOT, Environment
from release.pruning import prune

_CONTENTS: Final = "_internal"
_PROGRAM: Final = "import sys\n\nfrom {module} import {attribute}\n\nsys.exit({attribute}())\n"


def bundle(tools: Environment, environment: Environment, work: Path) -> Path:
    """Return the directory ``kubectl-spread``, built from ``environment``, which is pruned."""
    prune(environment.packages)
    scripts = [str(_script(point, work)) for point in programs(environment.packages)]
    settled = {**os.environ, "PYTHONHASHSEED": "0", "PYINSTALLER_CONFIG_DIR": str(work / "cache")}
    directories = ("--distpath", str(work / "bundle"), "--workpath", str(work / "analysis"))
    spec = str(ROOT / "release" / "bundle.spec")
    # At its usual level it prints hundreds of optional modules that are missing.
    quiet = ("--noconfirm", "--log-level", "ERROR")
    inputs = ("--", str(environment.packages), *scripts)
    tools.run("-m", "PyInstaller", *quiet, *directories, spec, *inputs, variables=settled)
    directory = work / "bundle" / "kubectl-spread"
    _refuse_strangers(directory / _CONTENTS, environment)
    if sys.platform == "linux":
        _forget_the_builder(directory, tools)
    shutil.copy(ROOT / "LICENSE", directory / "LICENSE")
    shutil.copytree(ROOT / "man", directory / "share" / "man" / "man1")
    parts = bundled_distributions(environment, directory)
    forget_others(directory / _CONTENTS, parts)
    text = notices.text(parts, _libraries(directory / _CONTENTS, parts))
    (directory / "THIRD-PARTY-NOTICES.txt").write_text(text, encoding="utf-8", newline="\n")
    return directory


def programs(packages: Path) -> list[EntryPoint]:
    """Return the programs that installing the project puts on PATH."""
    (project,) = distributions(name="kubectl-spread", path=[str(packages)])
    return sorted(project.entry_points.select(group="console_scripts"), key=lambda point: point.name)


def bundled_distributions(environment: Environment, directory: Path) -> list[Distribution]:
    """Return the distributions with modules in the directory, without the project itself, by name."""
    installed = distributions(path=[str(environment.packages)])
    bundled = [
        distribution
        for distribution in installed
        if distribution.name != "kubectl-spread" and _is_held(distribution, directory / _CONTENTS)
    ]
    return sorted(bundled, key=lambda distribution: distribution.name.lower())


def _libraries(contents: Path, parts: Sequence[Distribution]) -> list[str]:
    """Return the names of the libraries that are neither of a distribution nor Python's own."""
    own = {file.name for part in parts for file in part.files or ()}
    libraries = [path for path in contents.iterdir() if ".so" in path.name or path.suffix in {".dll", ".dylib"}]
    python = ("libpython", "python3")
    return sorted(path.name for path in libraries if path.name not in own and not path.name.lower().startswith(python))


def forget_others(packages: Path, parts: Sequence[Distribution]) -> None:
    """Remove the metadata of distributions that are neither in ``parts`` nor the project."""
    names = {part.name for part in parts} | {"kubectl-spread"}
    for information in packages.glob("*.dist-info"):
        if Distribution.at(information).name not in names:
            shutil.rmtree(information)


def _is_held(distribution: Distribution, contents: Path) -> bool:
    modules = (Path(file) for file in distribution.files or () if file.suffix in {".py", ".so", ".pyd"})
    return any((contents / path).exists() or (contents / path).with_suffix(".pyc").exists() for path in modules)


def _refuse_strangers(contents: Path, environment: Environment) -> None:
    """Refuse modules that belong neither to Python nor to a distribution in the lock file.

    Raises:
        LookupError: There are some, whose versions and licences are not known.
    """
    files = [
        file for distribution in distributions(path=[str(environment.packages)]) for file in distribution.files or ()
    ]
    own_modules = {file.parts[0].partition(".")[0] for file in files} | sys.stdlib_module_names
    modules = {path.stem for path in contents.iterdir() if path.suffix == ".pyc" or next(path.rglob("*.pyc"), None)}
    strangers = sorted(name for name in modules - own_modules if not name.startswith("_sysconfigdata"))
    if strangers:
        raise LookupError(f"not pinned, but found by the bundler: {', '.join(strangers)}")


def _script(point: EntryPoint, work: Path) -> Path:
    script = work / f"{point.name}.py"
    script.write_text(_PROGRAM.format(module=point.module, attribute=point.attr), encoding="utf-8")
    return script


def _forget_the_builder(directory: Path, tools: Environment) -> None:
    """Remove the library paths of the build machine: on another machine anybody may own those directories."""
    patchelf = tools.programs / "patchelf"
    for library in sorted(directory.rglob("*.so*")):
        command = [str(patchelf), "--print-rpath", str(library)]
        searched = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        if searched.startswith("/"):
            subprocess.run([patchelf, "--remove-rpath", library], check=True)
