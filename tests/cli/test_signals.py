"""Signals end a watch; the private key of the kubeconfig is in no file before or after the signal."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from kubectl_spread.sources.decode.resources import NODES, PODS, WORKLOADS
from tests.controlplane.certificates import Authority
from tests.sources.server import Reply, Request, Server, listed, serve

SCRIPT: Final = Path(sys.executable).with_name("kubectl-spread")
MAIN: Final = "from kubectl_spread.cli import main; main()"
WITHOUT_MEMORY_FILES: Final = f"import os; del os.memfd_create; {MAIN}"
SLOWLY: Final = f"""
import os, ssl, time
del os.memfd_create
class Slow(ssl.SSLContext):
    def load_cert_chain(self, *arguments):
        print("loading", flush=True)
        time.sleep(60)
import urllib3.util.ssl_
urllib3.util.ssl_.SSLContext = Slow
{MAIN}
"""
"""The key is in a file while OpenSSL reads it, on platforms without files in memory."""
IN_A_FINALIZER: Final = f"""
import gc, io, os, signal
class Response(io.IOBase):
    @property
    def closed(self):
        os.kill(os.getpid(), signal.SIGINT)
        return True
collect = gc.collect
def collecting():
    Response()
    return collect()
gc.collect = collecting
{MAIN}
"""
"""Ctrl-C arrives while the watch frees a response, where Python loses what the handler raises."""
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")


def answer(request: Request) -> Reply:
    """Answer as an API server without objects and events."""
    if request.path == "/version":
        return Reply(body=b'{"major": "1", "minor": "37"}')
    if "watch" in request.query:
        return Reply(delay=60)
    *_, group, version, plural = request.path.split("/")
    resource = {resource.plural: resource for resource in (PODS, NODES, *WORKLOADS)}.get(plural)
    if resource is None:
        return Reply(404)
    return listed(kind=f"{resource.kind}List", version=version if group == "api" else f"{group}/{version}")


@dataclass(frozen=True)
class Watched:
    """A server, a kubeconfig with a certificate and key for it, and an empty directory for temporary files."""

    server: Server
    kubeconfig: Path
    temporary: Path

    @contextmanager
    def running(self, *command: str, option: str = "--watch") -> Iterator[subprocess.Popen[str]]:
        """Watch the server with a program, or check it with another option, until the block is left."""
        with subprocess.Popen(
            [*command, "check", option, "-A", "--kubeconfig", str(self.kubeconfig)],
            env={**os.environ, "TMPDIR": str(self.temporary)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    @property
    def is_watching(self) -> bool:
        """Tell whether the program watches a list."""
        return any("watch" in request.query for request in self.server.requests)

    @property
    def files(self) -> list[Path]:
        """The temporary files."""
        return list(self.temporary.iterdir())


@pytest.fixture(autouse=True)
def _signals_that_are_not_ignored() -> Iterator[None]:
    """Start children with the default handlers; in the background of a script they would inherit an ignored SIGINT."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in before.items():
        if handler is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """Run a server that asks for a client certificate."""
    authority = Authority(tmp_path / "pki")
    pair = authority.server("server", ["127.0.0.1"])
    client = authority.client("client", "jane")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    tls.load_verify_locations(authority.certificate)
    tls.verify_mode = ssl.CERT_REQUIRED
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def embedded(path: Path) -> str:
        return b64encode(path.read_bytes()).decode()

    with serve(Reply(), tls=tls) as server:

        def next_reply(request: Request) -> Reply:
            server.requests.append(request)
            return answer(request)

        server.next = next_reply  # type: ignore[method-assign]
        user = {"client-certificate-data": embedded(client.certificate), "client-key-data": embedded(client.key)}
        cluster = {"server": server.url, "certificate-authority-data": embedded(authority.certificate)}
        config = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (tmp_path / "config").write_text(json.dumps(config))
        yield Watched(server, tmp_path / "config", temporary)


def wait(until: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not until():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: signal.Signals(number).name)
def test_no_private_key_is_in_a_file(watched: Watched, number: signal.Signals) -> None:
    with watched.running(str(SCRIPT)) as process:
        wait(lambda: watched.is_watching or process.poll() is not None)
        assert watched.is_watching, process.communicate()
        assert watched.files == []
        process.send_signal(number)
        _, stderr = process.communicate(timeout=30)
    assert watched.files == []
    assert process.returncode == 128 + number, stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize("option", ["--watch", "--contexts=x"])
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: signal.Signals(number).name)
def test_a_private_key_in_a_file_is_removed(watched: Watched, number: signal.Signals, option: str) -> None:
    """With ``--contexts`` a thread reads the file."""
    with watched.running(sys.executable, "-c", SLOWLY, option=option) as process:
        assert process.stdout
        assert process.stdout.readline() == "loading\n"
        modes = [file.stat().st_mode & 0o777 for file in watched.files]
        assert modes == [0o600] * 3
        process.send_signal(number)
        process.communicate(timeout=30)
    assert watched.files == []
    assert process.returncode == 128 + number


def test_a_signal_while_a_response_is_freed_ends_the_watch(watched: Watched) -> None:
    with watched.running(sys.executable, "-c", IN_A_FINALIZER) as process:
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGINT, stderr
    assert "Traceback" not in stderr


def test_files_on_other_platforms_end_before_the_first_request(watched: Watched) -> None:
    with watched.running(sys.executable, "-c", WITHOUT_MEMORY_FILES) as process:
        wait(lambda: watched.is_watching or process.poll() is not None)
        assert watched.is_watching, process.communicate()
        assert watched.files == []
        process.send_signal(signal.SIGKILL)


def test_a_signal_that_is_ignored_stays_ignored(watched: Watched) -> None:
    """A shell without job control starts programs in the background with SIGINT ignored."""
    with watched.running("sh", "-c", 'trap "" INT; exec "$@"', "sh", str(SCRIPT)) as process:
        wait(lambda: watched.is_watching or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
