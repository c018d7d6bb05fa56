"""Simulations and plans of small clusters with an odd object, and of odd manifests that are applied."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner

from kubectl_spread.cli import cli
from tests.fuzz import mutation
from tests.fuzz.outcome import Outcome
from tests.plan import small

_EVENTS: Final = (
    ("--lose", "zone=a"),
    ("--lose", "a1,b1", "--delete", "a1"),
    ("--delete", "zone=a"),
    ("--drain", "a1,b1"),
    ("--add", "zone=a:2"),
    ("--restart", "deploy/web"),
    ("--scale", "deploy/web=7"),
    ("--lose", "a1", "--add", "zone=b", "--restart", "deploy/web"),
)
_FORMS: Final = ((), ("-o", "wide"), ("-o", "json"), ("-o", "markdown"), ("-o", "html"))
_NUMBERS: Final = (-1, 0, 1, 3, 100, 1_000, 2**31 - 1)
_TEXTS: Final = (
    "",
    "0",
    "-1",
    "0%",
    "100%",
    "1000%",
    "9" * 5000,
    "1e3",
    "100m",
    "zone",
    "a1",
    "web",
    "Recreate",
    "OnDelete",
)
_APPLIED: Final = ("Deployment", "StatefulSet")


def capture(chance: random.Random) -> bytes:
    """Return a small cluster as a List; one or two objects, or a manifest as its first item, are odd."""
    objects = small.cluster_of(chance.random().hex(), varied=chance.random() < 0.5)
    workloads = [each for each in objects if each["kind"] in _APPLIED]
    change = mutation.odd if chance.random() < 0.2 else _changed
    manifest = change(chance.choice(workloads), chance)
    for _ in range(chance.choice((0, 1, 2))):
        index = chance.randrange(len(objects))
        objects[index] = change(objects[index], chance)
    return mutation.written(json.dumps({"manifest": manifest, "cluster": _list(objects)})).encode(
        "utf-8", "surrogatepass"
    )


def _changed(value: Any, chance: random.Random) -> Any:
    """Return a copy with another value of the same JSON type at one place, so that it can mostly be read."""
    if isinstance(value, dict) and value:
        key = chance.choice(list(value))
        if chance.random() < 0.05:
            return {each: field for each, field in value.items() if each != key}
        return {**value, key: _changed(value[key], chance)}
    if isinstance(value, list) and value:
        if chance.random() < 0.1:
            return value * chance.choice((0, 2))
        index = chance.randrange(len(value))
        return [*value[:index], _changed(value[index], chance), *value[index + 1 :]]
    if isinstance(value, bool):
        return not value
    return chance.choice(_NUMBERS if isinstance(value, int) else _TEXTS)


def _list(objects: list[Any]) -> Any:
    return {"apiVersion": "v1", "kind": "List", "items": objects}


def run(body: bytes, chance: random.Random) -> Outcome:
    """Simulate one event, or plan."""
    _, _, rest = body.partition(b'{"manifest": ')
    manifest, _, cluster = rest.rpartition(b', "cluster": ')
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "manifest.json"
        path.write_bytes(manifest)
        arguments = chance.choice(
            (
                ("plan", "--runs", "2"),
                ("domains", "-A", "-o", "json"),
                *(("simulate", *events, "--runs", "2") for events in _EVENTS),
                *3 * (("simulate", "--apply", str(path), "-n", "shop", "--runs", "2"),),
            )
        )
        form = () if arguments[0] == "domains" else chance.choice(_FORMS)
        invocation = CliRunner().invoke(cli, [*arguments, *form, "-v", "-f", "-"], input=cluster.removesuffix(b"}"))
    error = None if isinstance(invocation.exception, SystemExit) else invocation.exception
    name = " ".join(arguments[:2])
    return Outcome(invocation.exit_code, invocation.stdout_bytes, invocation.stderr_bytes, error, name)
