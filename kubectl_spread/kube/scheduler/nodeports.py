"""Host ports: which ports of its node does a pod take, and which pods cannot be on one node because of them?

A port is taken by protocol and address; an address of 0.0.0.0 stands for all addresses of the node.

Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/nodeports/node_ports.go, Fits, pkg/scheduler/util/utils.go,
GetHostPorts, and staging/src/k8s.io/kube-scheduler/framework/types.go, HostPortInfo.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from kubectl_spread.kube.api.types import PodSpec

REFUSED: Final = "didn't have free ports for the requested pod ports"
"""The scheduler's reason why a node takes no pod."""
_EVERY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - nothing listens there
_ALWAYS: Final = "Always"


class HostPort(msgspec.Struct, frozen=True, order=True):
    """A port of a node."""

    protocol: str
    number: int
    address: str

    @property
    def _any(self) -> str:
        return f"port {self.number}/{self.protocol}"

    @property
    def taken(self) -> tuple[str, ...]:
        """The names under which a node counts it, as resources."""
        return (self._any, f"{self._any} {self.address}")

    @property
    def excluding(self) -> tuple[str, ...]:
        """The names of the ports with which it cannot be on one node."""
        if self.address == _EVERY_ADDRESS:
            return (self._any,)
        return (f"{self._any} {self.address}", f"{self._any} {_EVERY_ADDRESS}")


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the ports of its node that a pod takes.

    A pod with the network of its node takes all ports of its containers, as the API server's defaults say.
    """
    return tuple(sorted(set(_ports(spec))))


def excluding(spec: PodSpec) -> tuple[str, ...]:
    """Return the names of the host ports with which a pod cannot be on one node."""
    return tuple(dict.fromkeys(name for port in host_ports(spec) for name in port.excluding))


def _ports(spec: PodSpec) -> Iterator[HostPort]:
    sidecars = (container for container in spec.init_containers if container.restart_policy == _ALWAYS)
    for container in (*sidecars, *spec.containers):
        for port in container.ports:
            if number := port.host_port or (port.container_port if spec.host_network else 0):
                yield HostPort(port.protocol or "TCP", number, port.host_ip or _EVERY_ADDRESS)
