"""Read files or a cluster, as the options say, and evaluate the pods or count those of each domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from kubectl_spread.audit.evaluation.evaluate import evaluate
from kubectl_spread.audit.snapshot.records import Manifest
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.diagnosis import needs
from kubectl_spread.errors import CombinedError, NotFoundError, SourceError
from kubectl_spread.kube.api.objects import ALL_NAMESPACES
from kubectl_spread.kube.api.types import Pod
from kubectl_spread.kube.api.workloads import KINDS, WorkloadObject
from kubectl_spread.kube.autoscaling import HorizontalPodAutoscaler
from kubectl_spread.kube.custom import CustomObject
from kubectl_spread.kube.disruption import PodDisruptionBudget
from kubectl_spread.phrases import plural, some
from kubectl_spread.report import model
from kubectl_spread.run import hints, names, schedulers
from kubectl_spread.run.options import CheckOptions, check_options, options_of, target_for
from kubectl_spread.run.run import CheckRun, Console, Run

if TYPE_CHECKING:
    from kubectl_spread.sources.apiserver.cluster import LiveCluster
    from kubectl_spread.sources.files.manifests import Loaded, ManifestReading

_NO_BUDGETS: Final = "no PodDisruptionBudgets in what was read: their minimum is unknown (capture them as well)"
_WITH_PODS: Final = frozenset({"Pod", *(kind for _, kind in KINDS)})


def collect(parameters: Mapping[str, object], console: Console) -> CheckRun:
    """Read files or a cluster, as a command's options say, and evaluate the pods.

    Args:
        parameters: The values of the options of ``cli.options``, by parameter name.
        console: Prints progress and notes while a cluster is read.

    Raises:
        SpreadError: Nothing can be evaluated.
    """
    run = read(parameters, console, from_files, _from_cluster)
    options = run.options
    hints.add(run)
    if options.needs_nodes:
        run.unknown = needs.unknown_resources(run.audit, explaining=options.explaining)
        run.problems += run.unknown
    return run


AnyRun = TypeVar("AnyRun", bound=Run)


def read(
    parameters: Mapping[str, object],
    console: Console,
    from_files: Callable[[CheckOptions], AnyRun | None],
    from_cluster: Callable[[CheckOptions, LiveCluster], AnyRun],
) -> AnyRun:
    """Read files or a cluster, as a command's options say.

    Args:
        parameters: The values of the options, by parameter name.
        console: Prints progress and notes while a cluster is read.
        from_files: Reads the files; None where these are for the cluster, which is read then.
        from_cluster: Reads the cluster.

    Raises:
        SpreadError: Nothing can be read.
    """
    options = check_options(parameters)
    if options.reads_files and (run := from_files(options)) is not None:
        return run
    # Input from files needs neither urllib3 nor protobuf.
    from kubectl_spread.sources.apiserver.cluster import LiveCluster  # noqa: PLC0415
    from kubectl_spread.sources.auth.connection import ConnectionFlags  # noqa: PLC0415

    flags = options_of(parameters, ConnectionFlags)
    with closing(LiveCluster.connect(flags, console.note, console.progress)) as cluster:
        return from_cluster(options, cluster)


def read_files(
    options: CheckOptions, snapshot: Snapshot, *, services: bool, written: list[Loaded] | None = None
) -> ManifestReading:
    """Read the objects of ``--filename`` or ``--kustomize`` into a snapshot.

    Args:
        options: The options of the command.
        snapshot: The snapshot.
        services: Whether Services are read.
        written: Takes the manifests of workloads that are not stored, and of what limits these, instead of the
            snapshot; None for no such list.

    Raises:
        SourceError: A path cannot be read at all.
    """
    from kubectl_spread.sources.files import chosen, manifests  # noqa: PLC0415 - a live check does not need files

    files = chosen.choose(options.filename, recursive=options.recursive, kustomize=options.kustomize)
    reading = manifests.ManifestReading(files, namespace=options.namespace or manifests.NAMESPACE, services=services)
    if written is not None:
        reading.objects = _aside(reading.objects, written)
    _add_objects(reading, snapshot)
    snapshot.date()
    return reading


def _aside(objects: Iterator[Loaded], written: list[Loaded]) -> Iterator[Loaded]:
    """Yield objects without the manifests of workloads, which are put aside; so are those of what limits them."""
    for loaded in objects:
        is_workload = loaded.is_manifest and isinstance(loaded.object, WorkloadObject)
        if is_workload or isinstance(loaded.object, PodDisruptionBudget | HorizontalPodAutoscaler):
            written.append(loaded)
        if not is_workload:
            yield loaded


def _from_cluster(options: CheckOptions, cluster: LiveCluster) -> CheckRun:
    from kubectl_spread.run.live import LiveRun  # noqa: PLC0415 - input from files needs no protobuf

    return LiveRun(options, cluster).collect()


def from_files(options: CheckOptions) -> CheckRun:
    """Read and evaluate the files of ``--filename`` or ``--kustomize``, without any cluster.

    Raises:
        UsageError: Options contradict each other.
        SourceError: A path cannot be read at all.
    """
    target_version = target_for(options, None)
    profiles = schedulers.profiles(options)
    snapshot = Snapshot(options.scope(ALL_NAMESPACES), detailed=options.explaining, schedulers=profiles)
    reading = read_files(options, snapshot, services=snapshot.default_selectors.enabled)
    if text := reading.unknown_namespace(options.namespace):
        raise CombinedError([*reading.errors, NotFoundError(text)])
    notes = [*target_version.warnings, *names.resolve(snapshot)]
    unknown_defaults = schedulers.apply(snapshot, schedulers.OWNER_KINDS)
    missing_nodes = hints.unknown_nodes(snapshot) if snapshot.nodes else ""
    nodes: model.NodesKnown = "listed" if snapshot.nodes and not missing_nodes else "none"
    audit = evaluate(snapshot, target_version.facts(options), nodes=nodes)
    notes += (*reading.notes, *_patches_left_out(reading), *hints.capture_hints(audit))
    problems = [*(str(error) for error in reading.errors), *unknown_defaults, *filter(None, [missing_nodes])]
    templates = hints.unevaluated(audit)
    problems += [template.message for template in templates]
    problems += [names.missing(target, snapshot, options.namespace, "the files") for target in snapshot.unmet()]
    return CheckRun(
        options=options,
        snapshot=snapshot,
        audit=audit,
        target_version=target_version,
        nodes=nodes,
        skipped=snapshot.skipped + reading.skipped + Counter(unevaluated=len(templates)),
        unchecked=[*hints.malformed_objects(reading.errors), *templates],
        problems=problems,
        notes=notes,
        without_pods=_without_pods(reading),
    )


def collect_domains(parameters: Mapping[str, object], console: Console, *, with_budgets: bool) -> Run:
    """Read files or a cluster, as a command's options say.

    Args:
        parameters: The values of the options, by parameter name.
        console: Prints progress and notes while a cluster is read.
        with_budgets: Whether PodDisruptionBudgets are read.

    Raises:
        SpreadError: The domains cannot be counted.
    """

    def from_cluster(options: CheckOptions, cluster: LiveCluster) -> Run:
        from kubectl_spread.run.live import read_domains  # noqa: PLC0415 - input from files needs no protobuf

        return read_domains(options, cluster, with_budgets=with_budgets)

    return read(parameters, console, partial(_domains_of_files, with_budgets=with_budgets), from_cluster)


def _domains_of_files(options: CheckOptions, *, with_budgets: bool) -> Run:
    """Read the files of ``--filename``.

    Raises:
        SourceError: A path cannot be read at all.
        CombinedError: The files have no nodes.
    """
    snapshot = Snapshot(replace(options.scope(ALL_NAMESPACES), labels=()))
    reading = read_files(options, snapshot, services=False)
    if not snapshot.nodes:
        missing = SourceError("there are no nodes in the files, and only nodes tell the domains: capture nodes as well")
        raise CombinedError([*reading.errors, missing])
    if text := reading.unknown_namespace(options.namespace):
        raise CombinedError([*reading.errors, NotFoundError(text)])
    return Run(
        options=options,
        snapshot=snapshot,
        skipped=snapshot.skipped + reading.skipped,
        problems=[*map(str, reading.errors), *filter(None, [hints.unknown_nodes(snapshot)])],
        notes=[*([_NO_BUDGETS] if with_budgets and not snapshot.budgets.read else []), *reading.notes],
    )


def _add_objects(reading: ManifestReading, snapshot: Snapshot) -> None:
    """Add the objects of a reading to a snapshot; of objects that are equal or in conflict, only the first is added."""
    for loaded, copy in _distinct(reading):
        manifest = (
            Manifest(loaded.position, loaded.position_of, loaded.unknown_fields, copy) if loaded.is_manifest else None
        )
        match loaded.object:
            case Pod():
                snapshot.add_pod(loaded.object, manifest)
            case WorkloadObject():
                snapshot.add_workload(loaded.kind, loaded.object, manifest)
            case CustomObject():
                snapshot.add_custom(loaded.kind, loaded.object, manifest)
            case _:
                snapshot.add(loaded.object)


def _distinct(reading: ManifestReading) -> Iterator[tuple[Loaded, int]]:
    """Yield the objects of a reading without repetitions, and the number of earlier manifests of the same name."""
    from kubectl_spread.sources.files.manifests import Repeats  # noqa: PLC0415 - a live check does not need files

    repeats = Repeats()
    for loaded in reading.objects:
        try:
            copy = repeats.copy_of(loaded)
        except SourceError as error:
            reading.skipped["conflicting"] += 1
            reading.errors.append(error)
            continue
        if copy is None:
            reading.skipped["repeated"] += 1
        else:
            yield loaded, copy


def _patches_left_out(reading: ManifestReading) -> Iterator[str]:
    """Yield a note on files that are patches of kustomizations."""
    patches = [file.path for file in reading.patches]
    if patches:
        number = f"{len(patches)} Kustomize {'patch' if len(patches) == 1 else 'patches'}"
        yield f"not checked: {number} ({some(patches)}); -k DIRECTORY checks the manifests that kustomize makes of them"


def _without_pods(reading: ManifestReading) -> str:
    """Return a message about files that have neither pods nor pod templates; "" for other files."""
    if reading.held_templates.total() or any(kind in _WITH_PODS for kind in reading.kinds):
        return ""
    objects = reading.kinds.total() + reading.skipped["unknownKind"]
    documents = reading.skipped["notKubernetes"]
    parts = [
        f"{plural(objects, 'object')} of {'another kind' if objects == 1 else 'other kinds'}" if objects else "",
        f"not Kubernetes objects: {plural(documents, 'document')}" if documents else "",
    ]
    counted = "; ".join(filter(None, parts))
    return f"no pods or pod templates in {plural(reading.files, 'file')} ({counted})" if counted else ""
