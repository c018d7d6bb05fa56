"""Configuration files of kube-scheduler."""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from kubectl_spread.errors import CombinedError
from kubectl_spread.kube.api.types import TopologySpreadConstraint
from kubectl_spread.kube.scheduler.configuration import Profile
from kubectl_spread.sources.files import schedulerconfig
from tests.builders import ZONE

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
DEFAULT = "default-scheduler"
NONE = Profile(defaults=(), system_defaults=False)
OFF = Profile(filters=False, scores=False, defaults=(), system_defaults=False)
OWN = Profile(
    defaults=(TopologySpreadConstraint(max_skew=2, topology_key=ZONE, when_unsatisfiable="DoNotSchedule"),),
    system_defaults=False,
)


def read(text: str) -> Mapping[str, Profile]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return schedulerconfig.read("-")


def config(text: str) -> str:
    """Return a configuration with these fields."""
    return HEAD + textwrap.dedent(text)


def args(text: str) -> str:
    """Return a configuration of one profile whose plugin has these arguments; they begin on line 7."""
    head = "profiles:\n- pluginConfig:\n  - name: PodTopologySpread\n    args:\n"
    return HEAD + head + textwrap.indent(textwrap.dedent(text).strip() + "\n", "      ")


def problems(text: str) -> list[str]:
    with pytest.raises(CombinedError) as refused:
        read(text)
    messages = refused.value.messages
    return [message.removeprefix("STDIN").replace("KubeSchedulerConfiguration: ", "") for message in messages]


LIST = f"""
defaultingType: List
defaultConstraints:
- maxSkew: 2
  topologyKey: {ZONE}
  whenUnsatisfiable: DoNotSchedule
"""
JSON = """{
  "kind": "KubeSchedulerConfiguration", "apiVersion": "kubescheduler.config.k8s.io/v1",
  "profiles": [
    {"schedulerName": "mine", "pluginConfig": [{"name": "PodTopologySpread", "args": {"defaultingType": %s}}]}
  ]
}"""
TWO = """
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 5}
  - name: PodTopologySpread
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: PodTopologySpreadArgs
      defaultingType: List
- schedulerName: packing
  plugins:
    multiPoint:
      disabled:
      - name: PodTopologySpread
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(config(""), {DEFAULT: Profile()}, id="no profiles"),
        pytest.param(config("profiles: []"), {DEFAULT: Profile()}, id="an empty list of profiles"),
        pytest.param(config("profiles: null"), {DEFAULT: Profile()}, id="null profiles"),
        pytest.param(config("profiles:\n-"), {DEFAULT: Profile()}, id="a null profile"),
        pytest.param(config("profiles:\n- schedulerName: mine"), {"mine": Profile()}, id="a name"),
        pytest.param(config(TWO), {DEFAULT: NONE, "packing": OFF}, id="two profiles"),
        pytest.param(args(LIST), {DEFAULT: OWN}, id="own constraints"),
        pytest.param(args("defaultingType: null"), {DEFAULT: Profile()}, id="a null type"),
        pytest.param(args("{}"), {DEFAULT: Profile()}, id="no arguments"),
        pytest.param(
            config("profiles:\n- pluginConfig:\n  - name: PodTopologySpread\n"), {DEFAULT: Profile()}, id="no args"
        ),
        pytest.param(JSON % '"List"', {"mine": NONE}, id="JSON"),
        pytest.param(
            config("parallelism: 4\nextenders: []\nleaderElection: {x: 1}"), {DEFAULT: Profile()}, id="the rest"
        ),
        pytest.param(config("---\nkind: Other"), {DEFAULT: Profile()}, id="a second document is not read"),
    ],
)
def test_each_scheduler_has_its_profile(text: str, expected: dict[str, Profile]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [": a KubeSchedulerConfiguration is expected, but the file is empty"], id="an empty file"),
        pytest.param("# none\n", [": a KubeSchedulerConfiguration is expected, but the file is empty"], id="a comment"),
        pytest.param("a: [", [":1: did not find expected node content"], id="not YAML"),
        pytest.param("- a", [":1: expected object, got array"], id="a list"),
        pytest.param("{}", [":1: apiVersion: is missing", ":1: kind: is missing"], id="no header"),
        pytest.param(
            "kind: Pod\napiVersion: v1",
            [
                ":1: kind: is Pod, not KubeSchedulerConfiguration",
                ":2: apiVersion: is v1, not kubescheduler.config.k8s.io/v1",
            ],
            id="another kind",
        ),
        pytest.param(
            HEAD.replace("/v1", "/v1beta3"),
            [":1: apiVersion: is kubescheduler.config.k8s.io/v1beta3, not kubescheduler.config.k8s.io/v1"],
            id="an old version",
        ),
        pytest.param(config("profile: []"), [":3: profile: unknown field"], id="an unknown field"),
        pytest.param(
            config("profiles: {}"), [":3: profiles: expected array, got object"], id="profiles of another type"
        ),
        pytest.param(
            config("profiles:\n- plugins:\n    multipoint: {}"),
            [":5: profiles[0].plugins.multipoint: unknown field"],
            id="an unknown field of a profile",
        ),
        pytest.param(
            config("profiles:\n- schedulerName: 5\n- plugins: []\n- schedulerName: a\n- schedulerName: a"),
            [
                ":4: profiles[0].schedulerName: expected string, got integer",
                ":5: profiles[1].plugins: expected object, got array",
                ':7: profiles[3].schedulerName: Duplicate value: "profiles[2].schedulerName"',
            ],
            id="faults of several profiles",
        ),
        pytest.param(
            config("profiles:\n- schedulerName: a\n- percentageOfNodesToScore: 5"),
            [":5: profiles[1].schedulerName: Required value"],
            id="one of two has no name",
        ),
        pytest.param(
            args("kind: NodeAffinityArgs\napiVersion: v1"),
            [
                ":7: profiles[0].pluginConfig[0].args.kind: is NodeAffinityArgs, not PodTopologySpreadArgs",
                ":8: profiles[0].pluginConfig[0].args.apiVersion: is v1, not kubescheduler.config.k8s.io/v1",
            ],
            id="arguments of another plugin",
        ),
        pytest.param(
            args("defaultingtype: List"),
            [":7: profiles[0].pluginConfig[0].args.defaultingtype: unknown field"],
            id="an unknown argument",
        ),
        pytest.param(
            args("defaultConstraints:\n- maxSkew: '1'"),
            [":8: profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkew: expected integer, got string"],
            id="an argument of another type",
        ),
        pytest.param(
            args(LIST.replace("List", "System").replace("2", "0") + "  labelSelector: {}"),
            [
                (
                    ':7: profiles[0].pluginConfig[0].args.defaultingType: Invalid value: "System": '
                    "when .defaultConstraints are not empty"
                ),
                (
                    ":9: profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkew: Invalid value: 0: "
                    "not in valid range (0, inf)"
                ),
                (
                    ":12: profiles[0].pluginConfig[0].args.defaultConstraints[0].labelSelector: Forbidden: "
                    "constraint must not define a selector, as they deduced for each pod"
                ),
            ],
            id="several errors in the arguments",
        ),
        pytest.param(
            JSON % '"x"',
            [
                (
                    ':4: profiles[0].pluginConfig[0].args.defaultingType: Unsupported value: "x": '
                    'supported values: "System", "List"'
                )
            ],
            id="JSON",
        ),
        pytest.param("{", [":1: invalid JSON: input data was truncated"], id="not JSON"),
    ],
)
def test_errors_name_the_line_and_the_field(text: str, expected: list[str]) -> None:
    assert problems(text) == expected


def test_an_error_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(args("defaultingType: x"), encoding="utf-8")
    with pytest.raises(CombinedError) as refused:
        schedulerconfig.read(str(file))
    (message,) = refused.value.messages
    assert message.startswith(f"{file}:7: ")


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(CombinedError) as refused:
        schedulerconfig.read("/nowhere.yaml")
    assert str(refused.value) == "error reading /nowhere.yaml: no such file or directory"
