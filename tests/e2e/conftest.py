"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from kubectl_spread import __version__
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import require_built
from tests.e2e import audit, faulty, guarded, varied
from tests.e2e.both import Both
from tests.e2e.faulty import Faulty
from tests.e2e.recorder import Recorder, record
from tests.e2e.spread import Plugin, Spread
from tests.faults.proxy import Proxy
from tests.generated import ROOT

_SHARED: Final = ("varied_cluster", "guarded_cluster", "faulty_cluster", "behind", "without_controllers")
"""Fixtures of control planes that several modules use; ``behind`` is one of ``faulty_cluster``."""
_running: Final = ExitStack()
"""The shared control planes that run in this worker."""


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Give each worker whole modules, and all that use one of the shared control planes to one worker.

    The order is that of ``pytest_collection_modifyitems``. The markers of ``--dist loadgroup`` would say the same, but
    have no effect with pytest 9.2 and pytest-xdist 3.8.
    """
    config.option.loadscopereorder = False
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = _group
    return scheduler


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the modules of few tests that take minutes; then come those of the most tests.

    At the end each worker then has small modules left, and none waits for another one.
    """
    numbers = Counter(_group(item.nodeid) for item in items)
    items.sort(key=lambda item: (item.get_closest_marker("long") is None, -numbers[_group(item.nodeid)]))


def _group(test: str) -> str:
    """Return the first shared fixture that the module of a test uses, or else the module."""
    return _group_of_module(test.partition("::")[0])


@cache
def _group_of_module(path: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    used = [name for name in _SHARED if f"{name}: " in text]
    return used[0].replace("behind", "faulty_cluster") if used else path


@pytest.fixture(scope="session", autouse=True)
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Check at the end that docs/rbac/cluster.yaml allows every request of the plugin, and who says to have sent it."""
    yield
    session = list(audit.requests(tmp_path_factory.getbasetemp()))
    assert audit.not_allowed(session) == set()
    assert {event["userAgent"] for event in session} <= {f"kubectl-spread/{__version__}"}


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Plugin:
    """Return the plugin, installed where kubectl finds it."""
    return Plugin(tmp_path_factory.mktemp("plugins"))


@pytest.fixture(scope="session")
def spread(plugin: Plugin, control_plane: ControlPlane) -> Spread:
    """Return ``kubectl spread`` on the control plane of all tests, for a user with all rights."""
    return plugin.on(control_plane)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the shared control planes after the last test of their modules: an idle one takes a tenth of a core."""
    if nextitem is None or _group(nextitem.nodeid) != _group(item.nodeid):
        _running.close()


def _shared(start: AbstractContextManager[ControlPlane]) -> ControlPlane:
    """Start a control plane that ends after the last test of the modules that share it."""
    require_built()
    return _running.enter_context(start)


@pytest.fixture(scope="session")
def varied_cluster(tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """Return a control plane of its own with many kinds of nodes, constraints and pods, which nobody changes."""
    cluster = _shared(ControlPlane.start(tmp_path_factory.mktemp("varied"), kubelet=True))
    varied.build(cluster)
    return cluster


@pytest.fixture(scope="session")
def faulty_cluster(tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """Return etcd and an apiserver with some pods that nothing changes."""
    return _shared(faulty.start(tmp_path_factory.mktemp("faulty")))


@pytest.fixture(scope="session")
def guarded_cluster(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> ControlPlane:
    """Return a control plane whose policies refuse what all rules find, with objects that were stored before."""
    cluster = _shared(guarded.start(tmp_path_factory.mktemp("guarded")))
    guarded.install(cluster, guarded.printed(plugin.on(cluster), guarded.DENY))
    return cluster


@pytest.fixture(scope="session")
def without_controllers(tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """Return a control plane with a scheduler, whose pods nothing else changes."""
    return _shared(ControlPlane.start(tmp_path_factory.mktemp("without-controllers"), controllers=False))


@pytest.fixture
def behind(faulty_cluster: ControlPlane, plugin: Plugin) -> Iterator[Faulty]:
    """Return that cluster behind a proxy of one test."""
    security = faulty_cluster._security
    proxy = Proxy(faulty_cluster.api.server, security.authority.certificate, security.serving)
    with proxy.running():
        yield Faulty(faulty_cluster, proxy, plugin)


@pytest.fixture
def both(tmp_path: Path, plugin: Plugin) -> Both:
    """Return kubectl and the plugin, with a home directory of their own."""
    return Both(tmp_path, plugin)


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    """Return a server with a certificate for loopback and for ``apiserver.test``, which only proxies know."""
    with record(tmp_path, "apiserver.test") as server:
        yield server
