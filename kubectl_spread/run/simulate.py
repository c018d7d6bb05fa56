"""One run of ``simulate``: read files or a cluster, and let events happen to it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from kubectl_spread.audit.evaluation import affinity
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.audit.snapshot.templates import Refused, template_of, template_refusals
from kubectl_spread.engine.controllers import SimulatedEvent
from kubectl_spread.engine.events import (
    ROLLED,
    Add,
    Apply,
    Delete,
    DrainNodes,
    Lose,
    NodeChoice,
    Restart,
    Scale,
)
from kubectl_spread.engine.fixes import OF_TRIAL
from kubectl_spread.engine.newnodes import in_one_sentence
from kubectl_spread.engine.provisioning import Provisioning
from kubectl_spread.engine.runs import STEPS, RunResult, Simulation
from kubectl_spread.engine.world import World
from kubectl_spread.errors import CombinedError, ForbiddenError, NotFoundError, SourceError, SpreadError, UsageError
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.labels import TOPOLOGY_KEYS
from kubectl_spread.kube.api.objects import ALL_NAMESPACES, ObjectRef
from kubectl_spread.kube.api.quantity import whole_number
from kubectl_spread.kube.api.workloads import KINDS, WorkloadObject
from kubectl_spread.kube.apps import REPLICAS, workload_errors
from kubectl_spread.kube.scheduler import configuration
from kubectl_spread.phrases import listed, named, plural
from kubectl_spread.report.model import Cluster
from kubectl_spread.report.simulation import SpreadSimulation
from kubectl_spread.run import names, schedulers
from kubectl_spread.run.collect import read, read_files
from kubectl_spread.run.live import confirm_namespace, pods_of, read_fields
from kubectl_spread.run.nodeautoscalers import add_node_autoscalers
from kubectl_spread.run.options import CheckOptions, TargetVersion, split, target_for
from kubectl_spread.run.requests import NO_CLASSES, Requests
from kubectl_spread.run.run import ClusterIdentity, Console, Run, cluster_header, no_resources
from kubectl_spread.simulate import outcome
from kubectl_spread.sources.apiserver.cluster import LiveCluster
from kubectl_spread.sources.decode import resources
from kubectl_spread.sources.files import chosen, manifests
from kubectl_spread.sources.files.manifests import Loaded

_KINDS: Final = frozenset(kind for _, kind in KINDS)
_NO_BUDGETS: Final = "no PodDisruptionBudgets in what was read: a drain is not kept from evicting pods"
_NO_VOLUMES: Final = "no PersistentVolumes in what was read: volumes may keep pods where they are"
_MOST_REPLICAS: Final = 150_000
"""The most replicas of a workload: no cluster is to have more pods (kubernetes.io/docs/setup/best-practices)."""
_MOST_ADDED: Final = 10_000
"""The most nodes of one event."""
_NAMESPACE: Final = FieldPath(("metadata", "namespace"))
_RUNS: Final = 0.6
"""The part of the time for runs; what is left is for trials of fixes."""
_RUNS_WITH_NODES: Final = 0.8
"""The part of the time after which no more runs with new nodes begin."""
_MOST_RUNS_WITH_NODES: Final = 20
"""The most runs with new nodes: most of them have nodes of their own, about which everything is asked again."""
_MOST_WAITING: Final = 2_000
"""The most pods that wait for which new nodes are simulated: each is compared with each new node."""
_NO_TIME: Final = "not all fixes were tried within --seconds ({:g}): a longer time may find one"
_TOO_MANY_CHANGES: Final = "not all fixes were tried, because too many pods come and go in each trial"
_CHANGES: Final = 250_000
"""The number of times that pods may come or go in the trials of fixes if the number of runs is fixed."""


class Limits(msgspec.Struct, frozen=True):
    """How often a simulation runs.

    Attributes:
        runs: The number of runs; None for as many as there is time for.
        seconds: The time for runs and for trials of fixes; the first run may take longer.
        seed: Decides what is not determined.
        autoscale: Whether autoscalers make nodes for pods that wait.
    """

    seconds: float
    seed: int
    autoscale: bool
    runs: int | None = None


class Unread(msgspec.Struct, frozen=True):
    """Problems of lists that the user may not read, by the runs that need them.

    Attributes:
        of_evictions: The problems of runs that evict pods.
        of_scales: The problems of runs that change the number of pods.
    """

    of_evictions: Sequence[str] = ()
    of_scales: Sequence[str] = ()


_NOTHING_UNREAD: Final = Unread()


class SimulateRun(Run, kw_only=True):
    """A run whose snapshot has all pods, nodes and workloads, for a simulation.

    Attributes:
        target_version: The Kubernetes whose rules decide.
        reported: The workloads that are reported.
        not_applied: The number of objects of each kind in manifests that are not simulated.
        unread: The lists that the user may not read, and that only some runs need.
        unknown_namespace: The error that nothing of the namespace was read, where there are other ones; "" for none.
    """

    target_version: TargetVersion
    reported: Scope
    not_applied: Counter[str] = msgspec.field(default_factory=Counter)
    unread: Unread = _NOTHING_UNREAD
    unknown_namespace: str = ""

    def note_nothing(self) -> None:
        """Note that there is no workload in scope.

        Raises:
            NotFoundError: There is no such namespace.
        """
        if self.unknown_namespace:
            raise NotFoundError(self.unknown_namespace)
        self.notes.append(no_resources(self.reported.namespace))

    def report(self, events: Sequence[tuple[str, str]], limits: Limits, console: Console) -> SpreadSimulation:
        """Return the report on events, each of which is an option and its value.

        Raises:
            SpreadError: An event names what is not there, or makes no sense.
        """
        simulation = Simulation(self.world(), [*self._events(events)], limits.seed, in_one_sentence)
        drains = any(isinstance(event, DrainNodes) for event in simulation.events)
        self.problems += self.unread.of_evictions if drains else ()
        scales = any(isinstance(event, Scale | Apply) for event in simulation.events)
        self.problems += self.unread.of_scales if scales else ()
        if drains and self.options.filename and not self.snapshot.budgets.read:
            self.notes.append(_NO_BUDGETS)
        clock = _Clock(limits, console)
        runs = simulation.fixed(limits.runs) if limits.runs else simulation.runs(clock.proceed)
        grown: list[RunResult] = []
        if limits.autoscale and self.snapshot.node_autoscalers.known and self._asks_for_nodes(runs):
            makes, number = simulation.with_maker(Provisioning), min(len(runs), _MOST_RUNS_WITH_NODES)
            grown = makes.fixed(number) if limits.runs else makes.runs(lambda done: clock.repeats(done, number))
        report = outcome.report(
            simulation,
            runs,
            self.header(),
            self.in_scope,
            self.skipped,
            flags=self.options.command_flags,
            proceed=clock.has_time_for_fixes,
            not_applied=self.not_applied,
            grown=grown,
        )
        if clock.left_fixes_out:
            self.notes.append(_TOO_MANY_CHANGES if limits.runs else _NO_TIME.format(limits.seconds))
        self.problems += map(outcome.NOT_SIMULATED.format, report.summary.unknown)
        if not report.workloads:
            self.note_nothing()
        return report

    def _asks_for_nodes(self, runs: Sequence[RunResult]) -> bool:
        """Tell whether a pod in scope waits, and not too many pods of the cluster do."""
        waiting = max(sum(result.pending for result in each.workloads.values()) for each in runs)
        reported = any(result.pending for each in runs for ref, result in each.workloads.items() if self.in_scope(ref))
        return reported and waiting <= _MOST_WAITING

    def world(self) -> World:
        """Return the cluster for simulations.

        Raises:
            SourceError: A workload is too large.
        """
        for record in self.snapshot.ownership.records:
            if (record.replicas or 0) > _MOST_REPLICAS:
                raise SourceError(_too_many(record.ref))
        return World(self.snapshot, self.target_version.behaviour, self.identity.read_at or self.snapshot.read_at)

    def header(self) -> Cluster:
        """Return the cluster as reports name it."""
        return cluster_header(self, self.target_version, "listed", self.reported.namespace)

    def in_scope(self, workload: ObjectRef) -> bool:
        """Tell whether a workload is reported."""
        return self.reported.covers(workload.namespace)

    def _events(self, events: Sequence[tuple[str, str]]) -> Iterator[SimulatedEvent]:
        for option, value in events:
            match option:
                case "lose":
                    yield from map(Lose, node_choices("--lose", value))
                case "delete":
                    yield from map(Delete, node_choices("--delete", value))
                case "drain":
                    yield from map(DrainNodes, node_choices("--drain", value))
                case "add":
                    yield _addition(value)
                case "restart":
                    yield from (Restart(self._workload(name)) for name in split([value]))
                case "scale":
                    yield from (self._scale(assignment) for assignment in split([value]))
                case "apply":
                    yield from self._manifests(value)
                case _:
                    raise ValueError(option)

    def _scale(self, assignment: str) -> Scale:
        name, _, text = assignment.rpartition("=")
        replicas = whole_number(text, _MOST_REPLICAS)
        if not name or replicas is None:
            example = f"write deploy/web=12; at most {_MOST_REPLICAS:,}"
            raise UsageError(f'--scale: "{assignment}" is not TYPE/NAME=REPLICAS ({example})')
        return Scale(self._workload(name), replicas)

    def _workload(self, name: str) -> ObjectRef:
        """Return the workload that a word names.

        Raises:
            NotFoundError: There is no such workload in scope.
            UsageError: There are several.
        """
        refs = self.named((name,))
        if len(refs) > 1:
            namespaces = listed([ref.namespace for ref in refs])
            raise UsageError(f'"{name}" is in namespaces {namespaces}: choose one with -n')
        return refs[0]

    def named(self, arguments: tuple[str, ...], *, pods: bool = False) -> list[ObjectRef]:
        """Return the workloads that arguments name, in order, and the pods if these may be named.

        Raises:
            NotFoundError: There is no workload of a name in scope.
            UsageError: The arguments name no workloads.
        """
        snapshot = self.snapshot
        targets = names.parse(arguments)
        scope, snapshot.scope = snapshot.scope, replace(snapshot.scope, targets=targets)
        names.resolve(snapshot)
        targets, snapshot.scope = snapshot.scope.targets, scope
        objects = [ref for ref in snapshot.objects() if self.in_scope(ref) and (pods or ref.kind != "Pod")]
        for target in targets:
            if target.name and not any(target.includes(ref) for ref in objects):
                raise NotFoundError(names.missing(target, snapshot, self.reported.namespace))
        return sorted(ref for ref in objects if any(target.includes(ref) for target in targets))

    def roots(self, arguments: tuple[str, ...]) -> list[ObjectRef]:
        """Return the root workloads of the pods and workloads that arguments name, in order.

        Raises:
            NotFoundError: No object in scope has a name of the arguments.
            UsageError: The arguments name no pods or workloads.
        """
        snapshot = self.snapshot
        pods = {pod.ref.first_copy: snapshot.workload(pod) for pod in snapshot.pods}
        return sorted({pods.get(ref) or snapshot.ownership.owners(ref)[-1] for ref in self.named(arguments, pods=True)})

    def _manifests(self, path: str) -> Iterator[Apply]:
        """Yield the workloads of a file.

        Raises:
            SourceError: It cannot be read, or has no workload.
            NotFoundError: The namespace of a workload that names none is not in the capture.
            CombinedError: The API server would refuse some of them, or they are too large.
        """
        namespace = self.reported.namespace or manifests.NAMESPACE
        reading = manifests.ManifestReading(chosen.choose((path,), recursive=False), namespace=namespace)
        errors: list[SpreadError] = []
        applied: list[Apply] = []
        objects = [*reading.objects]
        created = {loaded.object.metadata.name for loaded in objects if loaded.kind == "Namespace"}
        for loaded in objects:
            metadata = loaded.object.metadata
            if self.unknown_namespace and not loaded.names_namespace and self.options.namespace not in created:
                raise NotFoundError(f"{self.unknown_namespace} (for a new one, set metadata.namespace in {path})")
            if metadata.namespace and (text := self._refused_namespace(metadata.namespace)):
                errors.append(SourceError(f"{loaded.position_of(_NAMESPACE)}: {text}"))
            elif isinstance(loaded.object, WorkloadObject):
                apply = Apply(ObjectRef(metadata.namespace, loaded.kind, metadata.name), loaded.object)
                errors += (SourceError(f"{loaded.position_of(at)}: {text}") for at, text in self.refusals(apply))
                applied.append(apply)
            else:
                self.not_applied[loaded.kind] += 1
        self.not_applied += reading.other_kinds
        if reading.errors or errors:
            raise CombinedError([*reading.errors, *errors])
        if not applied:
            raise SourceError(f"--apply: {path} has no workload ({listed(sorted(_KINDS), len(_KINDS))})")
        yield from applied

    def _refused_namespace(self, namespace: str) -> str:
        """Return why an object of a namespace cannot be applied; "" if it can.

        Source: kubernetes v1.37.1 staging/src/k8s.io/cli-runtime/pkg/resource/visitor.go, RequireNamespace.
        """
        if self.options.namespace and namespace != self.options.namespace:
            return (
                f'the namespace from the provided object "{namespace}" does not match the namespace '
                f""""{self.options.namespace}". You must pass '--namespace={namespace}' to perform this operation."""
            )
        if not self.in_scope(ObjectRef(namespace, "", "")):
            return f"namespace {namespace} is not reported: write -n {namespace}"
        return ""

    def refusals(self, apply: Apply) -> Iterator[tuple[FieldPath, str]]:
        """Yield why a workload cannot be applied, each with the path of the field."""
        ref, workload = apply.workload, apply.manifest
        if ref.kind not in ROLLED:
            return
        name = named(ref.kind, ref.name)
        for error in workload_errors(workload, self.target_version.behaviour, self.snapshot.workload_objects.get(ref)):
            yield error.path, f"the API server would refuse {name}: {error.message}"
        for refusal in template_refusals(template_of(ref, workload, None, ""), self.target_version.behaviour):
            what = name if refusal.refused is Refused.TEMPLATE else f"the pods of {name}"
            for message in refusal.messages:
                yield refusal.path, f"the API server would refuse {what}: {message}"
        if (workload.replicas or 0) > _MOST_REPLICAS:
            yield REPLICAS, _too_many(ref)


def _too_many(workload: ObjectRef) -> str:
    name = named(workload.kind, workload.name)
    return f"{name} has more than {_MOST_REPLICAS:,} replicas, which is too many to simulate"


class _Clock:
    """The time that the runs of a simulation and the trials of fixes may take together.

    Attributes:
        left_fixes_out: Whether there was no time for a fix.
    """

    def __init__(self, limits: Limits, console: Console) -> None:
        self._limits, self._console = limits, console
        self._begin = time.monotonic()
        self._of_run = 0.0
        self.left_fixes_out = False

    def proceed(self, runs: int) -> bool:
        """Tell whether there is time for more runs than there were."""
        self._of_run = (time.monotonic() - self._begin) / runs
        self._console.progress(f"{plural(runs, 'run')} simulated")
        more = next((step for step in STEPS if step > runs), runs)
        return more * self._of_run < _RUNS * self._limits.seconds

    def repeats(self, done: int, runs: int) -> bool:
        """Tell whether there is time for more runs with new nodes, of which ``runs`` are wanted."""
        self._console.progress(f"{plural(done, 'run')} with new nodes simulated")
        return done < runs and time.monotonic() - self._begin < _RUNS_WITH_NODES * self._limits.seconds

    def has_time_for_fixes(self, changes: int) -> bool:
        """Tell whether another fix may be tried; a fixed number of runs has trials with a fixed number of changes."""
        end = time.monotonic() - self._begin + OF_TRIAL * self._of_run
        ends = changes >= _CHANGES if self._limits.runs else end > self._limits.seconds
        self.left_fixes_out = self.left_fixes_out or ends
        return not self.left_fixes_out


def node_choices(option: str, value: str) -> Iterator[NodeChoice]:
    """Yield the nodes that a value names: ``KEY=VALUE`` or names, several after commas.

    Raises:
        UsageError: The value names nothing, or mixes both.
    """
    by_key: dict[str, list[str]] = {}
    for word in split([value]):
        key, separator, label = word.partition("=")
        if separator and not key:
            raise UsageError(f'{option}: "{word}" is not KEY=VALUE or the name of a node (write zone=a)')
        if separator:
            by_key.setdefault(TOPOLOGY_KEYS.get(key, key), []).append(label)
        else:
            by_key.setdefault("", []).append(word)
    if not by_key:
        raise UsageError(f"{option}: the value is empty")
    if "" in by_key and len(by_key) > 1:
        raise UsageError(f'{option}: "{value}" mixes KEY=VALUE and names: write zone=a,zone=b, or repeat {option}')
    for key, values in by_key.items():
        name = next((short for short, full in TOPOLOGY_KEYS.items() if full == key), key)
        written = f"{name}={values[0]}" if key else ""
        yield NodeChoice(key, tuple(dict.fromkeys(values)), written)


def _addition(value: str) -> Add:
    nodes, separator, text = value.rpartition(":")
    number = whole_number(text, _MOST_ADDED) if separator else 1
    if not number:
        raise UsageError(f'--add: "{value}" is not KEY=VALUE:NUMBER (write zone=a:3; at most {_MOST_ADDED:,})')
    (choice, *others) = node_choices("--add", nodes if separator else value)
    if others or len(choice.values) > 1:
        raise UsageError(f'--add: "{value}" names several kinds of nodes: repeat --add')
    return Add(choice, number)


def collect(parameters: Mapping[str, object], console: Console, written: list[Loaded] | None = None) -> SimulateRun:
    """Read files or a cluster, as the options of the command say.

    Args:
        parameters: The values of the options, by parameter name.
        console: Prints progress and notes while a cluster is read.
        written: Takes the manifests of workloads that are not stored, instead of the run. Files with only such
            manifests are for the cluster, which is read too. None where manifests are part of the run.

    Raises:
        SpreadError: Nothing can be simulated.
    """
    return read(parameters, console, partial(_from_files, written=written), partial(_from_cluster, written=written))


def _profiles(options: CheckOptions) -> Mapping[str, configuration.Profile]:
    return schedulers.profiles(options) if options.scheduler_config else configuration.SYSTEM


def _from_files(options: CheckOptions, written: list[Loaded] | None) -> SimulateRun | None:
    """Read files; None for files that have nothing but manifests, which are ``written`` then."""
    target_version = target_for(options, None)
    snapshot = Snapshot(Scope(), detailed=True, schedulers=_profiles(options))
    reading = read_files(options, snapshot, services=True, written=written)
    errors: list[SpreadError] = [*reading.errors]
    if written and not (errors or snapshot.nodes or snapshot.pods):
        return None
    if not snapshot.nodes:
        # A file that could not be read may have them.
        raise CombinedError(errors or [SourceError("there are no nodes in the files: capture nodes as well")])
    if unread := unread_owners(snapshot):
        raise CombinedError([*errors, SourceError(f"{unread}: capture {_RESOURCES} as well")])
    schedulers.apply(snapshot, schedulers.OWNER_KINDS)
    unread_volumes = any(pod.claims for pod in snapshot.pods) and not snapshot.volumes.any
    return SimulateRun(
        options=options,
        snapshot=snapshot,
        target_version=target_version,
        reported=options.scope(ALL_NAMESPACES),
        identity=ClusterIdentity(uid=snapshot.cluster_uid),
        skipped=snapshot.skipped + reading.skipped,
        problems=[*map(str, reading.errors)],
        notes=[*target_version.warnings, *([_NO_VOLUMES] if unread_volumes else []), *reading.notes],
        unknown_namespace=reading.unknown_namespace(options.namespace),
    )


_RESOURCES: Final = "deployments,replicasets,statefulsets,daemonsets,jobs"


def unread_owners(snapshot: Snapshot) -> str:
    """Return an error about owners of pods that were not read, so that nothing is known of them; "" without any."""
    owners: dict[ObjectRef, None] = {}
    for pod in snapshot.pods:
        owner = pod.pod_class.owner
        if owner is not None and owner.kind in _KINDS:
            ref = ObjectRef(pod.namespace, owner.kind, owner.name)
            if snapshot.ownership.record(ref) is None:
                owners[ref] = None
    if not owners:
        return ""
    owner_names = [named(ref.kind, ref.name) for ref in sorted(owners)]
    return f"the owners of pods are missing ({listed(owner_names)})"


def _from_cluster(options: CheckOptions, cluster: LiveCluster, written: list[Loaded] | None) -> SimulateRun:
    """Read a cluster: all pods where the user may list them, because pods of all namespaces take room on nodes.

    Manifests that are ``written`` for it get its namespace, as with ``kubectl apply``, if they name none.
    """
    scope = options.scope(cluster.namespace)
    if written and not scope.all_namespaces:
        written[:] = [loaded.with_namespace(scope.namespace) for loaded in written]
    profiles = _profiles(options)
    problems: list[str] = []
    requests = Requests(cluster, options, Scope(), profiles, detailed=True)
    requests.send()
    target_version = target_for(options, requests.version.result().behaves_as)
    try:
        snapshot = requests.pods.result()
    except ForbiddenError as error:
        if scope.all_namespaces:
            raise ForbiddenError(f"{error} (name a namespace that you may list with -n)") from None
        problems.append(f"{error}: the room that pods of other namespaces take is not known")
        requests = Requests(cluster, options, Scope(namespace=scope.namespace), profiles, detailed=True)
        requests.send()
        snapshot = pods_of(requests, scope)
    unread = _add_others(requests, snapshot, problems)
    # New nodes are not simulated: what is not known of them decides about no pod.
    about_new_nodes, _ = add_node_autoscalers(cluster, snapshot, alone=False)
    missing = unread_owners(snapshot)
    if not scope.all_namespaces and not any(pod.namespace == scope.namespace for pod in snapshot.pods):
        confirm_namespace(cluster, scope.namespace)
    return SimulateRun(
        options=options,
        target_version=target_version,
        reported=scope,
        problems=[*target_version.problems, *filter(None, [missing]), *problems],
        notes=[*target_version.warnings, *about_new_nodes],
        unread=unread,
        **read_fields(cluster, requests, snapshot),
    )


def _creates_claims(workload: WorkloadObject) -> bool:
    """Tell whether claims are created for the pods of a workload."""
    return bool(workload.claims.templates) or workload.has_ephemeral_volumes


def _add_others(requests: Requests, snapshot: Snapshot, problems: list[str]) -> Unread:
    """Add nodes and everything that decides where pods go to a snapshot.

    A list that the user may not read is a problem, unless no pod depends on it.

    Returns:
        The problems of runs that evict pods, or change their number.

    Raises:
        SourceError: Nodes cannot be read, or anything else for another reason than a missing permission.
    """
    try:
        requests.add(resources.NODES, snapshot)
    except ForbiddenError as error:
        raise ForbiddenError(f"{error}: a simulation needs nodes") from None
    owners = {pod.pod_class.owner.kind for pod in snapshot.pods if pod.pod_class.owner}
    harmless, of_evictions, of_scales = list[str](), list[str](), list[str]()
    for resource in resources.WORKLOADS:
        matters = names.BETWEEN.get(resource.kind, resource.kind) in owners
        with requests.optional(problems if matters else harmless, "its pods are not replaced in the simulation"):
            requests.add_workloads(resource, snapshot)
    with requests.optional(problems, "default constraints are not known"):
        requests.add(resources.SERVICES, snapshot)
    with requests.optional(harmless, "volumes may keep pods where they are"):
        # A pod that is placed, and whose volumes are not known, is a problem of the simulation.
        requests.add_volumes(snapshot)
    if snapshot.volumes.unbound or any(map(_creates_claims, snapshot.workload_objects.values())):
        with requests.optional(harmless, NO_CLASSES):
            requests.add_storage_classes(snapshot)
    if affinity.wants_namespaces({pod.pod_class for pod in snapshot.pods}, snapshot):
        with requests.optional(problems, "affinity terms that select namespaces by labels are not known"):
            requests.add(resources.NAMESPACES, snapshot)
    with requests.optional(harmless, "priorities of changed pod templates are not known"):
        requests.add(resources.PRIORITIES, snapshot)
    with requests.optional(of_scales, "an autoscaler may change the number of pods again"):
        requests.add(resources.AUTOSCALERS, snapshot)
    with requests.optional(of_evictions, "evictions are not kept within budgets"):
        requests.add_budgets(snapshot)
    schedulers.apply(snapshot, ())
    return Unread(of_evictions, of_scales)
