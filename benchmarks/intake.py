"""The processor time of ``check -A`` on clones of recorded pods, which a server in this process sends without TLS.

Run as ``python -m benchmarks.intake --pods 10000,30000 --against COMMIT``; the commit's code runs in turn with this
one, with the same interpreter and libraries.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from benchmarks.clones import Clones, empty
from benchmarks.sidebyside import medians, table
from kubectl_spread.sources.decode.resources import BUDGETS, NODES, PODS, WORKLOADS

NOW: Final = "this commit"
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_VERSION: Final = json.dumps({"major": "1", "minor": "37", "gitVersion": "v1.37.1"}).encode()
_CHUNKS: Final = (2048, 10_400)
"""An API server sends the beginning of each pod in a chunk, and the rest of it in another."""
_ROOT: Final = Path(__file__).parents[1]


class _Handler(BaseHTTPRequestHandler):
    """Answers with the pages of ``served``; a continue token is the number of a page."""

    protocol_version = "HTTP/1.1"
    served: Mapping[str, list[bytes]]

    def do_GET(self) -> None:
        """Send a page, the version, or the status 404."""
        url = urlsplit(self.path)
        if url.path == "/version":
            self._send(200, "application/json", _VERSION)
        elif url.path in self.served:
            pages = self.served[url.path]
            self._send(200, _PROTOBUF, pages[int(parse_qs(url.query).get("continue", ["0"])[0])])
        else:
            self._send(404, "text/plain", b"")

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        at = 0
        for size in cycle(_CHUNKS):
            # An empty chunk is the end.
            part = body[at : at + size]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            at += size
            if not part:
                return

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    """A server that accepts all requests of a check at once, as an API server does."""

    request_queue_size = 128


@contextmanager
def serving(clones: Clones, directory: Path) -> Iterator[Path]:
    """Serve a cluster as long as the block lasts; yield a kubeconfig that leads to it."""
    pages = {resource.plural: [empty(resource)] for resource in (PODS, NODES, BUDGETS, *WORKLOADS)} | clones.pages
    served = {resource.path(): pages[resource.plural] for resource in (PODS, NODES, BUDGETS, *WORKLOADS)}
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"served": served}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kubeconfig = directory / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "clones",
        "contexts": [{"name": "clones", "context": {"cluster": "clones", "user": "anyone"}}],
        "clusters": [{"name": "clones", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "anyone", "user": {}}],
    }
    kubeconfig.write_text(json.dumps(content), encoding="utf-8")
    try:
        yield kubeconfig
    finally:
        server.shutdown()
        server.server_close()


def checkout(commit: str, directory: Path) -> Path:
    """Write the files of a commit to a directory, and return it."""
    archive = subprocess.run(["git", "archive", commit], cwd=_ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(directory, filter="data")
    return directory


def python(root: Path, *arguments: str) -> list[str]:
    """Return a command that runs Python with the modules of a checkout, and with the libraries of this one."""
    return ["env", f"PYTHONPATH={root}", sys.executable, "-P", *arguments]


def main() -> None:
    """Compare commits at each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", default="10000,30000", help="sizes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", action="append", default=[], metavar="COMMIT")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        roots = {commit: checkout(commit, Path(directory, commit)) for commit in arguments.against} | {NOW: _ROOT}
        for pods in map(int, arguments.pods.split(",")):
            with serving(Clones(pods), Path(directory)) as kubeconfig:
                # As installed: with the modules compiled.
                compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": directory}
                environment = {**os.environ, **compiled, "KUBECONFIG": str(kubeconfig)}
                commands = {name: python(root, "-m", "kubectl_spread", "check", "-A") for name, root in roots.items()}
                base = next(iter(commands))
                print(f"\n{pods:,} pods\n")
                print("\n".join(table(medians(commands, environment, arguments.rounds, base), base)), flush=True)


if __name__ == "__main__":
    main()
