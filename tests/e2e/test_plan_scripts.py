"""Scripts of plans, run by several shells with the real kubectl, against an API that answers as real ones may."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.builders import ZONE, Json
from tests.controlplane import binaries
from tests.plan.api import EVICTED, Answer, Api, refusal, serving
from tests.plan.test_plan import SIX, command, hard, planned
from tests.simulate.clusters import deployment, stateful_set

pytestmark = pytest.mark.e2e

UID: Final = "0c6e1f3a"
SHELLS: Final = ("sh", "dash", "bash", "bash --posix", "zsh --emulate sh")
BUDGET: Final = refusal(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
CONFLICT: Final = refusal(
    409, "Conflict", 'Operation cannot be fulfilled on poddisruptionbudgets.policy "web": the object has been modified'
)
NO_BUDGET: Final = refusal(404, "NotFound", 'poddisruptionbudgets.policy "web" not found')
WEBHOOK: Final = refusal(
    403, "Forbidden", 'admission webhook "guard.example" denied the request: no ticket (NotFound) for (Conflict)'
)
SEVERAL_BUDGETS: Final = refusal(
    500,
    "",
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
)._replace(status=201)
"""What kube-apiserver 1.37 sends with HTTP status 201 (pkg/registry/core/pod/storage/eviction.go)."""
HTML: Final = "<html><body>Sign in</body></html>"
WEB: Final = [*SIX, *deployment("web", ["a1", "a2", "b1"], **hard())]
"""One pod of zone a has to go to zone c."""
LONGER: Final = [*SIX, *deployment("web", ["a1"] * 4, **hard())]
"""Two pods of zone a have to go, one after the other."""
KUBE_SYSTEM: Final = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": UID}}
FIRST: Final = "web-5d9c-0"


def script(objects: Sequence[Json], *arguments: str) -> str:
    """Return the script of the plan for objects of a cluster, with short times."""
    text = command([*objects, KUBE_SYSTEM], *arguments, "-o", "script").stdout
    for name, long, short in (("refused_for", 60, 2), ("complete_in", 60, 0), ("arrives_in", 300, 2)):
        assert f"{name}={long} " in text
        text = text.replace(f"{name}={long} ", f"{name}={short} ")
    return text


@dataclass(frozen=True)
class Played:
    """How a script ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def stopped(self) -> bool:
        """Whether it stopped, and said why and what it had done."""
        return (self.status, "stopped: " in self.stderr, "done" in self.stdout) == (1, True, False)


@dataclass(frozen=True)
class Player:
    """Runs scripts in a directory with a kubectl, for which waiting takes no time."""

    directory: Path

    def play(self, text: str, api: Api, shell: str = "sh", **environment: str) -> Played:
        """Give a script to a shell on its standard input, as a pipe does."""
        with serving(api) as url:
            cluster = {"name": "c", "cluster": {"server": url}}
            config = {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
                "clusters": [cluster],
                "users": [{"name": "c", "user": {}}],
            }
            kubeconfig = self.directory / "config"
            kubeconfig.write_text(json.dumps(config))
            return self.run(text, shell, KUBECONFIG=str(kubeconfig), **environment)

    def run(self, text: str, shell: str, **environment: str) -> Played:
        """Run a script without a cluster."""
        path = f"{self.directory / 'bin'}{os.pathsep}{os.environ['PATH']}"
        ended = subprocess.run(
            shlex.split(shell),
            input=text,
            check=False,
            capture_output=True,
            text=True,
            env={"PATH": path, "HOME": str(self.directory), **environment},
            cwd=self.directory,
            timeout=120,
        )
        return Played(ended.returncode, ended.stdout, ended.stderr)

    def program(self, name: str, text: str) -> None:
        """Have the shell find a program."""
        path = self.directory / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)


@pytest.fixture
def idle(tmp_path: Path) -> Player:
    """Return a player whose kubectl only notes that it was called."""
    player = Player(tmp_path)
    player.program("sleep", "exit 0")
    player.program("kubectl", "echo called >>calls")
    return player


@pytest.fixture
def player(idle: Player) -> Player:
    """Return a player with the real kubectl, which notes what it can read of its standard input but for evictions."""
    kubectl = shlex.quote(str(binaries.kubectl()))
    idle.program("kubectl", f'[ "$1" = create ] || cat >>read\nexec {kubectl} "$@"')
    return idle


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_carries_a_plan_out(player: Player, shell: str) -> None:
    api = Api(LONGER, ["b1", "c1"], UID)
    played = player.play(script(LONGER), api, shell)
    assert (played.status, played.stderr) == (0, "")
    assert played.stdout.splitlines()[-1] == "done: 2 of 2 pods evicted"
    assert api.evictions == ["uid-web-5d9c-0", "uid-web-5d9c-1"]
    assert (player.directory / "read").read_text() == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_stops_where_an_eviction_has_no_effect(player: Player, shell: str) -> None:
    api = Api(LONGER, ["b1", "c1"], UID)
    api.answers.extend([EVICTED, Answer()])
    played = player.play(script(LONGER), api, shell)
    assert played.stopped
    assert "pod web-5d9c-1 in namespace shop is still there, although its eviction was accepted" in played.stderr
    assert played.stderr.endswith("evicted: 1 of 2 pods\n")


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        pytest.param([BUDGET] * 9, "a disruption budget does not allow to evict web-5d9c-0", id="budget"),
        pytest.param([CONFLICT] * 9, "cannot be evicted: Error from server (Conflict)", id="conflict on the budget"),
        pytest.param([NO_BUDGET] * 9, "cannot be evicted: Error from server (NotFound)", id="no budget any more"),
        pytest.param([WEBHOOK], "cannot be evicted: Error from server (Forbidden)", id="webhook"),
        pytest.param([SEVERAL_BUDGETS], "still there, although its eviction was accepted", id="several budgets"),
        pytest.param([Answer(200)], "still there, although its eviction was accepted", id="no effect"),
        pytest.param([Answer(200, HTML)], "still there, although its eviction was accepted", id="HTML"),
        pytest.param([Answer(403, HTML)], "cannot be evicted", id="forbidden by a proxy"),
        pytest.param([Answer(404, HTML)] * 9, "cannot be evicted", id="not found by a proxy"),
        pytest.param(
            [Answer(evicts=True, meanwhile=lambda api: api.replace(FIRST))],
            "is gone, although its eviction failed: Error from server (NotFound)",
            id="gone meanwhile",
        ),
    ],
)
def test_a_pod_that_is_not_evicted_stops_the_script(player: Player, answers: list[Answer], reason: str) -> None:
    api = Api(WEB, ["c1"], UID)
    api.answers.extend(answers)
    played = player.play(script(WEB), api)
    assert played.stopped
    assert reason in played.stderr
    assert played.stderr.endswith("evicted: 0 of 1 pods\n")
    assert api.evictions == []


@pytest.mark.parametrize("answer", [BUDGET, CONFLICT, NO_BUDGET], ids=["budget", "conflict", "no budget"])
def test_an_eviction_that_may_succeed_later_is_tried_again(player: Player, answer: Answer) -> None:
    api = Api(WEB, ["c1"], UID)
    api.answers.append(answer)
    played = player.play(script(WEB), api)
    assert (played.status, played.stdout.splitlines()[-1]) == (0, "done: 1 of 1 pods evicted")
    assert api.evictions == ["uid-web-5d9c-0"]


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        pytest.param(None, "2 of 2 pods are ready. The plan needs 3 ready pods of 3", id="no new pod"),
        pytest.param("", "2 of 3 pods are ready, web-5d9c-0-new is not. The plan needs 3", id="pending"),
        pytest.param("b1", f"web-5d9c-0-new is on b1, and the plan expects a node with {ZONE}=c", id="elsewhere"),
    ],
)
def test_a_replacement_that_is_not_as_planned_stops_the_script(player: Player, place: str | None, reason: str) -> None:
    api = Api(WEB, [place], UID)
    played = player.play(script(WEB), api)
    assert played.stopped
    assert reason in played.stderr
    assert played.stderr.endswith("evicted: 1 of 1 pods\n")


def test_finished_pods_that_the_kubelet_left_behind_do_not_count(player: Player) -> None:
    api = Api(WEB, ["c1"], UID)
    failed = deepcopy(api.objects["Pod", FIRST])
    failed["metadata"] |= {"name": "web-5d9c-9", "uid": "uid-web-5d9c-9"}
    failed["status"] = {"phase": "Failed", "reason": "Evicted"}
    api.objects["Pod", "web-5d9c-9"] = failed
    played = player.play(script(WEB), api)
    assert (played.status, played.stderr) == (0, "")


@pytest.fixture
def database() -> list[Json]:
    """Return a StatefulSet, whose replacements have the names of their predecessors; one has to go to zone c."""
    db = stateful_set("db", ["a1", "a2", "b1"])
    for each in db:
        each["spec"].get("template", each)["spec"].update(hard("db"))
    return [*SIX, *db]


def test_a_replacement_may_have_the_name_of_its_predecessor(player: Player, database: list[Json]) -> None:
    api = Api(database, ["c1"], UID)
    played = player.play(script(database), api)
    assert (played.status, played.stderr) == (0, "")
    assert len(api.evictions) == 1


def test_a_pod_that_was_replaced_before_its_eviction_is_not_evicted(player: Player, database: list[Json]) -> None:
    (wave,) = planned(database)["waves"]
    name = wave["evictions"][0]["pod"]
    api = Api(database, ["c1"], UID)
    api.answers.append(Answer(evicts=True, meanwhile=lambda api: api.replace(name)))
    played = player.play(script(database), api)
    assert played.stopped
    assert "is gone, although its eviction failed: Error from server (Conflict)" in played.stderr
    assert api.evictions == []


def _closed(change: Callable[[Json], object]) -> Callable[[Api], None]:
    def close(api: Api) -> None:
        for name in ("c1", "c2"):
            change(api.objects["Node", name])

    return close


def _tainted(node: Json) -> None:
    node["spec"]["taints"] = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]


def _not_ready(node: Json) -> None:
    node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]


def _without_nodes(api: Api) -> None:
    del api.objects["Node", "c1"], api.objects["Node", "c2"]


@pytest.mark.parametrize(
    "close",
    [
        pytest.param(_closed(lambda node: node["spec"].update(unschedulable=True)), id="cordoned"),
        pytest.param(_closed(_not_ready), id="not ready"),
        pytest.param(_closed(_tainted), id="tainted"),
        pytest.param(_closed(lambda node: node["metadata"]["labels"].pop(ZONE)), id="label removed"),
        pytest.param(_without_nodes, id="deleted"),
    ],
)
def test_nothing_is_evicted_where_no_node_takes_the_replacement(player: Player, close: Callable[[Api], None]) -> None:
    api = Api(WEB, ["c1"], UID)
    close(api)
    played = player.play(script(WEB), api)
    assert played.stopped
    assert f"no node with {ZONE}=c takes the replacement of pod web-5d9c-0 in namespace shop" in played.stderr
    assert api.evictions == []


@pytest.mark.parametrize(
    ("toleration", "allowed"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "dedicated", "value": "batch"}, True),
        ({"key": "dedicated", "operator": "Equal", "value": "web"}, False),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_a_node_is_open_to_pods_that_tolerate_its_taints(player: Player, toleration: Json, *, allowed: bool) -> None:
    web = [*SIX, *deployment("web", ["a1", "a2", "b1"], tolerations=[toleration], **hard())]
    api = Api(web, ["c1"], UID)
    _closed(_tainted)(api)
    played = player.play(script(web), api)
    assert (played.status == 0) is allowed
    assert len(api.evictions) == allowed


def test_only_nodes_that_the_node_selector_allows_are_open(player: Player) -> None:
    web = [*SIX, *deployment("web", ["a1", "a2", "b1"], nodeSelector={"disk": "ssd"}, **hard())]
    for each in web:
        if each["kind"] == "Node":
            each["metadata"]["labels"]["disk"] = "ssd"
    text = script(web)
    api = Api(web, ["c1"], UID)
    for name in ("c1", "c2"):
        del api.objects["Node", name]["metadata"]["labels"]["disk"]
    assert "no node with" in player.play(text, api).stderr
    assert api.evictions == []
    assert player.play(text, Api(web, ["c1"], UID)).status == 0


def test_a_domain_that_closes_between_two_waves_stops_the_script(player: Player) -> None:
    api = Api(LONGER, ["b1", "c1"], UID)
    cordoned = _closed(lambda node: node["spec"].update(unschedulable=True))
    api.answers.append(Answer(evicts=True, meanwhile=cordoned))
    played = player.play(script(LONGER), api)
    assert played.stopped
    assert f"no node with {ZONE}=c takes the replacement of pod web-5d9c-1" in played.stderr
    assert api.evictions == ["uid-web-5d9c-0"]


def test_pods_that_are_gone_are_passed_over_and_not_counted(player: Player) -> None:
    api = Api(LONGER, ["b1", "c1"], UID)
    api.replace(FIRST)
    played = player.play(script(LONGER), api)
    assert (played.status, played.stderr) == (0, "")
    assert f"already gone: {FIRST}" in played.stdout
    assert played.stdout.endswith("done: 1 of 2 pods evicted\n")
    again = player.play(script(LONGER), api)
    assert again.stopped
    assert "all pods of the plan were gone already. Plan again" in again.stderr
    assert len(api.evictions) == 1


@pytest.mark.parametrize("answer", [Answer(200, HTML), Answer(404, HTML), Answer(200, "{}"), Answer(503, "")])
def test_an_api_that_is_none_stops_the_script(player: Player, answer: Answer) -> None:
    api = Api(WEB, ["c1"], UID)
    api.always = answer
    played = player.play(script(WEB), api)
    assert played.stopped
    assert "namespace kube-system" in played.stderr
    assert api.evictions == []


def test_another_cluster_with_the_same_pods_is_refused(player: Player) -> None:
    """As after a restore of a backup of etcd, even the UIDs of the pods are those of the plan."""
    api = Api(WEB, ["c1"], "7d2b")
    played = player.play(script(WEB), api, CLUSTER_UID="7d2b")
    assert played.stopped
    assert "namespace kube-system has the UID 7d2b, and not 0c6e1f3a" in played.stderr
    assert api.evictions == []


def test_a_plan_of_an_unknown_cluster_asks_for_its_uid(player: Player) -> None:
    text = command(WEB, "-o", "script").stdout
    api = Api(WEB, ["c1"], UID)
    played = player.play(text, api)
    assert played.stopped
    assert f"set CLUSTER_UID={UID} and run this again" in played.stderr
    assert player.play(text, api, CLUSTER_UID="7d2b").stopped
    assert api.evictions == []
    assert player.play(text, api, CLUSTER_UID=UID).status == 0


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_part_of_a_script_does_nothing(idle: Player, shell: str) -> None:
    text = script(LONGER)
    ends = {len(text) - 1 - number for number in range(1, 40)} | {*range(0, len(text) - 6, 211)}
    ends |= {number for number, character in enumerate(text) if character == "\n" and number < len(text) - 1}
    for end in sorted(ends):
        idle.run(text[:end], shell)
        assert not (idle.directory / "calls").exists(), text[:end][-200:]
    idle.run(text, shell)
    assert (idle.directory / "calls").exists()
