"""Build the sample cluster on a real control plane and capture it: ``python -m tests.e2e.capture_sample``."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from kubectl_spread.kube.features import Gate
from tests.builders import HOSTNAME, Json, constraint, selector
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import deployment
from tests.e2e.workloads import label, pods_of, roll_out, scale_down_unevenly

SAMPLE = Path(__file__).parents[2] / "examples" / "cluster.json"
NAMESPACE = "shop"
_HASH = "pod-template-hash"
_KINDS = "nodes,deployments,replicasets,pods,events"
_REASONS = frozenset({"FailedScheduling", "ScalingReplicaSet"})


def main() -> None:
    """Write the sample and print its size."""
    with tempfile.TemporaryDirectory(prefix="kubectl-spread-") as scratch:
        content = capture(Path(scratch))
    SAMPLE.write_text(content, encoding="utf-8")
    print(f"{SAMPLE}: {len(content) // 1024} KiB")


def capture(directory: Path) -> str:
    """Return the sample cluster as kubectl prints it, without noise; ``directory`` holds the control plane."""
    with sample_cluster(directory) as cluster:
        listing = cluster.kubectl("get", _KINDS, "-n", NAMESPACE, "-o", "json", "--show-managed-fields")
    return json.dumps(_without_noise(json.loads(listing.stdout)), indent=1) + "\n"


@contextmanager
def sample_cluster(directory: Path) -> Iterator[ControlPlane]:
    """Start a control plane with the workloads of the sample; ``directory`` holds its files."""
    with ControlPlane.start(directory, feature_gates={Gate.SELECTOR_MERGE: False}, kubelet=True) as cluster:
        cluster.add_nodes()
        cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        roll_out(cluster, _shop("mail", replicas=3))
        cluster.restart_apiserver(feature_gates={})
        roll_out(cluster, _shop("web", soft=True, replicas=6))
        roll_out(cluster, _shop("search", keys=[_HASH, "track"], replicas=3))
        roll_out(cluster, _shop("api", replicas=6))
        scale_down_unevenly(cluster, NAMESPACE, "api")
        roll_out(cluster, _shop("cart", keys=["rev"], labels={"rev": "r1"}, replicas=3))
        label(cluster, NAMESPACE, pods_of(cluster, NAMESPACE, "cart")[0]["metadata"]["name"], "rev=r2")
        yield cluster


def _shop(
    name: str,
    *,
    replicas: int,
    keys: Sequence[str] = (_HASH,),
    labels: Mapping[str, str] | None = None,
    soft: bool = False,
) -> Json:
    """Return a Deployment that spreads over zones, by revision unless other keys are given, and softly over nodes."""
    own = selector({"app": name})
    constraints = [constraint(selects=own, match=keys)]
    if soft:
        constraints.append(constraint(key=HOSTNAME, hard=False, selects=own, match=keys))
    return deployment(name, constraints, replicas=replicas, labels={"app": name, **(labels or {})}, namespace=NAMESPACE)


def _without_noise(captured: Json) -> Json:
    """Remove fields and events that the sample does not need."""
    captured["items"] = [
        manifest for manifest in captured["items"] if manifest["kind"] != "Event" or manifest["reason"] in _REASONS
    ]
    for manifest in captured["items"]:
        if manifest["kind"] != "Pod":
            manifest["metadata"].pop("managedFields", None)
        annotations = manifest["metadata"].get("annotations", {})
        annotations.pop("kubectl.kubernetes.io/last-applied-configuration", None)
    return captured


if __name__ == "__main__":
    main()
