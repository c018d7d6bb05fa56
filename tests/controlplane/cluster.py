"""A real control plane for tests: etcd, apiserver, scheduler and controllers, but no kubelet."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.controlplane import binaries, components, emptying, nodes
from tests.controlplane.certificates import WEEK
from tests.controlplane.client import ApiClient, ApiError, Object
from tests.controlplane.components import ApiServer, Etcd, Options, Security, T
from tests.controlplane.processes import Process


class KubectlError(RuntimeError):
    """A kubectl command failed."""


class ControlPlane:
    """A running control plane; a context manager that stops it at the end.

    Attributes:
        directory: The directory of logs, keys, kubeconfigs and the data of etcd.
        api: A client with all rights, faster than kubectl.
        kubelet: The thread that replaces kubelets, not running by default.
    """

    def __init__(self, directory: Path, *, tokens: Mapping[str, Sequence[str]]) -> None:
        """Prepare everything; use ``ControlPlane.start``."""
        self.directory = directory
        self._security = Security(directory / "pki", tokens)
        self._options = Options()
        self._stack = ExitStack()
        self._processes: list[Process] = []
        self._node_numbers = Counter[str]()
        self._serial = count(1)
        self._etcd = Etcd(directory)
        self._server = self._apiserver("kube-apiserver")
        self.api: ApiClient = self._server.client
        self.kubelet = nodes.FakeKubelet(self.api, deletions=True)

    @classmethod
    def start(
        cls,
        directory: Path,
        *,
        version: str = binaries.KUBERNETES_VERSION,
        feature_gates: Mapping[str, bool] | None = None,
        extra_flags: Sequence[str] = (),
        scheduler: bool = True,
        controllers: bool = True,
        kubelet: bool = False,
        tokens: Mapping[str, Sequence[str]] | None = None,
        profiles: Sequence[Object] = (),
        accounts: bool = False,
        outages: bool = False,
    ) -> Self:
        """Start a control plane and return once it is ready.

        Args:
            directory: An empty directory for all files; the caller removes it.
            version: The Kubernetes version, built if it is not yet.
            feature_gates: Gates of apiserver, scheduler and controllers.
            extra_flags: More flags of the apiserver.
            scheduler: Whether a scheduler runs.
            controllers: Whether controllers run.
            kubelet: Whether pods with a node start running, and end when deleted, by themselves.
            tokens: Users that authenticate with a static token, each with its groups.
            profiles: Profiles of the scheduler, written to ``scheduler_config`` if there are any.
            accounts: Whether each controller is a service account of its own, as on most clusters.
            outages: Whether nodes send heartbeats, and pods are evicted from those in ``kubelet.silent``.
        """
        cluster = cls(directory, tokens=tokens or {})
        try:
            options = Options(version, feature_gates, extra_flags, profiles, accounts, outages)
            cluster._start(options, scheduler=scheduler, controllers=controllers)
            if kubelet:
                cluster.kubelet.start()
            if outages:
                heartbeats = nodes.Heartbeats(cluster.api, cluster.kubelet, components.OUTAGE.renewal)
                heartbeats.start()
                cluster._stack.callback(heartbeats.stop)
        except BaseException:
            cluster.stop()
            raise
        return cluster

    def __enter__(self) -> Self:
        """Return the control plane, which runs already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop everything."""
        self.stop()

    def stop(self) -> None:
        """Stop everything in reverse order."""
        self.kubelet.stop()
        self._stack.close()

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of a user with all rights."""
        return self._server.kubeconfig

    def audited(self, since: int = 0) -> list[dict[str, Any]]:
        """Return the events in the apiserver's audit log, without the requests of the control plane itself.

        A request is in the log before its answer. Those of others may be half written.

        Args:
            since: Where to begin, a value of :meth:`audit_position`.
        """
        return [json.loads(line) for line in self._audit_lines()[since:].splitlines()]

    def audit_position(self) -> int:
        """Return the number of bytes of the audit log now."""
        return len(self._audit_lines())

    def _audit_lines(self) -> bytes:
        log = self._server.audit_log
        content = log.read_bytes() if log.exists() else b""
        return content[: content.rfind(b"\n") + 1]

    @property
    def scheduler_log(self) -> Path:
        """The log of the scheduler, which tells why it refused a node."""
        return self.directory / "kube-scheduler.log"

    @property
    def scheduler_config(self) -> Path:
        """The configuration file of the scheduler, if started with ``profiles``."""
        return self.directory / components.SCHEDULER_CONFIG

    def kubeconfig_for(
        self,
        user: str,
        groups: Sequence[str] = (),
        *,
        lifetime: timedelta = WEEK,
        server: ApiServer | None = None,
    ) -> Path:
        """Return a kubeconfig with a new client certificate, which has expired if the lifetime is negative.

        The user may do only what RBAC rules made by the test allow.
        """
        stem = f"user-{next(self._serial)}"
        pair = self._security.authority.client(stem, user, groups, lifetime)
        return (server or self._server).write_kubeconfig(stem, pair)

    @contextmanager
    def client_of(self, user: str, groups: Sequence[str] = ()) -> Iterator[ApiClient]:
        """Connect as a user with a new client certificate inside a ``with`` block."""
        client = self._server.client_with(self._security.authority.client(f"user-{next(self._serial)}", user, groups))
        try:
            yield client
        finally:
            client.close()

    def token_kubeconfig(self, user: str) -> Path:
        """Return a kubeconfig with the static token of one of the users given to ``start``."""
        stem = f"token-{next(self._serial)}"
        return self._server.write_kubeconfig(stem, self._security.tokens[user])

    def invalid_token_kubeconfig(self) -> Path:
        """Return a kubeconfig with a token that the apiserver does not accept."""
        return self._server.write_kubeconfig("invalid-token", "expired-long-ago")

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002 - as subprocess.run calls it
        check: bool = True,
        kubeconfig: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run the real kubectl, as the user with all rights unless given another kubeconfig.

        Raises:
            KubectlError: It failed, and ``check`` was left on.
        """
        done = subprocess.run(
            [binaries.kubectl(), *arguments],
            input=input,
            check=False,
            capture_output=True,
            text=True,
            env=self.environment(kubeconfig),
        )
        if check and done.returncode:
            raise KubectlError(f"kubectl {' '.join(arguments)}:\n{done.stderr or done.stdout}")
        return done

    def environment(self, kubeconfig: Path | None = None) -> dict[str, str]:
        """Return the environment in which kubectl and its plugins talk to this control plane."""
        # An earlier cluster on the same port may have left its resources in the cache of kubectl.
        cache = str(self.directory / "kubectl-cache")
        config = str(kubeconfig or self.kubeconfig)
        return {**os.environ, "KUBECONFIG": config, "KUBECACHEDIR": cache}

    def apply(self, manifests: Object | Sequence[Object]) -> None:
        """Apply one manifest or several with kubectl."""
        items = [manifests] if isinstance(manifests, Mapping) else list(manifests)
        content = {"apiVersion": "v1", "kind": "List", "items": items}
        self.kubectl("apply", "-f", "-", input=json.dumps(content))

    @contextmanager
    def namespace(self, stem: str = "test") -> Iterator[str]:
        """Make a namespace with a new name, deleted at the end of the ``with`` block."""
        name = f"{stem}-{next(self._serial)}"
        self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        try:
            yield name
        finally:
            self.api.request("DELETE", f"/api/v1/namespaces/{name}")

    def add_nodes(
        self,
        zones: Sequence[str] = ("a", "b", "c"),
        per_zone: int = 2,
        *,
        labels: Mapping[str, str | None] | None = None,
        taints: Sequence[Object] = (),
    ) -> list[str]:
        """Add ready nodes to zones and return their names: a1, a2, b1, b2, ...

        Args:
            zones: The zones; the numbers of new nodes follow those of existing nodes.
            per_zone: How many nodes each zone gets.
            labels: More labels; ``None`` leaves out a usual label.
            taints: Taints of the nodes.
        """
        added = []
        for zone in zones:
            for _ in range(per_zone):
                self._node_numbers[zone] += 1
                added.append(nodes.node(f"{zone}{self._node_numbers[zone]}", zone, labels or {}))
        nodes.add(self.api, added, taints)
        return [manifest["metadata"]["name"] for manifest in added]

    def empty(self) -> None:
        """Delete nodes, namespaces, workloads and everything else that tests have made, and wait until it is gone.

        Raises:
            TimeoutError: Something was left.
        """
        emptying.empty(self.api)
        self._node_numbers.clear()
        self.forget_nodes()

    def forget_nodes(self) -> None:
        """Wait until the scheduler knows that no node is left; else it counts and chooses nodes that are gone.

        Raises:
            TimeoutError: It still knows one.
        """
        self.wait_for(partial(emptying.knows_no_node, self.api), timeout=90, what="the scheduler knows no node")

    def run_pods(self) -> int:
        """Report every pending pod that has a node as running and ready; return how many."""
        return nodes.run_pods(self.api)

    def finish_deletions(self) -> int:
        """Remove every pod that has a node and is being deleted; return how many."""
        return nodes.finish_deletions(self.api)

    def restart_apiserver(
        self,
        *,
        version: str | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        extra_flags: Sequence[str] | None = None,
    ) -> None:
        """Restart the apiserver alone, and return once it is ready.

        Missing arguments have the values of the start of the control plane, so that a call without
        arguments undoes an earlier one.
        """
        before = self._options
        self._server.stop()
        self._server.start(
            Options(
                before.version if version is None else version,
                before.feature_gates if feature_gates is None else feature_gates,
                before.extra_flags if extra_flags is None else extra_flags,
            )
        )

    def add_apiserver(
        self,
        *,
        version: str = binaries.KUBERNETES_VERSION,
        feature_gates: Mapping[str, bool] | None = None,
        extra_flags: Sequence[str] = (),
    ) -> ApiServer:
        """Start one more apiserver on the same etcd, with a port and a kubeconfig of its own."""
        server = self._apiserver(f"kube-apiserver-{next(self._serial)}")
        self._run_apiserver(server, Options(version, feature_gates, extra_flags))
        return server

    def wait_for(self, condition: Callable[[], T], timeout: float = 60, what: str = "") -> T:
        """Return the first truthy answer of ``condition``.

        Raises:
            TimeoutError: There was none in time.
            ProcessDiedError: A program of the control plane ended meanwhile.
        """
        running = [*self._processes, self._server.process]
        return components.wait_for(condition, timeout, what, running)

    def _start(self, options: Options, *, scheduler: bool, controllers: bool) -> None:
        self._options = options
        self._keep(self._etcd.start())
        listening = self._etcd.listens
        components.wait_for(listening, components.START_TIMEOUT, "etcd listens", self._processes)
        self._run_apiserver(self._server, options)
        common = (self.directory, self._server, self._security, options)
        if scheduler:
            self._keep(components.start_scheduler(*common))
        if controllers:
            self._keep(components.start_controllers(*common))
            self.wait_for(self._controllers_work, components.START_TIMEOUT, "controllers work")

    def _controllers_work(self) -> bool:
        """Tell whether a controller has created the service account of a namespace."""
        try:
            self.api.get("/api/v1/namespaces/default/serviceaccounts/default")
        except ApiError:
            return False
        return True

    def _keep(self, process: Process) -> None:
        self._processes.append(process)
        self._stack.callback(process.stop)

    def _apiserver(self, name: str) -> ApiServer:
        return ApiServer(name, self.directory, self._security, self._etcd)

    def _run_apiserver(self, server: ApiServer, options: Options) -> None:
        self._stack.callback(server.client.close)
        # A restart replaces the process, so the server is stopped.
        self._stack.callback(server.stop)
        server.start(options)
