"""The spread constraints that a scheduler's configuration respects and adds, and its errors.

Every expectation was compared with the decoder, the validation and the plugins of kube-scheduler v1.37.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.types import LabelSelector, TopologySpreadConstraint
from kubectl_spread.kube.scheduler import configuration
from kubectl_spread.kube.scheduler.configuration import (
    KubeSchedulerProfile,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    PodTopologySpreadArgs,
    Profile,
)
from tests.builders import ZONE

PATH = FieldPath(("args",))
OWN = TopologySpreadConstraint(max_skew=2, topology_key=ZONE, when_unsatisfiable="DoNotSchedule")


def plugin_set(text: str) -> PluginSet:
    """Return a set of plugins: ``-*`` disables all, ``+PodTopologySpread`` enables one."""
    words = text.split()
    return PluginSet(
        enabled=tuple(Plugin(name=word[1:]) for word in words if word.startswith("+")),
        disabled=tuple(Plugin(name=word[1:]) for word in words if word.startswith("-")),
    )


def profile(multi_point: str = "", filters: str = "", scores: str = "") -> KubeSchedulerProfile:
    plugins = Plugins(multi_point=plugin_set(multi_point), filter=plugin_set(filters), score=plugin_set(scores))
    return KubeSchedulerProfile(plugins=plugins)


def listing(*constraints: TopologySpreadConstraint, type_: str = "List") -> PodTopologySpreadArgs:
    return PodTopologySpreadArgs(default_constraints=constraints, defaulting_type=type_)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param(PodTopologySpreadArgs(), Profile(), id="no arguments"),
        pytest.param(listing(type_="System"), Profile(), id="the built-in constraints"),
        pytest.param(listing(), Profile(defaults=(), system_defaults=False), id="an empty list"),
        pytest.param(listing(OWN), Profile(defaults=(OWN,), system_defaults=False), id="a list of constraints"),
    ],
)
def test_arguments_decide_the_default_constraints(args: PodTopologySpreadArgs, expected: Profile) -> None:
    assert configuration.profile(KubeSchedulerProfile(), args) == expected


def test_the_built_in_defaults_are_soft_constraints_on_hostname_and_zone() -> None:
    built_in = [(default.topology_key, default.max_skew, default.when_unsatisfiable) for default in Profile().defaults]
    assert built_in == [("kubernetes.io/hostname", 3, "ScheduleAnyway"), (ZONE, 5, "ScheduleAnyway")]
    assert Profile().defaults is configuration.SYSTEM_DEFAULTS


NAME = "PodTopologySpread"


@pytest.mark.parametrize(
    ("config", "filters", "scores"),
    [
        pytest.param(profile(), True, True, id="nothing is changed"),
        pytest.param(profile(f"-{NAME}"), False, False, id="disabled"),
        pytest.param(profile("-*"), False, False, id="everything is disabled"),
        pytest.param(profile("-ImageLocality"), True, True, id="another plugin is disabled"),
        pytest.param(profile(f"-* +{NAME}"), True, True, id="everything else is disabled"),
        pytest.param(profile(f"-{NAME} +{NAME}"), True, True, id="enabled again"),
        pytest.param(profile("", f"-{NAME}"), False, True, id="disabled at filter"),
        pytest.param(profile("", "-*"), False, True, id="all plugins disabled at filter"),
        pytest.param(profile("", "", f"-{NAME}"), True, False, id="disabled at score"),
        pytest.param(profile("", f"-{NAME}", "-*"), False, False, id="disabled at both"),
        pytest.param(profile("-*", f"+{NAME}"), True, False, id="enabled at filter only"),
        pytest.param(profile(f"-{NAME}", "", f"-* +{NAME}"), False, True, id="enabled at score only"),
        pytest.param(profile("", f"-* +{NAME}"), True, True, id="the only plugin at filter"),
        pytest.param(profile(f"+{NAME}", f"-{NAME}"), False, True, id="the extension point overrides multiPoint"),
    ],
)
def test_plugin_sets_decide_where_the_plugin_runs(config: KubeSchedulerProfile, *, filters: bool, scores: bool) -> None:
    decided = configuration.profile(config, listing(OWN))
    assert (decided.filters, decided.scores) == (filters, scores)
    assert decided.spreads == (filters or scores)
    assert decided.defaults == ((OWN,) if decided.spreads else ())


@pytest.mark.parametrize(
    ("scheduler_names", "expected", "errors"),
    [
        pytest.param([None], ["default-scheduler"], [], id="one without a name"),
        pytest.param(["mine"], ["mine"], [], id="one with a name"),
        pytest.param([""], [""], ["profiles[0].schedulerName: Required value"], id="one with an empty name"),
        pytest.param(
            [None, "mine"], ["", "mine"], ["profiles[0].schedulerName: Required value"], id="one of two has no name"
        ),
        pytest.param(
            ["a", "b", "a", "a"],
            ["a", "b", "a", "a"],
            [
                'profiles[2].schedulerName: Duplicate value: "profiles[0].schedulerName"',
                'profiles[3].schedulerName: Duplicate value: "profiles[2].schedulerName"',
            ],
            id="the same name",
        ),
    ],
)
def test_each_profile_needs_a_name_of_its_own(
    scheduler_names: Sequence[str | None], expected: list[str], errors: list[str]
) -> None:
    profiles = [KubeSchedulerProfile(scheduler_name=name) for name in scheduler_names]
    names = configuration.scheduler_names(profiles)
    assert list(names) == expected
    messages = [error.message for index in range(len(names)) for error in configuration.profile_errors(names, index)]
    assert messages == errors


def test_a_plugin_that_is_configured_twice_is_an_error() -> None:
    twice = KubeSchedulerProfile(plugin_config=(PluginConfig(name="A"), PluginConfig(name="B"), PluginConfig(name="A")))
    (error,) = configuration.plugin_config_errors(twice, 1)
    assert error.message == 'profiles[1].pluginConfig[2]: Duplicate value: "A"'


def constraint(max_skew: int = 1, key: str = ZONE, action: str = "DoNotSchedule") -> TopologySpreadConstraint:
    return TopologySpreadConstraint(max_skew=max_skew, topology_key=key, when_unsatisfiable=action)


SELECTING = TopologySpreadConstraint(
    max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule", label_selector=LabelSelector()
)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param(PodTopologySpreadArgs(), [], id="no arguments"),
        pytest.param(listing(constraint(), constraint(action="ScheduleAnyway")), [], id="one hard, one soft"),
        pytest.param(
            listing(type_="list"),
            ['args.defaultingType: Unsupported value: "list": supported values: "System", "List"'],
            id="no type",
        ),
        pytest.param(
            listing(constraint(), type_="System"),
            ['args.defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
            id="constraints next to the built-in ones",
        ),
        pytest.param(
            listing(constraint(), type_=""),
            ['args.defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
            id="constraints without a type",
        ),
        pytest.param(
            listing(constraint(0)),
            ["args.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"],
            id="maxSkew",
        ),
        pytest.param(
            listing(constraint(key="")),
            ["args.defaultConstraints[0].topologyKey: Required value: can not be empty"],
            id="no topologyKey",
        ),
        pytest.param(
            listing(constraint(key="/x")),
            ['args.defaultConstraints[0].topologyKey: Invalid value: "/x": prefix part must be non-empty'],
            id="a topologyKey that is not a label key",
        ),
        pytest.param(
            listing(constraint(action="")),
            ["args.defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty"],
            id="no whenUnsatisfiable",
        ),
        pytest.param(
            listing(constraint(action="Maybe")),
            [
                (
                    'args.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Maybe": supported values: '
                    '"DoNotSchedule", "ScheduleAnyway"'
                )
            ],
            id="an unknown whenUnsatisfiable",
        ),
        pytest.param(
            listing(SELECTING),
            [
                (
                    "args.defaultConstraints[0].labelSelector: Forbidden: "
                    "constraint must not define a selector, as they deduced for each pod"
                )
            ],
            id="a selector",
        ),
        pytest.param(
            listing(constraint(), constraint(3)),
            [f'args.defaultConstraints[1]: Duplicate value: "{{{ZONE}, DoNotSchedule}}"'],
            id="a duplicated constraint",
        ),
        pytest.param(
            listing(TopologySpreadConstraint(), type_="x"),
            [
                'args.defaultingType: Unsupported value: "x": supported values: "System", "List"',
                "args.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
                "args.defaultConstraints[0].topologyKey: Required value: can not be empty",
                "args.defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
            ],
            id="all errors together",
        ),
    ],
)
def test_errors_on_arguments_are_worded_as_by_kube_scheduler(args: PodTopologySpreadArgs, expected: list[str]) -> None:
    assert [error.message for error in configuration.args_errors(args, PATH)] == expected
