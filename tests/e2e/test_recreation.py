"""Stored pods cannot be created again with merged selectors, but without these or without their labels."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pytest
from ruamel.yaml import YAML

from tests.builders import Json, affinity, constraint, requirement, selector, term
from tests.controlplane.cluster import ControlPlane
from tests.e2e.manifests import SCHEDULING_GATE, pod
from tests.e2e.spread import Spread
from tests.e2e.verdicts import MERGED, REMOVED, STALE, PodVerdict, look, pod_verdicts
from tests.e2e.workloads import label

pytestmark = pytest.mark.e2e

LABELS: Json = {"app": "web", "rev": "r1", "tenant": "t1"}
WRITTEN = selector({"app": "web"}, requirement("rev2", "DoesNotExist"))
SPREAD = "spec.topologySpreadConstraints[0]"
ANTI_AFFINITY = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
OVERLAP = 'Invalid value: "rev": exists in both matchLabelKeys and labelSelector'


def _pods() -> Mapping[str, Json]:
    """Return specs with the merge in a constraint, in an affinity term, and in both."""
    keys = [constraint(match=["rev"])]
    anti = affinity("podAntiAffinity", term(match=["rev"], mismatch=["tenant"]))
    written = [constraint(selects=WRITTEN, match=["rev"])]
    return {
        "plain": {"constraints": keys},
        "written": {"constraints": written},
        "anti": {"affinity": anti},
        "both": {"constraints": written, "affinity": anti},
    }


EXPECTED = {
    "plain": f'The Pod "plain" is invalid: {SPREAD}[0]: {OVERLAP}\n',
    "written": f'The Pod "written" is invalid: {SPREAD}[0]: {OVERLAP}\n',
    "anti": f'The Pod "anti" is invalid: {ANTI_AFFINITY}[0]: {OVERLAP}\n',
    "both": f'The Pod "both" is invalid: \n* {ANTI_AFFINITY}[0]: {OVERLAP}\n* {SPREAD}[0]: {OVERLAP}\n',
}


def _make(cluster: ControlPlane, namespace: str, name: str) -> None:
    spec = dict(_pods()[name])
    constraints = spec.pop("constraints", ())
    cluster.api.create(pod(name, constraints, labels=LABELS, namespace=namespace, **SCHEDULING_GATE, **spec))


def _stored(cluster: ControlPlane, namespace: str, name: str) -> str:
    """Return a stored pod as ``kubectl get -o yaml`` prints it, without fields that only the API server may set."""
    text = cluster.kubectl("get", "pod", name, "-n", namespace, "-o", "yaml").stdout
    yaml = YAML()
    document = yaml.load(text)
    for field in ("uid", "resourceVersion", "creationTimestamp", "generation"):
        document["metadata"].pop(field, None)
    document.pop("status")
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()


def _delete(cluster: ControlPlane, namespace: str, name: str) -> None:
    """Delete a pod that has no node, which is gone at once."""
    cluster.api.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}")


@pytest.mark.parametrize("name", EXPECTED)
def test_a_stored_pod_is_refused(control_plane: ControlPlane, namespace: str, name: str) -> None:
    """``kubectl get -o yaml | kubectl create`` fails with the API's own text, whatever the label's value is now."""
    _make(control_plane, namespace, name)
    stored = _stored(control_plane, namespace, name)
    changed = stored.replace("    rev: r1\n", "    rev: r2\n")
    assert changed != stored
    _delete(control_plane, namespace, name)
    for text in (stored, changed):
        assert control_plane.kubectl("create", "-f", "-", input=text, check=False).stderr == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_accepted_after_unmerge(control_plane: ControlPlane, namespace: str, spread: Spread, name: str) -> None:
    """``kubectl spread unmerge`` removes the merged requirements, and the API server merges the pod again."""
    _make(control_plane, namespace, name)
    label(control_plane, namespace, name, "rev=r2")
    before = look(spread, namespace)
    paths = [path for path in (SPREAD, ANTI_AFFINITY) if pod_verdicts(before, path)]
    assert [pod_verdicts(before, path) for path in paths] == [{name: STALE}] * len(paths)
    text = _stored(control_plane, namespace, name)
    unmerged = spread("unmerge", "-f", "-", input=text)
    assert unmerged.status == 0
    # The new pod's selector differs from the old pod's, which is reported.
    notes = unmerged.stderr.count("a re-creation would store rev In [r2] instead of rev In [r1]")
    assert notes == len(paths)
    _delete(control_plane, namespace, name)
    control_plane.kubectl("create", "-f", "-", input=unmerged.stdout)
    report = look(spread, namespace)
    assert [pod_verdicts(report, path) for path in paths] == [{name: MERGED}] * len(paths)
    # Only the value has changed.
    again = _stored(control_plane, namespace, name)
    assert again == text.replace("- r1\n", "- r2\n")


def test_a_copy_without_labels_is_accepted(control_plane: ControlPlane, namespace: str, spread: Spread) -> None:
    """``kubectl debug --copy-to`` drops the labels: the copy keeps the selectors of the pod that it was made from."""
    _make(control_plane, namespace, "both")
    command = ["debug", "pod/both", "-n", namespace, "--copy-to=copy", "--image=registry.example/debug:1"]
    control_plane.kubectl(*command, "--", "sh")
    report = look(spread, namespace)
    assert pod_verdicts(report) == {"both": MERGED, "copy": REMOVED}
    assert pod_verdicts(report, ANTI_AFFINITY) == {"both": MERGED, "copy": PodVerdict("removed-label", "likely")}
    (entry,) = (pod for pod in report["pods"] if (pod["name"], pod["path"]) == ("copy", SPREAD))
    (key,) = entry["keys"]
    assert key["stored"] == "r1"
    assert "label" not in key
    assert {finding["code"] for finding in report["findings"] if "copy" in finding["pods"]} >= {"SPR102"}


def test_a_copy_with_labels_is_refused(control_plane: ControlPlane, namespace: str) -> None:
    """With only the image changed the labels are kept, and the copy is the stored pod created again."""
    _make(control_plane, namespace, "plain")
    command = ["debug", "pod/plain", "-n", namespace, "--copy-to=copy", "--set-image=*=registry.example/debug:1"]
    completed = control_plane.kubectl(*command, check=False)
    assert completed.returncode != 0
    assert f"{SPREAD}[0]: {OVERLAP}" in completed.stderr
