"""Whole checks of an API server whose lists have odd objects, or are damaged."""

from __future__ import annotations

import json
import random
from typing import Any, Final
from unittest.mock import patch

from click.testing import CliRunner

from kubectl_spread.cli import cli
from kubectl_spread.sources.apiserver import transport
from kubectl_spread.sources.decode.resources import BUDGETS, CLAIMS, EVENTS, NODES, PODS, VOLUMES, WORKLOADS
from tests.fuzz import corpus, mutation
from tests.fuzz.outcome import Outcome
from tests.sources.server import Reply, Request, Server, serve

_RESOURCES: Final = {
    resource.plural: resource for resource in (PODS, NODES, EVENTS, CLAIMS, VOLUMES, BUDGETS, *WORKLOADS)
}
_BY_KIND: Final = {resource.kind: resource for resource in _RESOURCES.values()}
_VERSION: Final = b'{"major": "1", "minor": "37", "gitVersion": "v1.37.1"}'
_FORBIDDEN: Final = b'{"kind": "Status", "apiVersion": "v1", "reason": "Forbidden", "message": "no", "code": 403}'
_CHECKS: Final = (
    ("check", "-A"),
    ("check", "-A", "-o", "wide", "--show", "all", "--recreate", "--to", "1.34"),
    ("check", "-o", "json", "--defaults"),
    ("check", "-o", "yaml", "--select", "SPR1"),
    ("check", "-A", "-o", "markdown"),
    ("explain", "deploy/web"),
    ("explain", "pod/web-1", "-o", "json"),
    ("domains", "-A"),
)


class _Lists(Server):
    """Answers each path with the text of its list, and the lists that it does not have with empty ones."""

    lists: dict[str, bytes]

    def next(self, request: Request) -> Reply:
        plural = request.path.rpartition("/")[2]
        body = self.lists.get(plural, b"")
        if body == _FORBIDDEN:
            return Reply(403, body)
        if plural == "version":
            return Reply(body=body or _VERSION)
        resource = _RESOURCES.get(plural)
        if resource is None:
            return Reply(404, b"{}")
        return Reply(body=body or json.dumps(_list(plural, [])).encode())


def _list(plural: str, items: list[Any]) -> dict[str, Any]:
    list_type = _RESOURCES[plural].list_type
    metadata = {"resourceVersion": "7"}
    return {"kind": list_type.kind, "apiVersion": list_type.api_version, "metadata": metadata, "items": items}


def lists(chance: random.Random) -> bytes:
    """Return a line for each list, with the plural of its resource."""
    manifests = corpus.objects()
    start = chance.randrange(len(manifests))
    items: dict[str, list[Any]] = {}
    for manifest in manifests[start : start + chance.randint(1, 30)]:
        resource = _BY_KIND.get(str(manifest.get("kind"))) if isinstance(manifest, dict) else None
        if resource is not None:
            named = {"namespace": "default", **manifest["metadata"]} if resource.namespaced else manifest["metadata"]
            items.setdefault(resource.plural, []).append({**manifest, "metadata": named})
    texts = {plural: json.dumps(_list(plural, objects)) for plural, objects in items.items()}
    for plural in chance.sample(sorted(texts), min(len(texts), 2)):
        texts[plural] = mutation.written(json.dumps(mutation.odd(_list(plural, items[plural]), chance)))
    lines = {plural: text.encode("utf-8", "surrogatepass") for plural, text in texts.items()}
    lines |= {plural: _FORBIDDEN for plural in _RESOURCES if chance.random() < 0.03}
    if chance.random() < 0.2 and lines:
        plural = chance.choice(sorted(lines))
        lines[plural] = mutation.damaged(lines[plural], chance).replace(b"\n", b" ")
    return b"\n".join(plural.encode() + b" " + line for plural, line in sorted(lines.items()))


def check(body: bytes, chance: random.Random) -> Outcome:
    """Run one of the commands against a server with these lists."""
    arguments = chance.choice(_CHECKS)
    with serve() as server, patch.object(transport, "backoff", lambda *_: 0.0):
        server.__class__ = _Lists
        server.lists = dict(_split(line) for line in body.split(b"\n") if line)  # type: ignore[attr-defined]
        command = [*arguments, "-v", "-s", server.url]
        invocation = CliRunner().invoke(cli, command, env={"KUBECONFIG": "/no/where"})
    error = None if isinstance(invocation.exception, SystemExit) else invocation.exception
    return Outcome(invocation.exit_code, invocation.stdout_bytes, invocation.stderr_bytes, error, " ".join(arguments))


def _split(line: bytes) -> tuple[str, bytes]:
    plural, _, text = line.partition(b" ")
    return plural.decode(), text
