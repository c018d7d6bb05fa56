"""Hints: notes on options and annotations without effect, on gone findings, and on objects that the input lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.merge.verdicts import LABEL_MAY_HAVE_CHANGED
from kubectl_spread.audit.snapshot import default_constraints
from kubectl_spread.audit.snapshot.podclasses import IGNORE_ANNOTATION
from kubectl_spread.audit.snapshot.records import PodClass, PodRecord
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.audit.snapshot.templates import Template
from kubectl_spread.diagnosis import needs
from kubectl_spread.errors import DecodeError, SpreadError
from kubectl_spread.kube.api.labels import HOSTNAME, TOPOLOGY_KEYS
from kubectl_spread.kube.api.types import Node
from kubectl_spread.kube.custom import ANY
from kubectl_spread.phrases import did_you_mean, named, plural, some
from kubectl_spread.report import model, projections
from kubectl_spread.rules import RULES, engine
from kubectl_spread.rules.model import unknown
from kubectl_spread.run.options import CheckOptions

if TYPE_CHECKING:
    from kubectl_spread.run.run import CheckRun

_NO_MANAGED_FIELDS: Final = (
    "no managedFields in what was read: capture with --show-managed-fields to see who changed a label"
)
_NO_VOLUMES: Final = "claims or PersistentVolumes are not in what was read: volumes may keep pods where they are"
_NOT_LOOKED_UP: Final = "no nodes were read, and only nodes tell the domains (read nodes too, or leave out the option)"
_NO_SERVICES: Final = "no Services in what was read: default constraints select by the pods' owners alone"


def add(run: CheckRun) -> None:
    """Add notes on expected keys that no constraint has and on words that name no rule, and errors about keys."""
    run.notes += [*_unused_keys(run.options, run.audit), *_unknown_words(run.audit)]
    run.problems += _unknown_keys(run.options, run.snapshot.nodes, listed=run.nodes == "listed")


def _unknown_keys(options: CheckOptions, nodes: Iterable[Node], *, listed: bool) -> list[str]:
    """Return errors about keys of ``--expect-domains`` and ``--by`` that no node has, or that cannot be looked up.

    Args:
        options: The options.
        nodes: The nodes that were read.
        listed: Whether nodes were read; where they were, there may be none.
    """
    labels = _labels(nodes)
    exposing_keys = options.exposing_keys if options.by else ()
    keys_of_options = {"--expect-domains": tuple(options.expected_domains), "--by": exposing_keys}
    if not (labels or listed):
        return [f"{option}: {_NOT_LOOKED_UP}" for option, keys in keys_of_options.items() if keys]
    return [
        f'{option}: no node has the label "{key}"{did_you_mean(key, key_names(labels))}'
        for option, keys in keys_of_options.items()
        for key in keys
        # For --by each node is a domain of its own, even without the label.
        if key not in labels and (option, key) != ("--by", HOSTNAME)
    ]


def key_names(labels: Collection[str]) -> list[str]:
    """Return the names for the keys of nodes' labels on the command line: short names first, then the keys."""
    return [*(short for short, key in TOPOLOGY_KEYS.items() if key in labels), *sorted(labels)]


def capture_hints(audit: Audit) -> list[str]:
    """Return notes on managedFields, Services and volumes, which captures of a cluster often lack."""
    notes = []
    if _needs_managed_fields(audit):
        notes.append(_NO_MANAGED_FIELDS)
    if _needs_services(audit.snapshot):
        notes.append(_NO_SERVICES)
    if needs.volumes_unread(audit):
        notes.append(_NO_VOLUMES)
    return [*notes, *_unknown_labels(audit)]


def gone(summary: model.Summary) -> str:
    """Return a note on findings of the baseline that do not occur any more, or ""."""
    if not isinstance(summary.gone, int) or not summary.gone:
        return ""
    return f"{plural(summary.gone, 'finding')} of the baseline {'is' if summary.gone == 1 else 'are'} gone"


def malformed_objects(errors: Iterable[SpreadError]) -> list[model.Unchecked]:
    """Return the objects whose decoding ended with one of the errors."""
    return [
        model.Unchecked(
            reason="malformed",
            namespace=error.ref.namespace if error.ref else UNSET,
            object=projections.workload(error.ref) if error.ref else UNSET,
            path=error.path or UNSET,
            message=str(error),
        )
        for error in errors
        if isinstance(error, DecodeError)
    ]


def unevaluated(audit: Audit) -> list[model.Unchecked]:
    """Return the templates that cannot be evaluated."""
    manifests = audit.snapshot.manifests
    unchecked = []
    for template in audit.templates:
        if template.unevaluated is None:
            continue
        holder, manifest = template.holder, manifests.get(template.holder)
        subject = f"{holder.kind} {holder.namespace}/{holder.name}"
        whose = f"{manifest.position_of(template.unevaluated.path)}: {subject}" if manifest else subject
        unchecked.append(
            model.Unchecked(
                reason="unevaluated",
                namespace=holder.namespace,
                object=projections.workload(holder),
                path=str(template.path),
                message=f"{whose}: {template.path} is not evaluated: {template.unevaluated}",
            )
        )
    return unchecked


def unknown_nodes(snapshot: Snapshot) -> str:
    """Return an error where the input has bound pods and none of their nodes, else ""."""
    pods = snapshot.pods_on_nodes()
    names = {node.metadata.name for node in snapshot.nodes}
    if not pods or not names.isdisjoint(pods):
        return ""
    subject = "pod runs on a node" if pods.total() == 1 else "pods run on nodes"
    nodes = f"{plural(len(names), 'node')} that were read ({some(list(pods))})"
    return f"{pods.total()} bound {subject} not among the {nodes}: placement is not evaluated"


def _unused_keys(options: CheckOptions, audit: Audit) -> list[str]:
    """Return a note on each expected key of nodes that no constraint has; none without pods and templates in scope."""
    if not (audit.pods or audit.templates):
        return []
    of_pods = (pod.pod_class.terms for pod in _pod_of_each_class(audit))
    of_templates = (template.terms for template in audit.templates)
    used = {term.topology_key for terms in (*of_pods, *of_templates) for term in terms if term.spread}
    unused = (_labels(audit.snapshot.nodes) & options.expected_domains.keys()) - used
    return [f'--expect-domains: no constraint has the key "{key}"' for key in options.expected_domains if key in unused]


def _labels(nodes: Iterable[Node]) -> frozenset[str]:
    return frozenset(label for node in nodes for label in node.metadata.labels)


def _unknown_words(audit: Audit) -> list[str]:
    words = sorted({word for annotation in set(_annotations(audit)) for word in engine.codes(annotation)})
    unknown_words = [word for word in words if not any(rule.is_named([word]) for rule in RULES)]
    return [f"{IGNORE_ANNOTATION}: {unknown(word, RULES)}" for word in unknown_words]


def _annotations(audit: Audit) -> Iterator[str]:
    """Yield the values of the annotation on pods, templates' workloads and owners."""
    for pod in _pod_of_each_class(audit):
        yield pod.pod_class.ignored
        yield from (owner.ignored for owner in audit.snapshot.owner_chain(pod))
    for template in audit.templates:
        yield template.ignored
        yield from (owner.ignored for owner in audit.snapshot.template_owners(template))


def _pod_of_each_class(audit: Audit) -> list[PodRecord]:
    pods: dict[PodClass, PodRecord] = {pod.pod_class: pod for pod in audit.pods}
    return list(pods.values())


def _needs_managed_fields(audit: Audit) -> bool:
    """Tell whether verdicts on stored pods depend on managedFields and no pod has them; manifests never do."""
    if audit.snapshot.with_managed_fields:
        return False
    members = (member for row in audit.rows for member in row.members if member.pod.pod_class.stored)
    return any(key.verdict in LABEL_MAY_HAVE_CHANGED for member in members for key in member.keys)


def _unknown_labels(audit: Audit) -> Iterator[str]:
    """Yield notes on templates, and on constraints without a template, whose pods have labels that are unknown."""
    custom = [template for template in audit.templates if template.custom and template.terms]
    unknown = _holders(template for template in custom if template.complete and ANY[0] in template.label_prefixes)
    if unknown:
        yield f"labels that a pod template lacks are not reported where a controller may add them ({some(unknown)})"
    for template in audit.templates:
        if template.revision_anti_affinity:
            yield (
                f"{named(template.holder.kind, template.holder.name)}: {template.revision_anti_affinity} makes Argo "
                "Rollouts add an anti-affinity term on kubernetes.io/hostname to the pods of a new revision; it keeps "
                "them from nodes with pods of the stable revision, and no two pods of one revision apart"
            )
    without_template = _holders(template for template in custom if not template.complete)
    if without_template:
        yield (
            f"spread constraints without a pod template ({some(without_template)}): the labels of the pods are unknown "
            "and were not compared with the selectors"
        )


def _holders(templates: Iterable[Template]) -> list[str]:
    """Return the objects that hold templates, each once, in order."""
    return sorted({named(template.holder.kind, template.holder.name) for template in templates})


def _needs_services(snapshot: Snapshot) -> bool:
    """Tell whether default constraints need Services for their selectors, and none was read."""
    selectors = snapshot.default_selectors
    if selectors.services or not selectors.enabled:
        return False
    return any(default_constraints.may_have_defaults(pod.pod_class) for pod in snapshot.pods)
