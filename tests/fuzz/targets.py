"""Targets: the ways into the program, each with its input and its outcome."""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from click.testing import CliRunner
from ruamel.yaml import YAML

from kubectl_spread.audit.evaluation.evaluate import evaluate
from kubectl_spread.audit.merge.verdicts import ServerFacts
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.cli import cli
from kubectl_spread.cli.output import safe
from kubectl_spread.errors import SourceError
from kubectl_spread.explain.explanation import explain
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.sparse import SparsePod
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.api.workloads import WorkloadObject
from kubectl_spread.kube.features import behaviour, gates
from kubectl_spread.render import explanation, screen, structured, table
from kubectl_spread.render.terminal import Terminal
from kubectl_spread.sources.apiserver import responses
from kubectl_spread.sources.apiserver.transport import Response
from kubectl_spread.sources.decode.resources import NODES, SPARSE_PODS, WORKLOADS
from tests.audits import engine_of, reported
from tests.fuzz import clusters, corpus, exchanges, live, logins, mutation, simulations, wire
from tests.fuzz.outcome import Outcome

Make = Callable[[random.Random], bytes]
Run = Callable[[bytes, random.Random], Outcome]

_NAME: Final = re.compile(rb'"?name"?: *"?([a-z0-9-]{1,40})')
_CHECKS: Final = (
    ("check",),
    ("check", "-o", "wide", "--show", "all", "--recreate", "--to", "1.34"),
    ("check", "-o", "json", "-A", "--defaults"),
    ("check", "-o", "yaml"),
    ("check", "-o", "name"),
    ("merge",),
    ("merge", "-o", "json"),
    ("unmerge",),
    ("unmerge", "-o", "yaml"),
)
_EXPLANATIONS: Final = (("explain",), ("explain", "-o", "json"), ("explain", "-o", "yaml", "--replicas", "+3"))
_KINDS: Final = ("pod", "deploy", "rs", "sts", "job")
_LIST: Final = '{"kind": "List", "apiVersion": "v1",\n"items": ['
_SERVED: Final = behaviour(37, gates(37, {}))
_RESOURCES: Final[Mapping[str, Any]] = {resource.plural: resource for resource in (SPARSE_PODS, NODES, *WORKLOADS)}


@dataclass(frozen=True, slots=True)
class Target:
    """One way into the program: a function that makes its input, and one that runs it."""

    name: str
    make: Make
    run: Run


def command(body: bytes, chance: random.Random) -> Outcome:
    """Run one of the commands on standard input."""
    arguments = _arguments(body, chance)
    invocation = CliRunner().invoke(cli, [*arguments, "-v", "-f", "-"], input=body)
    error = None if isinstance(invocation.exception, SystemExit) else invocation.exception
    copies = arguments[0] in ("merge", "unmerge") and "-o" not in arguments
    return Outcome(
        invocation.exit_code, invocation.stdout_bytes, invocation.stderr_bytes, error, " ".join(arguments[:3]), copies
    )


def _arguments(body: bytes, chance: random.Random) -> Sequence[str]:
    names = _NAME.findall(body) if chance.random() < 0.4 else []
    if not names:
        return chance.choice(_CHECKS)
    return (*chance.choice(_EXPLANATIONS), f"{chance.choice(_KINDS)}/{chance.choice(names).decode()}")


def page(body: bytes, _chance: random.Random) -> Outcome:
    """Decode a page of pods, nodes or workloads as a live check does, and write the report in each format."""
    plural, _, body = body.partition(b"\n")
    bodies = {**corpus.pages(), plural.decode(): body}
    snapshot = Snapshot(Scope(), detailed=True)
    try:
        for name, resource in _RESOURCES.items():
            if name in bodies:
                _add(snapshot, resource, bodies[name])
        return Outcome(0, "".join(_forms(snapshot)).encode())
    except SourceError as error:
        return Outcome(2, stderr=safe(str(error)).encode())
    except Exception as error:  # noqa: BLE001 - an escaping error is a finding
        return Outcome(1, error=error)


def _add(snapshot: Snapshot, resource: Any, body: bytes) -> None:
    answer = Response(200, "application/vnd.kubernetes.protobuf", body)
    for decoded in responses.ListDecoder(resource).page(answer):
        match decoded:
            case SparsePod():
                snapshot.add_sparse(decoded)
            case Node():
                snapshot.add_node(decoded)
            case WorkloadObject():
                snapshot.add_workload(resource.kind, decoded)


def _forms(snapshot: Snapshot) -> list[str]:
    audit = evaluate(snapshot, ServerFacts(_SERVED, gates_known=False), nodes="listed")
    report = reported(audit)
    narrow, pipe = Terminal(width=40), Terminal()
    texts = [table.check(report, table.Layout(wide=wide, show="all"), pipe) for wide in (False, True)]
    texts += [table.check(report, table.Layout(), narrow)]
    texts += [structured.json(report), structured.yaml(report), structured.names(report)]
    if audit.pods:
        everything = ObjectRef(audit.pods[0].namespace, "Pod", "")
        explained = explain(audit, report, everything, engine_of(audit), replicas=2)
        texts += [
            structured.json(explained),
            screen.text(explanation.document(explained), pipe),
            screen.text(explanation.document(explained), narrow),
        ]
    return texts


def _some(chance: random.Random, most: int = 6) -> list[Any]:
    """Return a few objects that mostly belong together, one of them odd."""
    manifests = corpus.objects()
    start = chance.randrange(len(manifests))
    objects = list(manifests[start : start + chance.randint(1, most)])
    index = chance.randrange(len(objects))
    objects[index] = mutation.odd(objects[index], chance)
    return objects


def _json(value: Any, chance: random.Random) -> str:
    return mutation.written(json.dumps(value, ensure_ascii=chance.random() < 0.5, indent=chance.choice((None, 1))))


def _yaml(value: Any, chance: random.Random) -> str:
    """Return a document in block style, or with its lists and objects of scalars in flow style."""
    stream = io.StringIO()
    dumper = YAML(typ="safe", pure=True)
    dumper.default_flow_style = chance.choice((False, None))
    dumper.dump(value, stream)
    return mutation.written(stream.getvalue())


def _maybe_damaged(text: str, chance: random.Random, often: float = 0.3) -> bytes:
    body = text.encode("utf-8", "surrogatepass")
    return mutation.damaged(body, chance) if chance.random() < often else body


def json_file(chance: random.Random) -> bytes:
    """Return objects one after another."""
    return _maybe_damaged("\n".join(_json(manifest, chance) for manifest in _some(chance)), chance)


def yaml_file(chance: random.Random) -> bytes:
    """Return the text of a manifest, damaged, or an odd object written as YAML."""
    if chance.random() < 0.5:
        return mutation.damaged(chance.choice(corpus.texts()), chance)
    return _maybe_damaged(_yaml(_some(chance, 1)[0], chance), chance)


def documents(chance: random.Random) -> bytes:
    """Return several documents, in YAML and JSON by turns."""
    parts = [(_yaml if chance.random() < 0.4 else _json)(manifest, chance) for manifest in _some(chance, 4)]
    return _maybe_damaged(chance.choice(("---\n", "\n---\n", "\n...\n", "\n")).join(parts), chance)


def lists(chance: random.Random) -> bytes:
    """Return a List, a typed list, or Lists in Lists."""
    manifests = _some(chance)
    document = {"apiVersion": "v1", "kind": chance.choice(("List", "PodList", "DeploymentList")), "items": manifests}
    if chance.random() < 0.2:
        document = mutation.odd(document, chance)
    depth = chance.choice((0, 0, 0, 1, 5, 100, 470, 500))
    return _maybe_damaged(_LIST * depth + _json(document, chance) + "]}" * depth, chance)


def protobuf(chance: random.Random) -> bytes:
    """Return a line with the name of a resource, and a damaged or odd page in protobuf."""
    plural = chance.choice([name for name in corpus.pages() if name in _RESOURCES])
    body = corpus.pages()[plural]
    magic, body = body[:4], body[4:]
    fields = wire.parse(body)
    if fields and chance.random() < 0.7:
        for _ in range(chance.randint(1, 3)):
            fields = wire.odd(fields, chance)
        body = wire.encode(fields)
    else:
        body = mutation.damaged(body, chance)
    return plural.encode() + b"\n" + magic + body


TARGETS: Final = (
    Target("json", json_file, command),
    Target("yaml", yaml_file, command),
    Target("documents", documents, command),
    Target("list", lists, command),
    Target("protobuf", protobuf, page),
    Target("live", live.lists, live.check),
    Target("cluster", clusters.capture, clusters.run),
    Target("simulation", simulations.capture, simulations.run),
    Target("http", exchanges.answer, exchanges.exchange),
    Target("gzip", exchanges.stream, command),
    Target("kubeconfig", logins.kubeconfig, logins.log_in),
    Target("exec", logins.plugin_answer, logins.log_in_with_plugin),
    Target("oidc", logins.issuer_answers, logins.log_in_with_issuer),
)
