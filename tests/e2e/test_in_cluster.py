"""In a pod, where no kubeconfig names a server, the service account is used, as by the real kubectl.

Both programs run in a mount namespace of their own, where the files of a service account are in their place.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping

import pytest

from tests.builders import Json
from tests.controlplane.cluster import ControlPlane
from tests.e2e.both import Both, Pair, matching_request
from tests.e2e.recorder import Recorder
from tests.kubeconfigs import config

pytestmark = pytest.mark.e2e

MOUNT = """
mount -t tmpfs none /run &&
mkdir -p /run/secrets/kubernetes.io/serviceaccount &&
cp -r "$ACCOUNT"/. /run/secrets/kubernetes.io/serviceaccount/ &&
exec "$@"
"""


class Pod:
    """A pod: files and variables."""

    def __init__(self, both: Both, recorder: Recorder) -> None:
        """Put the pod into the namespace ``shop`` of the recorder's cluster."""
        self._both = both
        self._recorder = recorder
        self.account = both.directory / "account"
        self.account.mkdir()
        (self.account / "token").write_text("of-the-pod\n", encoding="utf-8")
        (self.account / "namespace").write_text("shop\n", encoding="utf-8")
        shutil.copy(recorder.authority.certificate, self.account / "ca.crt")

    def run(self, *flags: str, content: Json | None = None, **variables: str) -> Pair:
        """Run both programs in the pod, with a kubeconfig or none."""
        both = self._both
        if content is not None:
            both.write(content)
        port = str(self._recorder.port)
        environment = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": port,
            "ACCOUNT": str(self.account),
        }
        wrapper = ["unshare", "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh"]
        return both.run(*flags, environment={**environment, **variables}, wrapper=wrapper)


@pytest.fixture
def pod(both: Both, recorder: Recorder) -> Pod:
    """Return a pod with a service account."""
    return Pod(both, recorder)


def test_the_service_account_of_the_pod_is_used(pod: Pod, recorder: Recorder) -> None:
    """Its token ends at the end of the line."""
    pod.run()
    assert matching_request(recorder).header("Authorization") == "Bearer of-the-pod"


def test_a_token_of_a_flag_replaces_that_of_the_pod(pod: Pod, recorder: Recorder) -> None:
    """The authority is still that of the pod."""
    pod.run("--token", "flag")
    assert matching_request(recorder).header("Authorization") == "Bearer flag"


def test_a_kubeconfig_goes_before_the_service_account(pod: Pod, recorder: Recorder) -> None:
    """It must name a server: a kubeconfig without current context does not."""
    content = config(recorder.url, recorder.authority.certificate, {"token": "of-the-file"})
    pod.run(content=content)
    assert matching_request(recorder).header("Authorization") == "Bearer of-the-file"
    pod.run(content={**content, "current-context": ""})
    assert matching_request(recorder).header("Authorization") == "Bearer of-the-pod"


def test_without_a_token_localhost_is_asked(pod: Pod, recorder: Recorder) -> None:
    """Both programs connect to localhost:8080."""
    (pod.account / "token").unlink()
    theirs, ours = pod.run().complaints
    assert ours == theirs
    assert "localhost:8080" in ours
    assert recorder.requests == []


def test_impersonation_in_a_pod_uses_the_service_account(pod: Pod, recorder: Recorder) -> None:
    """With this flag, kubectl ignores the service account and connects to localhost:8080."""
    pair = pod.run("--as", "bob")
    assert "localhost:8080" in pair.kubectl.stderr
    headers = [request.who["headers"] for request in recorder.requests if request.by_plugin]
    assert headers
    assert all(sent == [("Authorization", "Bearer of-the-pod"), ("Impersonate-User", "bob")] for sent in headers)


NAMESPACES: Mapping[str, tuple[Json, str]] = {
    "of the pod": ({}, "shop"),
    "of a variable": ({"POD_NAMESPACE": "other"}, "other"),
}


@pytest.mark.parametrize("name", NAMESPACES)
@pytest.mark.parametrize("kubeconfig", [False, True], ids=["in the pod", "with a kubeconfig"])
def test_the_namespace_is_that_of_the_pod(
    pod: Pod, both: Both, faulty_cluster: ControlPlane, name: str, kubeconfig: bool
) -> None:
    """This holds with a kubeconfig too, if that names no namespace."""
    variables, expected = NAMESPACES[name]
    server = faulty_cluster.api.server
    host, _, port = server.removeprefix("https://").rpartition(":")
    shutil.copy(faulty_cluster._security.authority.certificate, pod.account / "ca.crt")
    token = faulty_cluster._security.tokens["first"]
    (pod.account / "token").write_text(token, encoding="utf-8")
    content = config(server, faulty_cluster._security.authority.certificate, {"token": token}) if kubeconfig else None
    where = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, **variables}
    pair = pod.run(content=content, **where)
    assert pair.kubectl.status == 0
    assert json.loads(pair.kubectl.stdout)["major"] == "1"
    assert _read_by(faulty_cluster) == expected
    both.write("")


def _read_by(cluster: ControlPlane) -> str:
    """Return the namespace of the plugin's last request for pods."""
    lists = [event for event in cluster.audited() if event.get("userAgent", "").startswith("kubectl-spread/")]
    pods = [event["objectRef"] for event in lists if event.get("objectRef", {}).get("resource") == "pods"]
    return str(pods[-1]["namespace"])
