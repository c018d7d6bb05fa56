"""A small real cluster behind a proxy with faults, and the assertions on complete and refused reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tests.builders import ZONE, Json, constraint
from tests.controlplane.certificates import Authority
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import pod
from tests.e2e.spread import Answer, Plugin, Report, Spread
from tests.faults.proxy import Proxy
from tests.kubeconfigs import config

USERS = {user: ["system:masters"] for user in ("first", "second")}
PODS = 30
NAMESPACE = "shop"
INCOMPLETE = "(the list of pods is not complete)"
UNEXPECTED = "Server returned an unexpected response: "
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
CHECK = ("check", "-n", NAMESPACE, "-o", "json", "--chunk-size=7")


def start(directory: Path) -> ControlPlane:
    """Start etcd and an apiserver, without anything that changes objects, and fill them."""
    cluster = ControlPlane.start(directory, scheduler=False, controllers=False, tokens=USERS)
    nodes = cluster.add_nodes()
    cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    cluster.api.create_all(bound(f"web-{number:02}", nodes[number % len(nodes)]) for number in range(PODS))
    return cluster


def bound(name: str, node: str, namespace: str = NAMESPACE) -> Json:
    """Return a pod that is bound to a node."""
    spread = [constraint(key=ZONE, match=["rev"])]
    labels = {"app": "web", "rev": "r1"}
    return pod(name, spread, labels=labels, namespace=namespace, metadata={"ownerReferences": [OWNER]}, nodeName=node)


class Faulty:
    """The cluster, the proxy before it, and the plugin that asks the proxy."""

    def __init__(self, cluster: ControlPlane, proxy: Proxy, plugin: Plugin) -> None:
        """Use the token of the user ``first``."""
        self.cluster = cluster
        self.proxy = proxy
        self.token = cluster._security.tokens["first"]
        self._plugin = plugin
        self.spread = self.as_user({"token": self.token})

    @property
    def authority(self) -> Authority:
        """The authority of all certificates."""
        return self.cluster._security.authority

    def as_user(self, user: Json) -> Spread:
        """Return the plugin with a kubeconfig of this user."""
        path = self.kubeconfig(user)
        return self._plugin.on(self.cluster, path)

    def directly(self) -> Spread:
        """Return the plugin without the proxy."""
        return self._plugin.on(self.cluster)

    def kubeconfig(self, user: Json) -> Path:
        """Write a kubeconfig for the proxy."""
        path = self.cluster.directory / "kubeconfigs" / "faulty.json"
        path.write_text(json.dumps(config(self.proxy.url, self.authority.certificate, user)), encoding="utf-8")
        return path

    def check(self, *arguments: str) -> Answer:
        """Check the pods, a few a page."""
        answer = self.spread(*CHECK, *arguments)
        assert_no_secrets(answer, [*self.cluster._security.tokens.values()])
        return answer


def assert_complete(answer: Answer, *, status: int = 0) -> Report:
    """Every pod is reported, each once."""
    assert answer.status == status, answer.stderr
    report = answer.report
    names = [name for group in report["groups"] for name in group["pods"]]
    assert sorted(names) == [f"web-{number:02}" for number in range(PODS)]
    assert report["summary"]["pods"] == PODS
    assert [row["verdicts"] for row in report["constraints"]] == [{"merged": PODS}]
    assert sum(domain["matchNum"] for domain in report["constraints"][0]["domains"]) == PODS
    return report


def assert_refused(answer: Answer, *words: str) -> None:
    """There is no report, and the last line on stderr says why."""
    assert (answer.status, answer.stdout) == (2, "")
    line = answer.stderr.splitlines()[-1]
    assert all(word in line for word in words), line


def assert_no_secrets(answer: Answer, secrets: Sequence[str]) -> None:
    """Neither a traceback nor a credential is printed."""
    printed = answer.stdout + answer.stderr
    assert "Traceback" not in printed
    assert not any(secret in printed for secret in secrets)
