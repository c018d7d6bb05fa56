"""The answers of kubectl_spread to the same questions, in the oracle's format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Annotated, Final

import msgspec
from msgspec.structs import replace

from kubectl_spread.audit.evaluation.evaluate import Audit, evaluate
from kubectl_spread.audit.merge.verdicts import ServerFacts
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.scope import Scope, Target
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.engine.cluster import SimulatedCluster
from kubectl_spread.engine.world import World
from kubectl_spread.kube import apiserver
from kubectl_spread.kube.api import labels
from kubectl_spread.kube.api.field import FieldError, FieldPath
from kubectl_spread.kube.api.types import (
    LabelSelector,
    Message,
    Node,
    ObjectMeta,
    Pod,
    PodAffinity,
    PodSpec,
    TopologySpreadConstraint,
)
from kubectl_spread.kube.api.workloads import KINDS, ReplicatedWorkload
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import configuration, interpodaffinity
from kubectl_spread.kube.scheduler.configuration import DEFAULT_SCHEDULER, Profile
from kubectl_spread.kube.scheduler.interpodaffinity import AffinityAnswer
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import Service
from kubectl_spread.kube.scheduler.podtopologyspread.spread import FilterAnswer, filter_nodes
from kubectl_spread.sources.decode import json_objects
from tests.builders import Json
from tests.conformance import resource_answers

_TEMPLATE: Final = FieldPath(("spec", "template", "spec"))
_EMPTY: Final = msgspec.Raw(b"{}")
UNJUDGED: Final[Json] = {"unjudged": True}
"""The answer for a pod that only one node may take, such as a DaemonSet's: nothing is claimed about its placement."""
_FILTER_TEXTS: Final[dict[FilterAnswer, str]] = {
    FilterAnswer.FEASIBLE: "",
    FilterAnswer.NOT_MATCHING: "Unschedulable: node(s) didn't match pod topology spread constraints",
    FilterAnswer.MISSING_LABEL: (
        "UnschedulableAndUnresolvable: node(s) didn't match pod topology spread constraints (missing required label)"
    ),
}
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_AFFINITY_TEXTS: Final[dict[AffinityAnswer, str]] = {
    AffinityAnswer.FEASIBLE: "",
    AffinityAnswer.NO_AFFINITY: f"UnschedulableAndUnresolvable: node(s) {AffinityAnswer.NO_AFFINITY}",
    AffinityAnswer.ANTI_AFFINITY: f"Unschedulable: node(s) {AffinityAnswer.ANTI_AFFINITY}",
    AffinityAnswer.EXISTING_ANTI_AFFINITY: f"Unschedulable: node(s) {AffinityAnswer.EXISTING_ANTI_AFFINITY}",
    AffinityAnswer.UNPARSEABLE: "UnschedulableAndUnresolvable: parsing pod",
}


class Question(msgspec.Struct, frozen=True, rename="camel"):
    """One case; its kind decides which fields are read."""

    kind: str
    pod: msgspec.Raw = _EMPTY
    old: msgspec.Raw = _EMPTY
    deployment: msgspec.Raw = _EMPTY
    nodes: tuple[msgspec.Raw, ...] = ()
    pods: tuple[msgspec.Raw, ...] = ()
    namespaces: tuple[msgspec.Raw, ...] = ()
    services: tuple[msgspec.Raw, ...] = ()
    replication_controllers: tuple[msgspec.Raw, ...] = ()
    replica_sets: tuple[msgspec.Raw, ...] = ()
    stateful_sets: tuple[msgspec.Raw, ...] = ()
    quantities: tuple[str, ...] = ()
    feasible: tuple[str, ...] = ()
    system_defaults: bool = False
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()


class _Namespace(Message, frozen=True):
    metadata: Annotated[ObjectMeta, 1] = ObjectMeta()


_DECODER: Final = msgspec.json.Decoder(Question)


def answer(question: bytes, behaviour: Behaviour) -> Json:
    """Answer one case for an apiserver or scheduler of ``behaviour``."""
    decoded = _DECODER.decode(question)
    return _ANSWERS[decoded.kind](decoded, behaviour)


def _create(question: Question, behaviour: Behaviour) -> Json:
    pod = _pod(question.pod)
    stored = apiserver.prepare_for_create(pod.spec, pod.metadata.labels, behaviour)
    return {
        "stored": _terms(stored),
        "errors": _texts(apiserver.pod_errors(stored, behaviour)),
        "warnings": list(apiserver.pod_warnings(stored, behaviour)),
    }


def _update(question: Question, behaviour: Behaviour) -> Json:
    old, new = _pod(question.old).spec, _pod(question.pod).spec
    return {"errors": _texts(apiserver.pod_update_errors(new, old, behaviour))}


def _template(question: Question, behaviour: Behaviour) -> Json:
    spec = json_objects.decode(question.deployment, ReplicatedWorkload).template.spec
    dropped = apiserver.drop_disabled_fields(spec, behaviour)
    return {
        "errors": _texts(apiserver.pod_errors(dropped, behaviour, _TEMPLATE)),
        "warnings": list(apiserver.pod_warnings(dropped, behaviour, _TEMPLATE)),
    }


def _filter(question: Question, behaviour: Behaviour) -> Json:
    audit, pod_class = _evaluated(question, behaviour)
    if pod_class.pinned:
        return UNJUDGED
    spreads = [
        spread for spread in audit.evaluator.of(pod_class).spreads if spread is not None and spread.constraint.hard
    ]
    if not spreads:
        return {"skipped": True}
    constraints = [{"matchNum": dict(spread.match_num), "minMatchNum": spread.min_match_num} for spread in spreads]
    answers = {
        audit.nodes.nodes[number].metadata.name: _FILTER_TEXTS[answer]
        for answer, bits in filter_nodes(spreads, audit.nodes).items()
        for number in labels.ascending(bits)
    }
    return _without_empty({"constraints": constraints, "nodes": answers})


def _scores(question: Question, behaviour: Behaviour) -> Json:
    audit, pod_class = _evaluated(question, behaviour)
    if pod_class.pinned:
        return UNJUDGED
    soft = [
        spread for spread in audit.evaluator.of(pod_class).spreads if spread is not None and not spread.constraint.hard
    ]
    if not soft or not audit.nodes.nodes:
        return {"skipped": True}
    cluster = SimulatedCluster(World(audit.snapshot, behaviour, None), Random(0), now=True)
    feasible = [cluster.table.numbers[name] for name in question.feasible]
    scores = cluster.state.spread_scores(cluster.world.kinds.of(pod_class), feasible)
    return _without_empty({"scores": dict(zip(question.feasible, scores, strict=True))})


def _evaluated(question: Question, behaviour: Behaviour) -> tuple[Audit, PodClass]:
    """Return the audit of the pod in the question, and its class."""
    defaults = configuration.SYSTEM_DEFAULTS if question.system_defaults else question.default_constraints
    profile = Profile(defaults=defaults, system_defaults=question.system_defaults)
    pod = _pod(question.pod)
    target = Target("Pod", pod.metadata.name)
    snapshot = Snapshot(
        Scope(namespace=pod.metadata.namespace, targets=(target,)), schedulers={DEFAULT_SCHEDULER: profile}
    )
    for raw in question.nodes:
        snapshot.add_node(json_objects.decode(raw, Node))
    for raw in question.services:
        snapshot.default_selectors.add_service(json_objects.decode(raw, Service))
    owners = {
        ("", "ReplicationController"): question.replication_controllers,
        ("apps", "ReplicaSet"): question.replica_sets,
        ("apps", "StatefulSet"): question.stateful_sets,
    }
    for (group, kind), raws in owners.items():
        for raw in raws:
            snapshot.add_workload(kind, json_objects.decode(raw, KINDS[group, kind]))
    for raw in question.pods:
        snapshot.add_pod(_pod(raw))
    # A pod without a uid is not stored yet and would be merged.
    snapshot.add_pod(replace(pod, metadata=replace(pod.metadata, uid="asked")))
    snapshot.pods, _ = snapshot.default_selectors.applied_to(snapshot.pods)
    audit = evaluate(snapshot, ServerFacts(behaviour, gates_known=True), nodes="listed")
    (record,) = audit.pods
    return audit, record.pod_class


def _affinity(question: Question, behaviour: Behaviour) -> Json:
    decoded = [json_objects.decode(node, Node) for node in question.nodes]
    nodes = {node.metadata.name: node for node in decoded}
    pods = [_pod(raw) for raw in question.pods]
    cached = [pod for pod in pods if pod.spec.node_name and pod.status.phase not in _FINISHED]
    namespaces = [json_objects.decode(raw, _Namespace).metadata for raw in question.namespaces]
    state = interpodaffinity.pre_filter(
        _pod(question.pod), cached, nodes, {namespace.name: namespace.labels for namespace in namespaces}, behaviour
    )
    return _without_empty({"nodes": {name: _AFFINITY_TEXTS[state.filter(node)] for name, node in nodes.items()}})


def _resources(question: Question, _: Behaviour) -> Json:
    return _without_empty(resource_answers.answer(question.quantities, question.pod, question.nodes, question.pods))


def _pod(raw: msgspec.Raw) -> Pod:
    return json_objects.decode(raw, Pod)


def _texts(errors: Iterable[FieldError]) -> list[str]:
    return [error.message for error in errors]


def _without_empty(answer: Json) -> Json:
    return {name: value for name, value in answer.items() if value}


def _terms(spec: PodSpec) -> Json:
    terms: Json = {
        "spread": [
            _term(constraint.label_selector, matchLabelKeys=constraint.match_label_keys)
            for constraint in spec.topology_spread_constraints
        ]
    }
    if spec.affinity is not None:
        terms |= _affinity_terms("podAffinity", spec.affinity.pod_affinity)
        terms |= _affinity_terms("podAntiAffinity", spec.affinity.pod_anti_affinity)
    return terms


def _affinity_terms(name: str, affinity: PodAffinity | None) -> Json:
    if affinity is None:
        return {}
    required = affinity.required_during_scheduling_ignored_during_execution
    preferred = [
        weighted.pod_affinity_term for weighted in affinity.preferred_during_scheduling_ignored_during_execution
    ]
    return {
        f"{name}.{part}": [
            _term(term.label_selector, matchLabelKeys=term.match_label_keys, mismatchLabelKeys=term.mismatch_label_keys)
            for term in terms
        ]
        for part, terms in (("required", required), ("preferred", preferred))
    }


def _term(selector: LabelSelector | None, **keys: tuple[str, ...]) -> Json:
    label_selector = None if selector is None else _selector(selector)
    return {"labelSelector": label_selector, **{name: list(value) for name, value in keys.items() if value}}


def _selector(selector: LabelSelector) -> Json:
    expressions = [
        {
            "key": requirement.key,
            "operator": requirement.operator,
            **({"values": list(requirement.values)} if requirement.values else {}),
        }
        for requirement in selector.match_expressions
    ]
    return _without_empty({"matchLabels": dict(selector.match_labels), "matchExpressions": expressions})


_ANSWERS: Final[dict[str, Callable[[Question, Behaviour], Json]]] = {
    "create": _create,
    "update": _update,
    "template": _template,
    "filter": _filter,
    "scores": _scores,
    "affinity": _affinity,
    "resources": _resources,
}
