"""The real kube-rbac-proxy in front of a monitor, and clients that are slow or silent."""

from __future__ import annotations

import resource
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

import urllib3

from tests.controlplane.certificates import Authority
from tests.controlplane.processes import LOOPBACK, accepts_connections, free_port
from tests.e2e import go_programs
from tests.e2e.monitored import PATIENCE, RunningMonitor, resident

_SENT: Final = (b"", b"GET / HTTP/1.1\r\nHost: a\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n{}\r\n\r\n")
"""What the clients send: nothing, headers without an end, and a request whose answer they do not read."""


class KubeRbacProxy:
    """A proxy in front of a monitor."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], authority: Authority) -> None:
        self.port = port
        self._process = process
        self._context = ssl.create_default_context(cafile=str(authority.certificate))
        self._http = urllib3.PoolManager(retries=False, timeout=PATIENCE, ssl_context=self._context)

    @property
    def resident(self) -> float:
        """Its resident memory, in MiB."""
        return resident(self._process.pid)

    def get(self, path: str, token: str = "") -> tuple[int, str]:
        """Return the status and the text of an answer to a user with this token."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = self._http.request("GET", f"https://{LOOPBACK}:{self.port}{path}", headers=headers)
        return answer.status, answer.data.decode()

    def connect(self) -> ssl.SSLSocket:
        """Return a connection after its handshake."""
        return self._context.wrap_socket(connect(self.port), server_hostname=LOOPBACK)


@contextmanager
def proxied(
    wrapper: Sequence[str],
    arguments: Sequence[str],
    environment: Mapping[str, str],
    monitor: RunningMonitor,
    scratch: Path,
) -> Iterator[KubeRbacProxy]:
    """Run the proxy with the arguments of its container, at free ports, and with a certificate of its own."""
    port, authority = free_port(), Authority(scratch / "pki")
    pair = authority.server("proxy", [LOOPBACK])
    more = (
        f"--tls-cert-file={pair.certificate}",
        f"--tls-private-key-file={pair.key}",
        f"--secure-listen-address={LOOPBACK}:{port}",
        f"--upstream=http://{LOOPBACK}:{monitor.port}/",
        f"--proxy-endpoints-port={free_port()}",
    )
    command = [*wrapper, str(go_programs.binary(*go_programs.KUBE_RBAC_PROXY)), *arguments, *more]
    log = scratch / "proxy.log"
    with log.open("wb") as output, subprocess.Popen(command, stderr=output, env=dict(environment)) as process:
        try:
            monitor.until(lambda: process.poll() is not None or accepts_connections(port))
            assert process.poll() is None, log.read_text(encoding="utf-8")
            yield KubeRbacProxy(port, process, authority)
        finally:
            process.kill()


@contextmanager
def slow_clients(proxy: KubeRbacProxy, monitor: RunningMonitor, token: str, number: int) -> Iterator[None]:
    """Hold connections to both, each with one of the kinds of slow and silent clients."""
    allowed = f"Authorization: Bearer {token}".encode()
    with _descriptors(), ExitStack() as stack:
        for each in range(number):
            sent = _SENT[each % len(_SENT)].replace(b"{}", allowed)
            for connection in (connect(monitor.port), proxy.connect() if sent else connect(proxy.port)):
                stack.enter_context(closing(connection)).sendall(sent)
        yield


def connect(port: int) -> socket.socket:
    """Return a connection that has little room for what it does not read."""
    connection = socket.socket()
    connection.settimeout(PATIENCE)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((LOOPBACK, port))
    return connection


@contextmanager
def _descriptors() -> Iterator[None]:
    """Let this process have as many descriptors as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
