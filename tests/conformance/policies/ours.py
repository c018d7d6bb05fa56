"""What ``kubectl spread check -f`` finds in objects that do not influence each other."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.builders import Json
from tests.commands import SPREAD

_NAMESPACE: Final = "case-"
_UNANSWERED: Final = 2


class UncheckableError(ValueError):
    """An object has no kind, or something else that ``check`` cannot do without."""


class Key(NamedTuple):
    """A key of matchLabelKeys or mismatchLabelKeys in a term of a pod."""

    path: str
    operator: str
    name: str


@dataclass(slots=True)
class Found:
    """What is found in one object: the messages by code, and in a pod the verdict on each key."""

    messages: dict[str, list[str]] = field(default_factory=dict)
    verdicts: dict[Key, str] = field(default_factory=dict)

    @property
    def codes(self) -> frozenset[str]:
        """The codes of the findings."""
        return frozenset(self.messages)


def found(manifests: Sequence[Json], minor: int) -> list[Found]:
    """Return what ``check -f`` finds in each object, in one run; each is in a namespace of its own.

    Raises:
        UncheckableError: An object is not one that can be checked.
    """
    findings = [Found() for _ in manifests]
    report = _check([_alone(manifest, index) for index, manifest in enumerate(manifests)], minor)
    for finding in report["findings"]:
        findings[_index(finding)].messages.setdefault(finding["code"], []).append(finding["message"])
    for pod in report["pods"]:
        for key in pod["keys"]:
            findings[_index(pod)].verdicts[Key(pod["path"], key["operator"], key["key"])] = key["verdict"]
    return findings


def _alone(manifest: Json, index: int) -> Json:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": f"{_NAMESPACE}{index}"}}


def _index(entry: Json) -> int:
    return int(entry["namespace"].removeprefix(_NAMESPACE))


def _check(manifests: list[Json], minor: int) -> Any:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "objects.json")
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}), encoding="utf-8")
        flags = ("--server-version", f"1.{minor}", "--severity", "info", "-o", "json")
        done = subprocess.run(
            [str(SPREAD), "check", "-f", str(file), *flags], check=False, capture_output=True, text=True
        )
    if done.returncode >= _UNANSWERED:
        raise UncheckableError(done.stderr)
    return json.loads(done.stdout)
