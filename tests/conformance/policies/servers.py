"""A real API server with the policies of its version, and its answers to requests that store nothing."""

from __future__ import annotations

import copy
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from tests.builders import Json
from tests.commands import SPREAD
from tests.controlplane.client import MERGE_PATCH, Answer, ApiClient
from tests.controlplane.cluster import ControlPlane

VERSIONS: Final = {33: "v1.33.13", 34: "v1.34.4", 37: "v1.37.1"}
"""The version of the API server of each minor."""

_DRY_RUN: Final = "?dryRun=All"
_DENIED: Final = " denied request: "
_VIOLATION: Final = re.compile(
    r"Validation failed for ValidatingAdmissionPolicy '\S+' with binding '\S+': (.*)", re.DOTALL
)
_CODE: Final = re.compile(r"(SPR\d+) [a-z-]+: (.*)", re.DOTALL)
_MESSAGE: Final = re.compile(r"SPR\d+(?= [a-z-]+: )")
_DRY_RUNS_ONLY: Final = {"name": "dry-run", "expression": "request.?dryRun.orValue(false)"}
_NAMES: Final = {"name": "probe", "namespace": "default"}
_LABELS: Final = {"example.com/name": "probe"}
_SPEC: Final[Json] = {
    "containers": [{"name": "app", "image": "registry.example/app:1"}],
    "restartPolicy": "Always",
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "other"}},
            "matchLabelKeys": ["example.com/name"],
        }
    ],
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "other"}},
                    "matchLabelKeys": ["example.com/name"],
                }
            ]
        }
    },
}
_TEMPLATE: Final[Json] = {"metadata": {"labels": _LABELS}, "spec": _SPEC}
_JOB_TEMPLATE: Final[Json] = {**_TEMPLATE, "spec": {**_SPEC, "restartPolicy": "Never"}}
_PROBES: Final[tuple[Json, ...]] = (
    {"apiVersion": "v1", "kind": "Pod", "metadata": {**_NAMES, "labels": _LABELS}, "spec": _SPEC},
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _NAMES,
        "spec": {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE},
    },
    {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": _NAMES,
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": _JOB_TEMPLATE}}},
    },
    {"apiVersion": "v1", "kind": "PodTemplate", "metadata": _NAMES, "template": _TEMPLATE},
)
"""Objects with SPR206."""
_STORED: Final[Json] = {**_PROBES[0], "metadata": {**_PROBES[0]["metadata"], "name": "stored"}}
"""A pod with an affinity term, which every API server merges."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer of an API server with policies.

    Attributes:
        messages: The messages of the violations, by code; "" is the code of an unexpected message.
        denied: Whether a policy refused the request.
        invalid: The reason why the API server itself refused; "" if it did not.
    """

    messages: dict[str, list[str]]
    denied: bool
    invalid: str

    @property
    def codes(self) -> frozenset[str]:
        """The codes of the violations."""
        return frozenset(self.messages)


class Server:
    """An API server that enforces policies on requests with ``dryRun`` alone, and warns of each violation."""

    def __init__(self, api: ApiClient, carried: frozenset[str]) -> None:
        """Send requests by ``api`` to a server whose policies have the rules ``carried``."""
        self.api = api
        self.carried = carried

    def creation(self, manifest: Json) -> Outcome:
        """Return the answer to the creation of an object, which is not stored."""
        return _outcome(self.api.answer("POST", f"{self.api.collection(manifest)}{_DRY_RUN}", manifest))

    def update(self, manifest: Json) -> Outcome:
        """Return the answer to the replacement of a stored object, which is not stored."""
        path = f"{self.api.collection(manifest)}/{manifest['metadata']['name']}"
        return _outcome(self.api.answer("PUT", f"{path}{_DRY_RUN}", manifest))

    def relabelling(self, pod: Json, labels: Json) -> Outcome:
        """Return the answer to a change of a pod's labels, which is not stored; a label that is null is removed."""
        patch = {"metadata": {"labels": labels}}
        return _outcome(self.api.answer("PATCH", f"{_path(pod)}{_DRY_RUN}", patch, MERGE_PATCH))

    def relabel(self, pod: Json, labels: Json) -> Json:
        """Change a pod's labels, which no policy prevents, and return it as stored."""
        stored: Json = self.api.patch(_path(pod), {"metadata": {"labels": labels}})
        return stored


@contextmanager
def server(directory: Path, minor: int) -> Iterator[Server]:
    """Start an API server with the policies for its version, in effect when the ``with`` block begins."""
    documents = list(printed(minor))
    codes = {code for document in documents for code in _codes(document)}
    with ControlPlane.start(directory, version=VERSIONS[minor], scheduler=False, controllers=False) as cluster:
        for document in documents:
            for manifest in _installed(document):
                cluster.api.create(manifest, fieldValidation="Strict")
        started = Server(cluster.api, frozenset(codes))
        cluster.api.create(_STORED)
        cluster.wait_for(lambda: _in_effect(started), what="the policies are in effect")
        yield started


def printed(minor: int) -> Iterator[Json]:
    """Yield the documents that ``kubectl spread policy`` prints for a version."""
    flags = ("--for", f"1.{minor}", "--action", "deny")
    done = subprocess.run([str(SPREAD), "policy", *flags], check=True, capture_output=True, text=True)
    yield from YAML(typ="safe").load_all(done.stdout)


def _codes(document: Json) -> Iterator[str]:
    """Yield the codes of the rules in a policy."""
    for validation in document["spec"].get("validations", ()):
        yield from _MESSAGE.findall(f"{validation.get('message', '')} {validation.get('messageExpression', '')}")


def _installed(document: Json) -> Iterator[Json]:
    """Yield what is created for a document.

    Here a policy applies to dry runs alone, and refuses where one of its expressions fails, which would be ignored.
    A second binding warns of each violation, because a refusal has only the first message.
    """
    manifest = copy.deepcopy(document)
    if manifest["kind"] == "ValidatingAdmissionPolicy":
        spec = manifest["spec"]
        spec["failurePolicy"] = "Fail"
        spec["matchConditions"] = [*spec.get("matchConditions", ()), _DRY_RUNS_ONLY]
        yield manifest
        return
    yield manifest
    warning = copy.deepcopy(document)
    warning["metadata"]["name"] += "-warning"
    warning["spec"]["validationActions"] = ["Warn"]
    yield warning


def _in_effect(started: Server) -> bool:
    """Tell whether each policy refuses and warns."""
    outcomes = [started.creation(probe) for probe in _PROBES]
    outcomes.append(started.relabelling(_STORED, dict.fromkeys(_LABELS, "changed")))
    return all(outcome.denied and outcome.messages for outcome in outcomes)


def _outcome(answer: Answer) -> Outcome:
    violations = (_VIOLATION.fullmatch(warning) for warning in answer.warnings)
    messages: dict[str, list[str]] = {}
    for violation in violations:
        if violation:
            code = _CODE.fullmatch(violation[1])
            messages.setdefault(code[1] if code else "", []).append(code[2] if code else violation[1])
    message = answer.body.get("message", "") if answer.refused else ""
    denied = _DENIED in message
    return Outcome(messages, denied, "" if denied else message)


def _path(pod: Json) -> str:
    metadata: Any = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
