"""What a finding advises to type heals it on the real control plane, and harms nothing else."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from _pytest.mark import ParameterSet

from kubectl_spread.rules import RULES
from kubectl_spread.rules.model import Rule
from tests import contract
from tests.builders import Json
from tests.controlplane import binaries
from tests.controlplane.client import INVALID, ApiError
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import require_built
from tests.e2e.shell import paste
from tests.e2e.situations import Example, Situation, example
from tests.e2e.spread import Plugin, Spread, named
from tests.e2e.workloads import pods, scheduled
from tests.rules.test_rules import BAD, findings, name, remedies_of

pytestmark = pytest.mark.e2e

_QUIET: Final = 1.0
"""The seconds without a change after which nothing changes."""
_BUILT: Final = {version.rpartition(".")[0].removeprefix("v"): version for version in binaries.OLDER_APISERVERS}
_OWNER_UNREAD: Final = ("SPR108",)
"""Rules about pods whose pod template is not read."""
_AFTER_THE_CHANGE: Final = ("SPR404",)
"""Rules whose commands are to be run after the change of version that ``--to`` announces."""
_SAVING: Final = ("SPR207",)
"""Rules whose commands save a manifest: the API has to accept it, and a pod that is created from it is like the old."""
_OF_FILES: Final = ("SPR208", "SPR213")
"""Rules about pod templates that have no pods yet, or where no nodes were read; a cluster has both at once."""
_WITHOUT_NODES: Final = ("bad-deprecated-os", "bad-without-nodes")
"""Examples of other rules without nodes; where there are some, none has the topology key, which is SPR218."""
_NO_ROOM: Final = ("bad-required-for-others", "bad-required-zone-of-one")
"""Examples without running pods; on a cluster they run, and the fix waits because its rollout could not end."""
_WAITING: Final = ("bad-deprecated", "bad-manifest", "bad-hard-in-a-template", "bad-hard-of-stored-template")
"""Examples of SPR218 without pods; on a cluster these wait, and SPR303 has the fix, as its own example."""
_IN_A_ROLLOUT: Final = (
    "bad-older-revision",
    "bad-rollout-kept-by-anti-affinity",
    "bad-uneven-after-the-rollout",
    "bad-uneven-until-the-old-are-gone",
)
"""Examples with pods of two revisions, which controllers would not leave as they are: see ``test_old_revisions``."""
_OF_A_REPLICA_SET: Final = (
    "bad-deprecated-key",
    "bad-no-node-has-both-keys",
    "bad-overlapping-constraints",
    "bad-pods-of-a-replica-set",
    "bad-relabelled-pods",
    "bad-too-few-domains-and-a-cordon",
)
"""Examples with the ReplicaSet of a Deployment, which controllers make from the template that is there."""
_LATE: Final = ("SPR105",)
"""Rules about labels that came after the pods, so that the pod template does not have them."""
_ENDING: Final = timedelta(seconds=3)
"""The time that deleted pods need to end. Where a StatefulSet replaces a pod in the instant between two requests of
kubectl delete (1.32), its wait does not end.
"""
_SETTLED: Final = 120
"""Seconds: controllers and the scheduler wait up to 30 each before they watch a restarted API server again."""
_ONE_AT_A_TIME: Final = "not all replacements are sure to find nodes at once"
"""Is in a fix that removes one of several pods; in the example no other one can be removed after it."""
_AFTERWARDS: Final = "to move afterwards"
_KEPT: Final = "Keep the pod for now"
_READING: Final = tuple(f"kubectl spread {command} " for command in ("check", "explain", "plan", "recommend"))
"""The beginnings of commands that answer more."""
_FIXED: Final = ("Pod", "Job")
"""Kinds whose pod spec the API does not change, so that only the manifest can be patched."""


def _own(path: Path) -> list[Json]:
    """Return the findings of the example's rule that have something to type which changes something."""
    return [
        finding
        for finding in findings(path)
        if finding["code"] == path.parent.name
        and ("patch" in finding or any(not line.startswith(_READING) for line in finding.get("commands", ())))
    ]


ADVISED: Final = sorted((path for path in BAD if _own(path)), key=lambda path: example(path).minor)
ON_CLUSTERS: Final = [
    path
    for path in ADVISED
    if example(path).stored
    and path.parent.name not in _OF_FILES
    and path.stem not in (*_IN_A_ROLLOUT, *_OF_A_REPLICA_SET, *_WITHOUT_NODES, *_NO_ROOM, *_WAITING)
]
IN_FILES: Final = [
    path for path in ADVISED if any("patch" in finding and "source" in finding for finding in _own(path))
]


def _remedies(path: Path) -> set[tuple[str, ...]]:
    """Return what an example advises to do: each rule with the first words of a command, without names."""
    code = path.parent.name
    lines = [command.split() for finding in _own(path) for command in finding.get("commands", ())]
    return {(code, *words[:2]) for words in lines} | {(code, "patch") for finding in _own(path) if "patch" in finding}


def _cases(paths: Sequence[Path]) -> Iterator[ParameterSet]:
    """Yield the examples; CI runs those that advise something that no earlier one advises."""
    seen: set[tuple[str, ...]] = set()
    for path in paths:
        new = _remedies(path) - seen
        seen |= new
        yield pytest.param(path, id=name(path), marks=() if new else pytest.mark.nightly)


class Ward:
    """A cluster for one example after the other, with the API server that the example is about."""

    def __init__(self, cluster: ControlPlane, plugin: Plugin) -> None:
        self.cluster = cluster
        self._plugin = plugin
        self._served: tuple[str, Mapping[str, bool]] = "", {}

    def serve(self, minor: str, gates: Mapping[str, bool]) -> None:
        """Run the API server of a minor, if it is built; "" is the newest."""
        minor = minor if minor in _BUILT else ""
        if (minor, gates) != self._served:
            require_built(_BUILT.get(minor, binaries.KUBERNETES_VERSION), ("kube-apiserver",))
            self.cluster.restart_apiserver(version=_BUILT.get(minor), feature_gates=gates)
            self._served = minor, gates

    def spread(self) -> Spread:
        """Return ``kubectl spread`` on the cluster."""
        return self._plugin.on(self.cluster)

    def shell(self, script: str, directory: Path, namespace: str) -> None:
        """Run lines as somebody who pastes them, and stop at the first that fails."""
        try:
            with self.cluster.kubelet.slow(_ENDING):
                done = paste(script, directory, self.spread().environment)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(
                f"{error.output!r} {error.stderr!r}\n{json.dumps(pods(self.cluster, namespace))}"
            ) from error
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Iterator[Ward]:
    """Return a cluster without nodes."""
    require_built()
    with ControlPlane.start(tmp_path_factory.mktemp("ward"), kubelet=True) as cluster:
        yield Ward(cluster, plugin)


def _key(finding: Json) -> tuple[str, ...]:
    return finding["code"], finding["object"]["kind"], finding["object"]["name"], finding["path"]


def _loud(present: Sequence[Json]) -> set[tuple[str, ...]]:
    """Return the findings but notes, and but pods that wait for the gates with which examples keep them pending."""
    return {
        _key(finding)
        for finding in present
        if finding["severity"] != "info" and "scheduling gates" not in finding["message"]
    }


def _settle(cluster: ControlPlane, namespace: str) -> None:
    """Wait until every pod runs or waits, and nothing has changed for a while."""
    since, last = time.monotonic(), ""

    def quiet() -> bool:
        nonlocal since, last
        listed = pods(cluster, namespace)
        now = json.dumps([(pod["metadata"]["uid"], pod["spec"].get("nodeName")) for pod in listed])
        moving = any("deletionTimestamp" in pod["metadata"] or not _placed(pod) for pod in listed)
        waiting = any("nodeName" not in pod["spec"] for pod in listed)
        moving = moving or not all(
            _observed(each) and (waiting or _rolled(each)) for each in _workloads(cluster, namespace)
        )
        if moving or now != last:
            since, last = time.monotonic(), now
        return time.monotonic() - since > _QUIET

    try:
        cluster.wait_for(quiet, timeout=_SETTLED, what="the pods are settled")
    except TimeoutError as error:
        workloads = {each["metadata"]["name"]: each["status"] for each in _workloads(cluster, namespace)}
        raise AssertionError(f"{last}: {workloads}") from error


def _workloads(cluster: ControlPlane, namespace: str) -> Iterator[Json]:
    for plural in ("deployments", "statefulsets", "daemonsets"):
        yield from cluster.api.get(f"/apis/apps/v1/namespaces/{namespace}/{plural}")["items"]


def _observed(workload: Json) -> bool:
    """Tell whether the controller has acted on the present template."""
    return bool(workload["status"].get("observedGeneration") == workload["metadata"]["generation"])


def _rolled(workload: Json) -> bool:
    """Tell whether a Deployment has replaced its pods, or the API refuses new ones; other kinds are not asked."""
    replicas, status = workload["spec"].get("replicas"), workload["status"]
    refused = any(condition["type"] == "ReplicaFailure" for condition in status.get("conditions", ()))
    return "strategy" not in workload["spec"] or refused or replicas in (0, status.get("updatedReplicas"))


def _placed(pod: Json) -> bool:
    """Tell whether a pod runs, or waits for a gate or for a node."""
    if pod["status"].get("phase") == "Running" or "schedulingGates" in pod["spec"]:
        return True
    return "nodeName" not in pod["spec"] and bool(scheduled(pod))


def _options(case: Example, *, changed: bool) -> list[str]:
    """Return the options of an example, without those that are true of the cluster."""
    options = list(case.options)
    gone = ["--to"] if changed else []
    for option in ("--server-version", *gone):
        if option in options and (changed or case.minor in _BUILT):
            index = options.index(option)
            del options[index : index + 2]
    return options


def _findings(ward: Ward, code: str, namespace: str, options: Sequence[str]) -> list[Json]:
    arguments = ("check", "-o", "json", "--fail-on", "never", *options)
    if code in _OWNER_UNREAD:
        capture = ward.cluster.kubectl("get", "pods,nodes", "-n", namespace, "-o", "json").stdout
        answer = ward.spread()(*arguments, "-f", "-", input=capture)
    else:
        answer = ward.spread()(*arguments, "-n", namespace)
    assert answer.status == 0, answer.stderr
    present: list[Json] = answer.report["findings"]
    return present


def _confirm_healed(ward: Ward, finding: Json, before: Sequence[Json], namespace: str, options: Sequence[str]) -> None:
    """Wait until a finding is gone, and none is new: the scheduler tries a pending pod again after some seconds."""
    present: list[Json] = []

    def healed() -> bool:
        present[:] = _findings(ward, finding["code"], namespace, options)
        new = _loud(present) - _loud(before) - _of_rollouts(finding)
        return _key(finding) not in map(_key, present) and not new

    try:
        ward.cluster.wait_for(healed, what=f"{_key(finding)} is gone")
    except TimeoutError as error:
        raise AssertionError(json.dumps(present)) from error


def _others(cluster: ControlPlane, namespace: str, finding: Json) -> dict[str, str]:
    """Return the UIDs of the pods that a finding is not about.

    A skew is about all pods that are counted together; a fix that deletes pods of another workload names it.
    """
    workload = finding["object"]["name"]
    replaced = set(finding["pods"])
    if "(of " in finding["fix"]:
        replaced.update(word for command in finding["commands"] for word in shlex.split(command))
    return {
        pod["metadata"]["name"]: pod["metadata"]["uid"]
        for pod in pods(cluster, namespace)
        if pod["metadata"]["name"] not in replaced
        if pod["metadata"]["name"] != workload and not pod["metadata"]["name"].startswith(f"{workload}-")
    }


def _of_rollouts(finding: Json) -> set[tuple[str, ...]]:
    """Return the findings about places that a rollout may leave behind, as old pods count until its end.

    That a closed domain holds the minimum is one of them where the fix says so.
    """
    starts = any(word in command for command in finding["commands"] for word in ("rollout restart", "kubectl patch"))
    workload = finding["object"]
    constraints = "spec.topologySpreadConstraints"
    places = {"SPR301": f"{constraints}[0]", "SPR501": constraints, "SPR502": constraints}
    if "SPR307" in finding["fix"]:
        places["SPR307"] = f"{constraints}[0]"
    return {(code, workload["kind"], workload["name"], path) for code, path in places.items()} if starts else set()


def _script(finding: Json) -> str:
    """Return what a finding advises to type; a patch is applied as the report has it."""
    if "commands" not in finding:
        return ""
    if "patch" in finding:
        applied = json.dumps(finding["patch"]["operations"])
        assert any(json.loads(words[-1]) == json.loads(applied) for words in _patches(finding)), finding["commands"]
    return "\n".join(finding["commands"])


def _patches(finding: Json) -> Iterator[list[str]]:
    for command in finding["commands"]:
        words = shlex.split(command)
        if "patch" in words and "--type=json" in words:
            yield words


@pytest.mark.parametrize("path", [*_cases(ON_CLUSTERS)])
def test_the_commands_heal_the_finding(ward: Ward, tmp_path: Path, path: Path) -> None:
    """The finding is gone, no finding is new at warning or above, and no pod of another workload was replaced."""
    case, code = example(path), path.parent.name
    changes = code in _AFTER_THE_CHANGE
    ward.serve(case.minor, {} if "--to" in case.options else case.gates)
    with ward.cluster.namespace("case") as namespace:
        try:
            Situation(ward.cluster, case, namespace, late=code in _LATE).make()
        except ApiError as error:
            if error.status == INVALID and path in IN_FILES:
                return
            raise
        _settle(ward.cluster, namespace)
        before = _findings(ward, code, namespace, _options(case, changed=False))
        own = [finding for finding in before if finding["code"] == code]
        assert own, before
        advised = [finding for finding in own if _script(finding)]
        assert advised or (path in IN_FILES and own[0]["object"]["kind"] in _FIXED), json.dumps(own)
        if changes:
            ward.serve(case.options[case.options.index("--to") + 1], {})
        for first in advised:
            finding = first
            if changes or _key(finding) in map(_key, _findings(ward, code, namespace, _options(case, changed=changes))):
                others = _others(ward.cluster, namespace, finding)
                ward.shell(_script(finding), tmp_path, namespace)
                key = _key(finding)
                while _AFTERWARDS in finding["fix"]:
                    _settle(ward.cluster, namespace)
                    left = _findings(ward, code, namespace, _options(case, changed=changes))
                    before_it, same = finding, [each for each in left if _key(each) == key]
                    if not same:
                        break
                    (finding,) = same
                    assert finding["values"]["must_go"] < before_it["values"]["must_go"]
                    ward.shell(_script(finding), tmp_path, namespace)
                if _ONE_AT_A_TIME in finding["fix"]:
                    _settle(ward.cluster, namespace)
                    left = _findings(ward, code, namespace, _options(case, changed=changes))
                    assert [each["fix"].split(":")[0] for each in left if _key(each) == _key(finding)] == [_KEPT]
                    continue
                if code in _SAVING:
                    ward.shell("kubectl replace --force -f *.yaml", tmp_path, namespace)
                    continue
                _settle(ward.cluster, namespace)
                _confirm_healed(ward, finding, before, namespace, _options(case, changed=changes))
                assert others.items() <= _others(ward.cluster, namespace, finding).items()


@pytest.mark.parametrize("path", [*_cases(IN_FILES)])
def test_the_patch_heals_the_manifest(ward: Ward, tmp_path: Path, path: Path) -> None:
    """The real kubectl applies the patch to the file."""
    case, manifest = example(path), tmp_path / "manifest.yaml"
    workload = path.read_text(encoding="utf-8")
    manifest.write_text(workload, encoding="utf-8")
    arguments = ("check", "-o", "json", "--fail-on", "never", *case.options, "-f")
    before = contract.loaded(ward.spread()(*arguments, str(manifest)).stdout)["findings"]
    own = [finding for finding in before if finding["code"] == path.parent.name and "patch" in finding]
    assert own
    for finding in own:
        (document,) = (each for each in (*case.workloads, *case.pods) if named_as(finding, each))
        manifest.write_text(json.dumps(document), encoding="utf-8")
        applied = json.dumps(finding["patch"]["operations"])
        command = ["patch", "--local", "-f", str(manifest), "--type=json", "-p", applied, "-o", "json"]
        manifest.write_text(ward.cluster.kubectl(*command).stdout, encoding="utf-8")
        after = contract.loaded(ward.spread()(*arguments, str(manifest)).stdout)["findings"]
        assert [each for each in after if _key(each) == _key(finding)] == []
        assert _loud(after) - _loud(before) == set()


def named_as(finding: Json, document: Json) -> bool:
    """Tell whether a finding is about an object."""
    return named(finding["object"]) == named({"kind": document["kind"], "name": document["metadata"]["name"]})


@pytest.mark.parametrize("rule", [rule for rule in RULES if remedies_of(rule.code)], ids=lambda rule: rule.code)
def test_each_rule_that_promises_a_remedy_has_an_example_here(rule: Rule) -> None:
    """A new rule whose remedy nobody runs fails."""
    own = [finding for path in ADVISED if path.parent.name == rule.code for finding in _own(path)]
    promised = {"command": "commands", "patch": "patch"}
    assert [kind for kind in remedies_of(rule.code) if not any(promised[kind] in finding for finding in own)] == []
