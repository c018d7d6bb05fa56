"""Input needs little memory, which the system limits here, and input that is too large is refused."""

from __future__ import annotations

import gzip
import io
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import pytest

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.decode import yaml_values
from kubectl_spread.sources.decode.resources import NODES, PODS, WORKLOADS
from kubectl_spread.sources.files import inputs
from tests.sources.raw import talking

SPACE: Final = 1536 << 20
"""Bytes of addresses that a run may use: its code and threads, and what it may hold with room for copies."""
MEMBER: Final = gzip.compress(b" " * (16 << 20))
BOMB: Final = MEMBER * 300
"""Less than 5 MiB that unpack to 4.7 GiB."""
POD: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "POD", "namespace": "a", "annotations": {"a": "x" * 2000}},
    "spec": {"containers": [{"name": "c", "env": [{"name": f"E{n}", "value": "v" * 40} for n in range(20)]}]},
}


def run(*arguments: str, stdin: Iterable[bytes] = (), space: int = SPACE, **environment: str) -> tuple[int, str]:
    """Run the program with a limit of its memory; return its exit status and what it says."""
    program = ("-P", "-m", "kubectl_spread")
    with subprocess.Popen(
        ["sh", "-c", f'ulimit -v {space >> 10}; exec "$@"', "-", sys.executable, *program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "MALLOC_ARENA_MAX": "2", **environment},
    ) as process:
        stdin_of, stderr_of = cast("BinaryIO", process.stdin), cast("BinaryIO", process.stderr)
        output: list[bytes] = []
        reader = threading.Thread(target=lambda: output.append(stderr_of.read()))
        reader.start()
        try:
            for part in stdin:
                stdin_of.write(part)
            stdin_of.close()
        except BrokenPipeError:
            pass
        reader.join()
    return process.returncode, output[0].decode()


def refused(*arguments: str, stdin: Iterable[bytes] = (), **environment: Any) -> str:
    """Return the one line that a run says that ends with exit status 2."""
    status, output = run(*arguments, stdin=stdin, **environment)
    lines = [line for line in output.splitlines() if "evaluated as Kubernetes" not in line]
    assert (status, len(lines)) == (2, 1), output
    return lines[0]


def pods(number: int, item: str) -> Iterable[bytes]:
    """Yield a capture of kubectl as JSON."""
    yield b'{"apiVersion": "v1", "kind": "List", "items": ['
    for index in range(number):
        yield (b", " if index else b"") + item.replace("POD", f"pod-{index}").encode()
    yield b"]}"


@pytest.mark.parametrize("start", [b"a: '", b'{"items": "', b"---\n# "], ids=repr)
def test_standard_input_without_an_end(start: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "LARGEST", 4 << 20)
    endless = io.BufferedReader(Endless(start))
    with pytest.raises(SourceError, match="error reading -: larger than 4 MiB, the most that is read of one file"):
        inputs.content("-", endless)


@pytest.mark.parametrize("start", ["", "a: '", '{"items": "', "---\n# "], ids=repr)
def test_a_gzipped_bomb_in_a_file(tmp_path: Path, start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "LARGEST", 4 << 20)
    path = tmp_path / "x.yaml.gz"
    path.write_bytes(gzip.compress(start.encode()) + BOMB)
    with pytest.raises(SourceError, match=f"error reading {path}: larger than 4 MiB, the most"):
        inputs.content(str(path), None)


class Endless(io.RawIOBase):
    """A stream without an end."""

    def __init__(self, start: bytes) -> None:
        self._start = start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        buffer[:] = self._start.ljust(len(buffer), b"x")[: len(buffer)]
        return len(buffer)


@pytest.mark.parametrize("node", [b"[],", b"a,", b"&a [],"], ids=repr)
def test_yaml_of_many_nodes(node: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_values, "LARGEST", 1 << 20)
    (fault,) = yaml_values.documents(memoryview(b"a: [" + node * (1 << 20) + b"]"), "f")
    assert str(fault) == "f:1: more than 1 Mi characters of YAML in one object"


@pytest.mark.parametrize(
    ("start", "again"),
    [(b"", b"{}\n"), (b"", b"--- {}\n"), (b'{"items": [{}', b", {}"), (b"kind: List\nitems:\n", b"- {}\n")],
    ids=["documents of JSON", "documents of YAML", "items of no list", "items of a list in YAML"],
)
def test_many_errors(start: bytes, again: bytes) -> None:
    """Each takes a thousand times the bytes that it is about."""
    end = b"]}" if start.startswith(b"{") else b""
    status, output = run("check", "-f", "-", stdin=[start, again * 100_000, end], space=512 << 20)
    assert (status, output.count("\n") < 1010) == (2, True)


def test_an_object_of_many_containers() -> None:
    item = json.dumps(POD).replace('"containers": [', '"containers": [' + "{}," * (2 << 20))
    line = refused("check", "-f", "-", stdin=pods(1, item))
    assert line.endswith("6,294,910 bytes as JSON: the API server takes objects of 3,145,728 bytes at most")


HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def kubeconfig(directory: Path, user: object) -> str:
    path = directory / "config"
    path.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return str(path)


def test_a_kubeconfig_without_an_end(tmp_path: Path) -> None:
    larger = "/dev/zero: larger than 16 MiB, the most for a file with credentials"
    line = refused("check", "--kubeconfig", "/dev/zero")
    assert line.startswith(f"error: error loading config file {larger}")
    user = {"tokenFile": "/dev/zero"}
    assert larger in refused("check", "--kubeconfig", kubeconfig(tmp_path, user))


LARGE: Final = 40_000
"""Pods whose JSON takes some 200 MB."""


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_large_capture_is_no_bomb(packed: bool) -> None:
    """It is mapped, counted and dropped, so that it needs next to no other memory."""
    body: Iterable[bytes] = pods(LARGE, json.dumps(POD))
    if packed:
        body = [gzip.compress(b"".join(body), 6)]
    arguments = ("check", "-f", "-", "--server-version", "1.37")
    status, output = run(*arguments, stdin=body, space=700 << 20)
    assert status == 0, output


def test_a_large_list_is_no_bomb() -> None:
    """It comes in pages that are dropped."""
    item = json.dumps(POD).replace('"apiVersion": "v1", "kind": "Pod", ', "")
    types = {resource.path(): resource.list_type for resource in (PODS, NODES, *WORKLOADS)}

    def listed(path: str, token: int) -> bytes:
        type_, is_pods = types[path], path == PODS.path()
        metadata = {"resourceVersion": "7", "continue": str(token + 1) if is_pods and token < 80 else ""}
        items = [item.replace("POD", f"pod-{token}-{number}") for number in range(400 * is_pods)]
        head = json.dumps({"kind": type_.kind, "apiVersion": type_.api_version, "metadata": metadata})
        return f'{head[:-1]}, "items": [{", ".join(items)}]}}'.encode()

    def script(client: socket.socket, _stopped: threading.Event) -> None:
        while request := client.recv(65536):
            path, _, query = request.split(b" ")[1].decode().partition("?")
            token = int(query.rpartition("continue=")[2]) if "continue=" in query else 0
            sent = listed(path, token) if path in types else b'{"major": "1", "minor": "37"}'
            client.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(sent) + sent)

    with talking(script) as port:
        arguments = ("check", "-A", "--server", f"http://127.0.0.1:{port}")
        status, output = run(*arguments, KUBECONFIG=os.devnull)
    assert status == 0, output
