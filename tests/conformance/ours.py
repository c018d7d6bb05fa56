"""The same questions answered by kubectl_spread, in the oracle's words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Final

import msgspec

from kubectl_spread.audit.evaluation.counting import Census
from kubectl_spread.audit.snapshot.scope import Scope
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.kube.api.field import FieldError
from kubectl_spread.kube.api.fieldpath import FieldPath
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
from kubectl_spread.kube.api.workloads import ReplicatedWorkload
from kubectl_spread.kube.apiserver import podwarnings, strategy, validation
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler import (
    defaultconstraints,
    interpodaffinity,
    podtopologyspread,
    podtopologyspread_scoring,
)
from kubectl_spread.kube.scheduler.defaultconstraints import MapSelecting, Selecting, SelectorSources
from kubectl_spread.kube.scheduler.interpodaffinity import AffinityAnswer
from kubectl_spread.kube.scheduler.podtopologyspread import Constraint, NodeSets, Placement, Spread
from kubectl_spread.kube.scheduler.podtopologyspread_scoring import SoftConstraint, lenient_domains
from kubectl_spread.sources.decode import json_objects
from tests.builders import Json
from tests.conformance import resource_answers

_TEMPLATE: Final = FieldPath(("spec", "template", "spec"))
_EMPTY: Final = msgspec.Raw(b"{}")
_UNJUDGED: Final = Scope(namespace="-")
_NOT_MATCHING: Final = "Unschedulable: node(s) didn't match pod topology spread constraints"
_MISSING_LABEL: Final = (
    "UnschedulableAndUnresolvable: node(s) didn't match pod topology spread constraints (missing required label)"
)

_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_AFFINITY_TEXTS: Final[dict[AffinityAnswer, str]] = {
    AffinityAnswer.FEASIBLE: "",
    AffinityAnswer.NO_AFFINITY: f"UnschedulableAndUnresolvable: node(s) {AffinityAnswer.NO_AFFINITY}",
    AffinityAnswer.ANTI_AFFINITY: f"Unschedulable: node(s) {AffinityAnswer.ANTI_AFFINITY}",
    AffinityAnswer.EXISTING_ANTI_AFFINITY: f"Unschedulable: node(s) {AffinityAnswer.EXISTING_ANTI_AFFINITY}",
    AffinityAnswer.UNPARSEABLE: "UnschedulableAndUnresolvable: parsing pod",
}


class Question(msgspec.Struct, frozen=True, rename="camel"):
    """One case; its kind says which fields are read."""

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
    """Answer one case as an apiserver or scheduler of ``behaviour`` would."""
    asked = _DECODER.decode(question)
    return _ANSWERS[asked.kind](asked, behaviour)


def _create(asked: Question, behaviour: Behaviour) -> Json:
    pod = _pod(asked.pod)
    stored = strategy.prepare_for_create(pod.spec, pod.metadata.labels, behaviour)
    return {
        "stored": _clauses(stored),
        "errors": _texts(validation.pod_errors(stored, behaviour)),
        "warnings": list(podwarnings.pod_warnings(stored, behaviour)),
    }


def _update(asked: Question, behaviour: Behaviour) -> Json:
    old, new = _pod(asked.old).spec, _pod(asked.pod).spec
    return {"errors": _texts(validation.pod_update_errors(new, old, behaviour))}


def _template(asked: Question, behaviour: Behaviour) -> Json:
    spec = json_objects.decode(asked.deployment, ReplicatedWorkload).template.spec
    dropped = strategy.drop_disabled_fields(spec, behaviour)
    return {
        "errors": _texts(validation.pod_errors(dropped, behaviour, _TEMPLATE)),
        "warnings": list(podwarnings.pod_warnings(dropped, behaviour, _TEMPLATE)),
    }


def _filter(asked: Question, behaviour: Behaviour) -> Json:
    pod = _pod(asked.pod)
    nodes = NodeSets((json_objects.decode(node, Node) for node in asked.nodes), behaviour)
    census = _census(asked, nodes, behaviour)
    spreads = [spread for spread in _spreads(pod, census, asked, behaviour) if spread.constraint.hard]
    if not spreads:
        return {"skipped": True}
    constraints = [{"matchNum": dict(spread.match_num), "minMatchNum": spread.min_match_num} for spread in spreads]
    return _without_empty({"constraints": constraints, "nodes": _node_answers(spreads, nodes)})


def _scores(asked: Question, behaviour: Behaviour) -> Json:
    pod = _pod(asked.pod)
    nodes = NodeSets((json_objects.decode(node, Node) for node in asked.nodes), behaviour)
    census = _census(asked, nodes, behaviour)
    lenient = asked.system_defaults and not pod.spec.topology_spread_constraints
    softs = [
        SoftConstraint(
            spread.constraint,
            lenient_domains(spread.constraint, nodes, nodes.usable(_placement(pod))) if lenient else spread.domains,
            census.matching(pod.metadata.namespace, spread.constraint.selector),
        )
        for spread in _spreads(pod, census, asked, behaviour)
        if not spread.constraint.hard
    ]
    if not softs or not nodes.nodes:
        return {"skipped": True}
    feasible = [node for node in nodes.nodes if node.metadata.name in asked.feasible]
    return _without_empty({"scores": podtopologyspread_scoring.scores(softs, feasible, all_keys=not lenient)})


def _affinity(asked: Question, behaviour: Behaviour) -> Json:
    nodes = [json_objects.decode(node, Node) for node in asked.nodes]
    others = [_pod(raw) for raw in asked.pods]
    cached = [other for other in others if other.spec.node_name and other.status.phase not in _FINISHED]
    namespaces = [json_objects.decode(raw, _Namespace).metadata for raw in asked.namespaces]
    answers = interpodaffinity.filter_nodes(
        _pod(asked.pod), cached, nodes, {one.name: one.labels for one in namespaces}, behaviour
    )
    return _without_empty({"nodes": {name: _AFFINITY_TEXTS[answer] for name, answer in answers.items()}})


def _resources(asked: Question, _: Behaviour) -> Json:
    return _without_empty(resource_answers.answer(asked.quantities, asked.pod, asked.nodes, asked.pods))


def _census(asked: Question, nodes: NodeSets, behaviour: Behaviour) -> Census:
    snapshot = Snapshot(_UNJUDGED)
    for other in asked.pods:
        snapshot.add_pod(_pod(other))
    return Census(snapshot, nodes, behaviour)


def _spreads(pod: Pod, census: Census, asked: Question, behaviour: Behaviour) -> tuple[Spread, ...]:
    constraints = _own_constraints(pod, behaviour) or _default_constraints(pod, asked, behaviour)
    return census.spreads(pod.metadata.namespace, pod.metadata.labels, constraints, _placement(pod))


def _placement(pod: Pod) -> Placement:
    return Placement(pod.spec.node_selector, pod.spec.affinity, pod.spec.tolerations)


def _own_constraints(pod: Pod, behaviour: Behaviour) -> tuple[Constraint, ...]:
    constraints = []
    for constraint in pod.spec.topology_spread_constraints:
        keys = constraint.match_label_keys if behaviour.scheduler_adds_match_label_keys else ()
        selector = podtopologyspread.effective_selector(constraint.label_selector, keys, pod.metadata.labels)
        constraints.append(podtopologyspread.working_constraint(constraint, selector, behaviour))
    return tuple(constraints)


def _default_constraints(pod: Pod, asked: Question, behaviour: Behaviour) -> tuple[Constraint, ...]:
    selectors = SelectorSources(
        services=[json_objects.decode(raw, MapSelecting) for raw in asked.services],
        replication_controllers=[json_objects.decode(raw, MapSelecting) for raw in asked.replication_controllers],
        replica_sets=[json_objects.decode(raw, Selecting) for raw in asked.replica_sets],
        stateful_sets=[json_objects.decode(raw, Selecting) for raw in asked.stateful_sets],
    )
    defaults = defaultconstraints.SYSTEM if asked.system_defaults else asked.default_constraints
    return defaultconstraints.constraints(defaults, pod, selectors, behaviour)


def _node_answers(hard: list[Spread], nodes: NodeSets) -> Json:
    texts = {"feasible": "", "not matching": _NOT_MATCHING, "missing label": _MISSING_LABEL}
    keys = [spread.constraint.topology_key for spread in hard]
    found = {}
    for node in nodes.nodes:
        values = [node.metadata.labels.get(key) for key in keys]
        found[node.metadata.name] = texts[podtopologyspread._filter(hard, values)]
    return found


def _pod(raw: msgspec.Raw) -> Pod:
    return json_objects.decode(raw, Pod)


def _texts(errors: Iterable[FieldError]) -> list[str]:
    return [error.message for error in errors]


def _without_empty(answer: Json) -> Json:
    return {name: value for name, value in answer.items() if value}


def _clauses(spec: PodSpec) -> Json:
    found: Json = {
        "spread": [
            _clause(constraint.label_selector, matchLabelKeys=constraint.match_label_keys)
            for constraint in spec.topology_spread_constraints
        ]
    }
    if spec.affinity is not None:
        found |= _terms("podAffinity", spec.affinity.pod_affinity)
        found |= _terms("podAntiAffinity", spec.affinity.pod_anti_affinity)
    return found


def _terms(name: str, affinity: PodAffinity | None) -> Json:
    if affinity is None:
        return {}
    required = affinity.required_during_scheduling_ignored_during_execution
    preferred = [one.pod_affinity_term for one in affinity.preferred_during_scheduling_ignored_during_execution]
    return {
        f"{name}.{part}": [
            _clause(
                term.label_selector, matchLabelKeys=term.match_label_keys, mismatchLabelKeys=term.mismatch_label_keys
            )
            for term in terms
        ]
        for part, terms in (("required", required), ("preferred", preferred))
    }


def _clause(selector: LabelSelector | None, **keys: tuple[str, ...]) -> Json:
    written = None if selector is None else _selector(selector)
    return {"labelSelector": written, **{name: list(value) for name, value in keys.items() if value}}


def _selector(selector: LabelSelector) -> Json:
    expressions = [
        {"key": item.key, "operator": item.operator, **({"values": list(item.values)} if item.values else {})}
        for item in selector.match_expressions
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
