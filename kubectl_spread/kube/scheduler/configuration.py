"""Scheduler configuration: which spread constraints does each scheduler respect, and which does it add?

Source: kubernetes v1.37.1 staging/src/k8s.io/kube-scheduler/config/v1/types.go and types_pluginargs.go,
pkg/scheduler/apis/config/validation and pkg/scheduler/apis/config/v1, setDefaults_KubeSchedulerProfile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kubectl_spread.kube.api import content, field
from kubectl_spread.kube.api.field import FieldError, FieldPath
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.types import Int32, Message, TopologySpreadConstraint, WhenUnsatisfiable

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"
PLUGIN: Final = "PodTopologySpread"
DEFAULT_SCHEDULER: Final = "default-scheduler"

SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway"),
)
"""The default constraints of a scheduler whose configuration has none."""
_SYSTEM: Final = "System"
_LIST: Final = "List"
_ALL: Final = "*"
_NOTHING: Final = msgspec.Raw(b"null")


class Plugin(Message, frozen=True):
    """A plugin by its name, or ``*`` for all of them."""

    name: str = ""
    weight: Int32 | None = None


class PluginSet(Message, frozen=True):
    """The plugins of one extension point that are enabled or disabled."""

    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


class Plugins(Message, frozen=True):
    """The plugins that are enabled or disabled, by extension point; ``multi_point`` stands for all of them."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    pod_group_post_filter: PluginSet = PluginSet()


class PluginConfig(Message, frozen=True):
    """The arguments of one plugin, undecoded."""

    name: str = ""
    args: msgspec.Raw = _NOTHING


class KubeSchedulerProfile(Message, frozen=True):
    """One of the schedulers that a kube-scheduler runs; ``scheduler_name`` is None where it is absent."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class KubeSchedulerConfiguration(Message, frozen=True):
    """The configuration of a kube-scheduler; the profiles and the fields that we do not read are undecoded."""

    api_version: str = ""
    kind: str = ""
    profiles: tuple[msgspec.Raw, ...] = ()
    parallelism: msgspec.Raw = _NOTHING
    leader_election: msgspec.Raw = _NOTHING
    client_connection: msgspec.Raw = _NOTHING
    enable_profiling: msgspec.Raw = _NOTHING
    enable_contention_profiling: msgspec.Raw = _NOTHING
    percentage_of_nodes_to_score: msgspec.Raw = _NOTHING
    pod_initial_backoff_seconds: msgspec.Raw = _NOTHING
    pod_max_backoff_seconds: msgspec.Raw = _NOTHING
    extenders: msgspec.Raw = _NOTHING
    delay_cache_until_active: msgspec.Raw = _NOTHING


class PodTopologySpreadArgs(Message, frozen=True):
    """The arguments of the PodTopologySpread plugin."""

    api_version: str = ""
    kind: str = ""
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = ""


class Profile(msgspec.Struct, frozen=True):
    """The part of a scheduler's configuration that concerns spread constraints.

    Attributes:
        filters: Whether the scheduler respects hard constraints.
        scores: Whether the scheduler respects soft constraints.
        defaults: The constraints that it gives to pods without constraints.
        system_defaults: Whether the defaults are the built-in ones, which allow nodes without their topology keys.
    """

    filters: bool = True
    scores: bool = True
    defaults: tuple[TopologySpreadConstraint, ...] = SYSTEM_DEFAULTS
    system_defaults: bool = True

    @property
    def spreads(self) -> bool:
        """Whether the scheduler respects any spread constraints."""
        return self.filters or self.scores

    def respects(self, *, hard: bool) -> bool:
        """Tell whether the scheduler respects hard, or soft, constraints."""
        return self.filters if hard else self.scores


WITHOUT_DEFAULTS: Final[Mapping[str, Profile]] = {DEFAULT_SCHEDULER: Profile(defaults=(), system_defaults=False)}
"""The assumption where default constraints are not requested: one scheduler, which has none."""
SYSTEM: Final[Mapping[str, Profile]] = {DEFAULT_SCHEDULER: Profile()}
"""A kube-scheduler with its default configuration."""


def profile(written: KubeSchedulerProfile, args: PodTopologySpreadArgs) -> Profile:
    """Return the meaning of a valid profile; a scheduler that does not spread has no default constraints.

    Source: kubernetes v1.37.1 pkg/scheduler/framework/plugins/podtopologyspread/plugin.go, New.
    """
    plugins = written.plugins
    filters, scores = _is_enabled(plugins, plugins.filter), _is_enabled(plugins, plugins.score)
    if not filters and not scores:
        return Profile(filters=False, scores=False, defaults=(), system_defaults=False)
    system = (args.defaulting_type or _SYSTEM) == _SYSTEM
    defaults = SYSTEM_DEFAULTS if system else args.default_constraints
    return Profile(filters=filters, scores=scores, defaults=defaults, system_defaults=system)


def _is_enabled(plugins: Plugins, own: PluginSet) -> bool:
    """Tell whether the plugin runs at an extension point, whose own settings override those of multiPoint.

    Source: kubernetes v1.37.1 pkg/scheduler/apis/config/v1/default_plugins.go, mergePluginSet, and
    pkg/scheduler/framework/runtime/framework.go, expandMultiPointPlugins.
    """
    everywhere = plugins.multi_point
    if _has(own.enabled, PLUGIN):
        return True
    if _has(own.disabled, PLUGIN, _ALL):
        return False
    return _has(everywhere.enabled, PLUGIN) or not _has(everywhere.disabled, PLUGIN, _ALL)


def _has(plugins: Sequence[Plugin], *names: str) -> bool:
    return any(plugin.name in names for plugin in plugins)


def scheduler_names(profiles: Sequence[KubeSchedulerProfile]) -> tuple[str, ...]:
    """Return the names of the profiles; a single profile has a default name.

    Source: kubernetes v1.37.1 pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_KubeSchedulerConfiguration.
    """
    default = DEFAULT_SCHEDULER if len(profiles) == 1 else ""
    return tuple(default if profile.scheduler_name is None else profile.scheduler_name for profile in profiles)


def profile_errors(names: Sequence[str], index: int) -> Iterator[FieldError]:
    """Yield the errors of the name of one profile: it is missing, or an earlier profile has it.

    Source: kubernetes v1.37.1 pkg/scheduler/apis/config/validation/validation.go, ValidateKubeSchedulerConfiguration.
    """
    path = FieldPath(("profiles", index, "schedulerName"))
    if not names[index]:
        yield FieldError(path, f"{path}: Required value")
    earlier = [number for number in range(index) if names[number] == names[index]]
    if earlier:
        yield field.duplicate(path, f"profiles[{earlier[-1]}].schedulerName")


def plugin_config_errors(written: KubeSchedulerProfile, index: int) -> Iterator[FieldError]:
    """Yield an error for each plugin that an earlier item of pluginConfig configures.

    Source: kubernetes v1.37.1 pkg/scheduler/apis/config/validation/validation.go, validatePluginConfig.
    """
    seen: set[str] = set()
    for number, config in enumerate(written.plugin_config):
        if config.name in seen:
            yield field.duplicate(FieldPath(("profiles", index, "pluginConfig", number)), config.name)
        seen.add(config.name)


def args_errors(args: PodTopologySpreadArgs, path: FieldPath) -> Iterator[FieldError]:
    """Yield the errors of the plugin's arguments.

    Source: kubernetes v1.37.1 pkg/scheduler/apis/config/validation/validation_pluginargs.go,
    ValidatePodTopologySpreadArgs.
    """
    type_ = args.defaulting_type or _SYSTEM
    if type_ not in {_SYSTEM, _LIST}:
        yield field.unsupported(path / "defaultingType", type_, (_SYSTEM, _LIST))
    if type_ == _SYSTEM and args.default_constraints:
        yield field.invalid(path / "defaultingType", type_, "when .defaultConstraints are not empty")
    for index, constraint in enumerate(args.default_constraints):
        constraint_path = path / "defaultConstraints" / index
        yield from _constraint_errors(constraint, constraint_path)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        earlier = args.default_constraints[:index]
        if any(pair == (before.topology_key, before.when_unsatisfiable) for before in earlier):
            yield field.duplicate(constraint_path, f"{{{pair[0]}, {pair[1]}}}")


def _constraint_errors(constraint: TopologySpreadConstraint, path: FieldPath) -> Iterator[FieldError]:
    if constraint.max_skew <= 0:
        yield field.invalid(path / "maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        yield field.required(path / "topologyKey", "can not be empty")
    else:
        for detail in content.label_key_problems(constraint.topology_key):
            yield field.invalid(path / "topologyKey", constraint.topology_key, detail)
    if not constraint.when_unsatisfiable:
        yield field.required(path / "whenUnsatisfiable", "can not be empty")
    elif constraint.when_unsatisfiable not in tuple(WhenUnsatisfiable):
        yield field.unsupported(path / "whenUnsatisfiable", constraint.when_unsatisfiable, WhenUnsatisfiable)
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        yield field.forbidden(path / "labelSelector", detail)
