"""The consumers of metrics from Debian packages: promtool, Prometheus and node_exporter, on loopback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
import urllib3

from tests.controlplane import components
from tests.controlplane.processes import LOOPBACK, Process, free_port
from tests.loopback import QuietRequests, QuietServer, serving

PACKAGES: Final[Mapping[str, str]] = {
    "promtool": "prometheus",
    "prometheus": "prometheus",
    "prometheus-node-exporter": "prometheus-node-exporter",
}
"""The Debian package of each program."""
_PATIENCE: Final = 60.0
Page = tuple[str, str | bytes]
"""A content type, and a text, or a body in gzip."""
T = TypeVar("T")


def program(name: str) -> str:
    """Return the path of a program; skip the test where it is not installed, on CI fail."""
    path = shutil.which(name)
    if path is None:
        reason = f"{name} is not installed: apt-get install {PACKAGES[name]}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def promtool(*arguments: str, stdin: str = "") -> str:
    """Return the output of promtool, which must have no complaint."""
    command = [program("promtool"), *arguments]
    completed = subprocess.run(command, input=stdin, check=False, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout + completed.stderr


@contextmanager
def serving_pages(pages: Mapping[str, Page]) -> Iterator[str]:
    """Serve pages by their paths and yield the address, ``127.0.0.1:PORT``."""

    class Handler(QuietRequests, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content_type, text = pages[self.path]
            body = text.encode() if isinstance(text, str) else text
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            if isinstance(text, bytes):
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):
                # Prometheus may stop in the middle of a scrape.
                self.wfile.write(body)

    with serving(QuietServer(Handler)) as port:
        yield f"{LOOPBACK}:{port}"


class Prometheus:
    """A running Prometheus, asked by its HTTP API."""

    def __init__(self, address: str, process: Process) -> None:
        """Query the Prometheus that listens at an address."""
        self._address = address
        self._process = process

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the samples of an instant query: ``metric`` (labels) and ``value`` (time, text)."""
        answer = urllib3.request("GET", f"http://{self._address}/api/v1/query", fields={"query": expression})
        series: list[dict[str, Any]] = answer.json()["data"]["result"]
        return series

    def targets(self) -> dict[str, str]:
        """Map the job of each target to the error of its last scrape."""
        answer = urllib3.request("GET", f"http://{self._address}/api/v1/targets")
        return {target["labels"]["job"]: target["lastError"] for target in answer.json()["data"]["activeTargets"]}

    def wait_until(self, condition: Callable[[], T]) -> T:
        """Return the first truthy answer of a condition."""
        return components.wait_for(condition, _PATIENCE, "Prometheus", [self._process])


@contextmanager
def prometheus(directory: Path, jobs: Mapping[str, Mapping[str, Any]]) -> Iterator[Prometheus]:
    """Run Prometheus with scrape configs by name, every five seconds."""
    scraped = [{"job_name": name, "honor_labels": True, **job} for name, job in jobs.items()]
    settings = {"global": {"scrape_interval": "5s", "scrape_timeout": "5s"}, "scrape_configs": scraped}
    config = directory / "prometheus.yml"
    config.write_text(json.dumps(settings), encoding="utf-8")
    flags = [f"--config.file={config}", f"--storage.tsdb.path={directory / 'data'}"]
    with _running("prometheus", flags, directory) as (address, process):
        yield Prometheus(address, process)


def node_exporter(directory: Path, textfiles: Path) -> str:
    """Return the metrics of node_exporter with its textfile collector alone."""
    flags = ["--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={textfiles}"]
    with _running("prometheus-node-exporter", flags, directory) as (address, _):
        return urllib3.request("GET", f"http://{address}/metrics").data.decode()


@contextmanager
def _running(name: str, flags: list[str], directory: Path) -> Iterator[tuple[str, Process]]:
    """Run a program that serves HTTP, and yield its address when it answers."""
    address = f"{LOOPBACK}:{free_port()}"
    command = [program(name), *flags, f"--web.listen-address={address}"]
    process = Process(name, command, directory / f"{name}.log")
    try:
        components.wait_for(lambda: _answers(address), _PATIENCE, name, [process])
        yield address, process
    finally:
        process.stop()


def _answers(address: str) -> bool:
    try:
        return urllib3.request("GET", f"http://{address}/metrics", retries=False).status == 200
    except urllib3.exceptions.HTTPError:
        return False
