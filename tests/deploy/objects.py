"""The objects that helm and kubectl render of ``deploy``."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from ruamel.yaml import YAML

from tests.builders import Json
from tests.controlplane import binaries
from tests.e2e import go_programs
from tests.generated import ROOT

Objects: TypeAlias = Mapping[str, Json]
"""Objects by kind and name, such as ``Role/monitor in shop``."""

DEPLOY: Final = ROOT / "deploy"
CHART: Final = DEPLOY / "helm" / "kubectl-spread-monitor"
KUSTOMIZE: Final = DEPLOY / "kustomize"
BASE: Final = KUSTOMIZE / "base"
VALUES: Final = sorted((CHART / "ci").glob("*-values.yaml"))
NAME: Final = "kubectl-spread-monitor"
"""The name of the chart, and in the base of every object and of the namespace."""
KUBERNETES: Final = f"--kube-version={binaries.KUBERNETES_VERSION}"
"""A helm that was built from its module takes Kubernetes for 1.20 if no cluster is asked."""


def load(path: Path) -> Any:
    """Return the only document of a file of YAML."""
    return YAML(typ="safe").load(path)


def parsed(text: str) -> Objects:
    """Return the objects in a text of YAML; none appears twice."""
    documents = [document for document in YAML(typ="safe").load_all(text) if document]
    objects = {identity(document): document for document in documents}
    assert len(objects) == len(documents)
    return objects


def identity(document: Json) -> str:
    """Return the kind and name of an object, and its namespace unless that is the usual one."""
    metadata = document["metadata"]
    namespace = metadata.get("namespace", NAME)
    return f"{document['kind']}/{metadata['name']}" + ("" if namespace == NAME else f" in {namespace}")


def helm(*arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the real helm."""
    command = [str(go_programs.binary(*go_programs.HELM)), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, env=environment)


def template(*arguments: str, release: str = NAME) -> subprocess.CompletedProcess[str]:
    """Run ``helm template`` for a release in the usual namespace."""
    return helm("template", release, str(CHART), f"--namespace={NAME}", KUBERNETES, *arguments)


def chart(*arguments: str) -> Objects:
    """Return the objects of the chart with these flags of helm."""
    completed = template(*arguments)
    assert completed.returncode == 0, completed.stderr
    return parsed(completed.stdout)


def kustomized(directory: Path) -> Objects:
    """Return the objects of a kustomization, rendered by the real kubectl."""
    command = [str(binaries.kubectl()), "kustomize", str(directory)]
    completed = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert completed.returncode == 0, completed.stderr
    return parsed(completed.stdout)


def overlay(directory: Path, *components: str, text: str = "") -> Path:
    """Write a kustomization of the base and of components in ``deploy/kustomize``, and return its directory."""
    directory.mkdir()
    # kustomize takes relative paths only.
    base, *others = (os.path.relpath(KUSTOMIZE / name, directory) for name in ("base", *components))
    lines = (f"resources: {json.dumps([base])}", f"components: {json.dumps(others)}", text)
    (directory / "kustomization.yaml").write_text("\n".join(lines), encoding="utf-8")
    return directory


def pod_templates(objects: Objects) -> Iterator[Json]:
    """Yield the pod templates of the Deployments."""
    for document in objects.values():
        if document["kind"] == "Deployment":
            yield document["spec"]["template"]
