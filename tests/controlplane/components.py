"""The four programs of a control plane: how they are started, and when they are ready."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.controlplane import binaries, kubeconfigs
from tests.controlplane.certificates import Authority, KeyPair, write_key
from tests.controlplane.client import ApiClient, Object
from tests.controlplane.processes import LOOPBACK, Process, accepts_connections, free_port

T = TypeVar("T")

SCHEDULER_CONFIG = "kube-scheduler.json"

APISERVER = "system:apiserver"
CONTROLLERS = "controllers"
CONTROLLER_MANAGER = "system:kube-controller-manager"
SCHEDULER = "system:kube-scheduler"
PROGRAMS = (APISERVER, CONTROLLERS, CONTROLLER_MANAGER, SCHEDULER)
CONTROLLER_ACCOUNTS = "system:serviceaccounts:kube-system"
"""The group of the service accounts of controllers."""

# On a loaded machine of two cores an apiserver may take several times its usual three seconds.
START_TIMEOUT = 90.0

# With the default of 20 requests a second, a Deployment of 200 pods takes 10 seconds.
FAST_CLIENT = ("--kube-api-qps=500", "--kube-api-burst=1000")

# Marks nodes whose kubelet sends no heartbeat as not ready, then their pods are evicted.
LIFECYCLE = "node-lifecycle-controller"
# Controllers that need a kubelet or change the machine:
DISABLED_CONTROLLERS = (
    LIFECYCLE,
    # Makes a directory for plugins in /usr/libexec, which the tests do not remove.
    "persistentvolume-attach-detach-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-expander-controller",
)


def source(condition: Callable[[], object]) -> str:
    """Return the lines that say what a condition is, for the message of a wait that ended without it."""
    return inspect.getsource(condition).strip()


def wait_for(condition: Callable[[], T], timeout: float, what: str = "", running: Sequence[Process] = ()) -> T:
    """Return the first truthy answer of ``condition``; a message names it by ``what``, or else by its source.

    Raises:
        TimeoutError: There was none in ``timeout`` seconds.
        ProcessDiedError: One of ``running`` ended meanwhile.
    """
    deadline = time.monotonic() + timeout
    while not (answer := condition()):
        for process in running:
            process.check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what or source(condition)}: not within {timeout:g} seconds (last: {answer!r})")
        time.sleep(0.05)
    return answer


@dataclass(frozen=True)
class Options:
    """Options of a program that may differ from start to start."""

    version: str = binaries.KUBERNETES_VERSION
    feature_gates: Mapping[str, bool] | None = None
    extra_flags: Sequence[str] = ()
    profiles: Sequence[Object] = ()
    accounts: bool = False
    outages: bool = False


@dataclass(frozen=True)
class OutageTimes:
    """The seconds of an outage, which are half of the defaults or less.

    Attributes:
        renewal: Those between two leases of a node (10 by default).
        grace: Those without a lease after which a node is NotReady (50); a loaded machine renews late.
        monitor: Those between two looks at all nodes (5).
        eviction: Those between two nodes of a zone that are tainted (10).
        toleration: Those for which pods stay on a tainted node (300).
    """

    renewal: int = 2
    grace: int = 25
    monitor: int = 1
    eviction: int = 2
    toleration: int = 5


OUTAGE = OutageTimes()


class Security:
    """The keys, certificates and static tokens that all apiservers of a cluster have in common."""

    def __init__(self, directory: Path, tokens: Mapping[str, Sequence[str]]) -> None:
        """Create the files; ``tokens`` maps each user with a static token to its groups."""
        self.authority = Authority(directory)
        hosts = ["localhost", LOOPBACK, "10.0.0.1"]
        service = ["kubernetes", "default", "svc", "cluster", "local"]
        hosts += [".".join(service[:length]) for length in (1, 2, 3, 5)]
        self.serving = self.authority.server("kube-apiserver", hosts)
        self.admin = self.authority.client("admin", "kubernetes-admin", ["system:masters"])
        self.service_account_key = write_key(directory / "service-account.key")
        self.tokens = {user: f"token-of-{user}" for user in tokens}
        self.token_file = directory / "tokens.csv"
        rows = [f'{self.tokens[user]},{user},{user},"{",".join(groups)}"\n' for user, groups in tokens.items()]
        self.token_file.write_text("".join(rows), encoding="utf-8")


class Etcd:
    """An etcd with one member."""

    def __init__(self, directory: Path) -> None:
        """Prepare an etcd with its data in ``directory``; ``start`` starts it."""
        self._directory = directory
        self._port = free_port()
        self.url = f"http://{LOOPBACK}:{self._port}"

    def start(self) -> Process:
        """Start the program; ``listens`` tells when it is ready."""
        peer = f"http://{LOOPBACK}:{free_port()}"
        command = [
            str(binaries.etcd()),
            f"--data-dir={self._directory / 'etcd'}",
            f"--listen-client-urls={self.url}",
            f"--advertise-client-urls={self.url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            # The data is not needed after a crash, and every write is several times faster.
            "--unsafe-no-fsync",
            # 150,000 pods are more than the default of 2 GiB.
            f"--quota-backend-bytes={8 << 30}",
        ]
        return Process("etcd", command, self._directory / "etcd.log")

    def listens(self) -> bool:
        """Tell whether it accepts connections."""
        return accepts_connections(self._port)


class ApiServer:
    """A kube-apiserver on a port of its own, which it keeps over restarts."""

    def __init__(self, name: str, directory: Path, security: Security, etcd: Etcd) -> None:
        """Prepare an apiserver; ``start`` starts it."""
        self.name = name
        self.log = directory / f"{name}.log"
        self.audit_log = directory / f"{name}-audit.log"
        self._port = free_port()
        self.url = f"https://{LOOPBACK}:{self._port}"
        self._directory = directory
        self._security = security
        self._etcd = etcd
        self._process: Process | None = None
        self.client = self.client_with(security.admin)
        self.kubeconfig = self.write_kubeconfig("admin", security.admin)

    @property
    def process(self) -> Process:
        """The running apiserver."""
        if self._process is None:
            raise RuntimeError(f"{self.name} is not running")
        return self._process

    def start(self, options: Options) -> None:
        """Start the program and return once it is ready."""
        binary = _program("kube-apiserver", options)
        command = [
            binary,
            *self._flags(),
            *self._outages(options),
            *_gates(options.feature_gates),
            *options.extra_flags,
        ]
        self._process = Process(self.name, command, self.log)
        what = f"{self.name} is ready"
        wait_for(self.client.ready, START_TIMEOUT, what, [self._process])

    def stop(self) -> None:
        """Stop the program if it runs; a later ``start`` finds everything as it was."""
        if self._process:
            # It would wait a minute for watches.
            self._process.stop(patience=1)
            self._process = None

    def client_with(self, pair: KeyPair) -> ApiClient:
        """Return a client of this apiserver that authenticates with a client certificate."""
        return ApiClient(self.url, self._security.authority.certificate, pair)

    def write_kubeconfig(self, stem: str, credential: KeyPair | str) -> Path:
        """Write a kubeconfig for this apiserver, with a client certificate or a token."""
        path = self._directory / "kubeconfigs" / f"{self.name}-{stem}.json"
        return kubeconfigs.write(path, self.url, self._security.authority.certificate, credential)

    def _flags(self) -> list[str]:
        security = self._security
        return [
            f"--etcd-servers={self._etcd.url}",
            f"--bind-address={LOOPBACK}",
            # Otherwise it looks for an address of the machine, which may be offline.
            f"--advertise-address={LOOPBACK}",
            f"--secure-port={self._port}",
            f"--cert-dir={self._directory}",
            f"--tls-cert-file={security.serving.certificate}",
            f"--tls-private-key-file={security.serving.key}",
            f"--client-ca-file={security.authority.certificate}",
            f"--token-auth-file={security.token_file}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={security.service_account_key}",
            f"--service-account-signing-key-file={security.service_account_key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            # The apiserver may not publish a loopback address as endpoint of its own Service.
            "--endpoint-reconciler-type=none",
            # The plugin refuses pods until a controller has made the ServiceAccount of the namespace, and
            # not every test runs controllers. No kubelet would mount the token that it adds to pods.
            "--disable-admission-plugins=ServiceAccount",
            f"--audit-policy-file={self._audit_policy()}",
            f"--audit-log-path={self.audit_log}",
        ]

    def _outages(self, options: Options) -> list[str]:
        return [f"--default-unreachable-toleration-seconds={OUTAGE.toleration}"] if options.outages else []

    def _audit_policy(self) -> Path:
        """Write the policy that logs every request but those of the programs of the control plane."""
        policy = self._directory / "audit-policy.json"
        content = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            # One line per request: the one written when it is answered.
            "omitStages": ["RequestReceived", "ResponseStarted"],
            "rules": [
                {"level": "None", "users": PROGRAMS},
                {"level": "None", "userGroups": [CONTROLLER_ACCOUNTS]},
                {"level": "Metadata"},
            ],
        }
        policy.write_text(json.dumps(content), encoding="utf-8")
        return policy


def start_scheduler(directory: Path, server: ApiServer, security: Security, options: Options) -> Process:
    """Start the kube-scheduler, with a log of its reasons to refuse nodes."""
    pair = security.authority.client("kube-scheduler", SCHEDULER)
    kubeconfig = server.write_kubeconfig("scheduler", pair)
    command = [
        _program("kube-scheduler", options),
        f"--kubeconfig={kubeconfig}",
        *([f"--config={_scheduler_config(directory, kubeconfig, options.profiles)}"] if options.profiles else []),
        "--leader-elect=false",
        # Serves nothing itself, so it needs no port.
        "--secure-port=0",
        "-v=5",
        *FAST_CLIENT,
        *_gates(options.feature_gates),
    ]
    return Process("kube-scheduler", command, directory / "kube-scheduler.log")


def _scheduler_config(directory: Path, kubeconfig: Path, profiles: Sequence[Object]) -> Path:
    """Write a configuration file with these profiles, and with the flags that the scheduler ignores if it has one."""
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 500, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        "profiles": list(profiles),
    }
    path = directory / SCHEDULER_CONFIG
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return path


def start_controllers(directory: Path, server: ApiServer, security: Security, options: Options) -> Process:
    """Start the kube-controller-manager with every controller that works without kubelets.

    All controllers are one user with all rights, or with ``accounts`` a service account each, as on most clusters.
    """
    if options.accounts:
        pair = security.authority.client("controllers", CONTROLLER_MANAGER)
    else:
        pair = security.authority.client("controllers", CONTROLLERS, ["system:masters"])
    disabled = ",".join(f"-{name}" for name in DISABLED_CONTROLLERS if not (options.outages and name == LIFECYCLE))
    command = [
        _program("kube-controller-manager", options),
        f"--kubeconfig={server.write_kubeconfig('controllers', pair)}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--controllers=*,{disabled}",
        f"--service-account-private-key-file={security.service_account_key}",
        f"--root-ca-file={security.authority.certificate}",
        *(["--use-service-account-credentials"] if options.accounts else []),
        *(_lifecycle() if options.outages else []),
        *FAST_CLIENT,
        *_gates(options.feature_gates),
    ]
    return Process("kube-controller-manager", command, directory / "kube-controller-manager.log")


def _lifecycle() -> list[str]:
    return [
        f"--node-monitor-grace-period={OUTAGE.grace}s",
        f"--node-monitor-period={OUTAGE.monitor}s",
        f"--node-eviction-rate={1 / OUTAGE.eviction}",
    ]


def _program(name: str, options: Options) -> str:
    return str(binaries.kubernetes(options.version, (name,)) / name)


def _gates(gates: Mapping[str, bool] | None) -> list[str]:
    pairs = [f"{name}={str(on).lower()}" for name, on in (gates or {}).items()]
    return [f"--feature-gates={','.join(pairs)}"] if pairs else []
