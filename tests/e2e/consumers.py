"""The consumers of metrics, on loopback: promtool, Prometheus and node_exporter from Debian packages, and Thanos."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
import urllib3

from tests.controlplane import components
from tests.controlplane.processes import LOOPBACK, Process, free_port
from tests.e2e import go_programs
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
        self.address = address
        self._process = process

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the samples of an instant query: ``metric`` (labels) and ``value`` (time, text)."""
        series: list[dict[str, Any]] = self._get("query", query=expression)["result"]
        return series

    def alerts(self) -> list[dict[str, Any]]:
        """Return the alerts that are pending or firing: ``labels``, ``annotations`` and ``state``."""
        alerts: list[dict[str, Any]] = self._get("alerts")["alerts"]
        return alerts

    def targets(self) -> dict[str, str]:
        """Map the job of each target to the error of its last scrape."""
        return {target["labels"]["job"]: target["lastError"] for target in self._get("targets")["activeTargets"]}

    def wait_until(self, condition: Callable[[], T], patience: float = _PATIENCE) -> T:
        """Return the first truthy answer of a condition."""
        return components.wait_for(condition, patience, running=[self._process])

    def _get(self, path: str, **fields: str) -> Any:
        answer = urllib3.request("GET", f"http://{self.address}/api/v1/{path}", fields=fields)
        return answer.json()["data"]


@contextmanager
def prometheus(
    directory: Path,
    jobs: Mapping[str, Mapping[str, Any]],
    *,
    interval: str = "5s",
    rules: Path | None = None,
    cluster: str = "",
) -> Iterator[Prometheus]:
    """Run Prometheus with scrape configs by name, a file of rules, and the name of its cluster as an external label."""
    settings = {
        "global": {
            "scrape_interval": interval,
            "scrape_timeout": interval,
            "evaluation_interval": interval,
            "external_labels": {"cluster": cluster} if cluster else {},
        },
        "scrape_configs": [{"job_name": name, "honor_labels": True, **job} for name, job in jobs.items()],
        "rule_files": [] if rules is None else [str(rules)],
    }
    config = directory / "prometheus.yml"
    config.write_text(json.dumps(settings), encoding="utf-8")
    flags = [f"--config.file={config}", f"--storage.tsdb.path={_data(directory)}"]
    with _running(program("prometheus"), flags, directory, answers="/-/ready") as (address, process):
        yield Prometheus(address, process)


def _data(directory: Path) -> Path:
    return directory / "data"


@contextmanager
def thanos(directory: Path, stores: Mapping[Path, Prometheus]) -> Iterator[Prometheus]:
    """Run Thanos over several Prometheus, which are given by their directories, and yield what answers its queries."""
    path = str(go_programs.binary(*go_programs.THANOS))
    with ExitStack() as running:
        endpoints = []
        for of_store, store in stores.items():
            endpoints.append(f"{LOOPBACK}:{free_port()}")
            flags = [f"--prometheus.url=http://{store.address}", f"--tsdb.path={_data(of_store)}"]
            flags.append(f"--grpc-address={endpoints[-1]}")
            running.enter_context(_thanos(path, "sidecar", flags, of_store))
        flags = [f"--grpc-address={LOOPBACK}:{free_port()}", *(f"--endpoint={endpoint}" for endpoint in endpoints)]
        address, process = running.enter_context(_thanos(path, "query", flags, directory))
        yield Prometheus(address, process)


def _thanos(path: str, part: str, flags: list[str], directory: Path) -> AbstractContextManager[tuple[str, Process]]:
    return _running(path, [part, *flags], directory, answers="/-/ready", listens="--http-address")


def node_exporter(directory: Path, textfiles: Path) -> str:
    """Return the metrics of node_exporter with its textfile collector alone."""
    flags = ["--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={textfiles}"]
    with _running(program("prometheus-node-exporter"), flags, directory) as (address, _):
        return urllib3.request("GET", f"http://{address}/metrics").data.decode()


@contextmanager
def _running(
    path: str, flags: list[str], directory: Path, answers: str = "/metrics", listens: str = "--web.listen-address"
) -> Iterator[tuple[str, Process]]:
    """Run a program that serves HTTP, and yield its address when it answers a request for a path."""
    address, name = f"{LOOPBACK}:{free_port()}", Path(path).name
    process = Process(name, [path, *flags, f"{listens}={address}"], directory / f"{name}.log")
    try:
        components.wait_for(lambda: _answers(f"http://{address}{answers}"), _PATIENCE, name, [process])
        yield address, process
    finally:
        process.stop()


def _answers(url: str) -> bool:
    try:
        return urllib3.request("GET", url, retries=False).status == 200
    except urllib3.exceptions.HTTPError:
        return False
