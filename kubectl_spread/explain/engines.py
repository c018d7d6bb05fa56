"""Other engines: how do the descheduler and Karpenter count for the same constraint?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube import descheduler
from kubectl_spread.kube.api.field import FieldPath
from kubectl_spread.kube.api.labels import HOSTNAME
from kubectl_spread.kube.api.types import TopologySpreadConstraint
from kubectl_spread.kube.descheduler import Bearer, Explained, PodCounts
from kubectl_spread.kube.scheduler import nodeaffinity
from kubectl_spread.report import model

_KARPENTER: Final = "karpenter.sh/"


class Karpenter(Explained):
    """A difference between Karpenter and the scheduler; the subject of the clauses is Karpenter."""

    NODE_POOLS = "domains-of-node-pools", "it adds the domains that NodePools and instance types could make"
    NULL_SELECTOR = "null-selector-selects-all", "a constraint without labelSelector selects every pod"
    HOSTNAME_MINIMUM = "hostname-minimum-is-zero", "it takes the minimum over hosts for 0, because it can add one"
    OWN_KEY = "only-own-topology-key-needed", "a node needs no topology keys of the pod's other constraints"
    MATCH_FIELDS = "match-fields-not-read", "it does not read matchFields in node affinity"
    KEYS_TWICE = (
        "keys-added-again",
        "it adds matchLabelKeys to a selector that holds them, which older releases mix up",
    )
    DEFAULTS = "default-constraints-not-known", "it does not know the scheduler's default constraints"


class Difference(model.Part, frozen=True, kw_only=True):
    """A difference between another engine and the scheduler, as a stable word and in English."""

    rule: str
    clause: str


_OWN_ONLY: Final = Difference(rule="default-constraints-not-read", clause="it reads the pods' own constraints only")
_NOT_LISTED: Final = Difference(
    rule="no-evictable-pod", clause="it reads the constraints of pods that it could evict, and none of these is one"
)


class OtherCount(model.Part, frozen=True, kw_only=True):
    """The count of one constraint by another engine.

    ``row`` is an index in the constraints; it is absent if the answer is about all rows of the path. ``domains``
    maps a topology value to the number of counted pods, ``skew`` is the number that is compared with maxSkew, and
    ``violated`` is the result; all three are absent if the engine gives no number or ignores the constraint.
    """

    engine: str
    row: int | UnsetType = UNSET
    path: str
    domains: dict[str, int] | UnsetType = UNSET
    skew: int | UnsetType = UNSET
    violated: bool | UnsetType = UNSET
    differences: list[Difference]


def other_counts(audit: Audit) -> list[OtherCount]:
    """Return the counts of other engines for the report's rows; those of Karpenter only if it created a node."""
    cluster = PodCounts(audit.snapshot.nodes, audit.snapshot.evictees)
    counts: list[OtherCount] = []
    rows_by_path: dict[FieldPath, list[EvaluatedConstraint]] = {}
    for index, row in enumerate(audit.rows):
        if row.term.constraint is not None and row.spread is not None and not row.lower_bound:
            counts.append(_by_descheduler(index, row, row.term.constraint, cluster, audit))
            rows_by_path.setdefault(row.path, []).append(row)
    if any(key.startswith(_KARPENTER) for node in audit.nodes.nodes for key in node.metadata.labels):
        counts += [_by_karpenter(rows, audit) for rows in rows_by_path.values()]
    return counts


def _by_descheduler(
    index: int, row: EvaluatedConstraint, constraint: TopologySpreadConstraint, cluster: PodCounts, audit: Audit
) -> OtherCount:
    pod_class = _listed_class(row, cluster, audit)
    if row.term.default or pod_class is None:
        difference = _OWN_ONLY if row.term.default else _NOT_LISTED
        return OtherCount(engine="descheduler", row=index, path=str(row.path), differences=[difference])
    bearer = Bearer(
        pod_class.namespace, pod_class.labels, pod_class.placement, pod_class.spec.topology_spread_constraints
    )
    rules = descheduler.differences(constraint, bearer, cluster, audit.context.behaviour)
    counted = descheduler.count(constraint, bearer, cluster) if descheduler.looks_at(constraint) else None
    return OtherCount(
        engine="descheduler",
        row=index,
        path=str(row.path),
        domains=UNSET if counted is None else dict(sorted(counted.match_num.items())),
        skew=UNSET if counted is None else counted.skew,
        violated=UNSET if counted is None else counted.exceeds_max_skew,
        differences=[Difference(rule=str(rule), clause=rule.clause) for rule in rules],
    )


def _listed_class(row: EvaluatedConstraint, cluster: PodCounts, audit: Audit) -> PodClass | None:
    """Return the first class of a row's pods that the descheduler lists; None if it lists none of them."""
    listed = [pod.labels for pod in audit.snapshot.evictees if pod.namespace == row.namespace and cluster.lists(pod)]
    return next(
        (evaluation.pod_class for evaluation, _ in row.evaluations if evaluation.pod_class.labels in listed), None
    )


def _by_karpenter(rows: Sequence[EvaluatedConstraint], audit: Audit) -> OtherCount:
    """Return the differences of Karpenter on the constraint of some rows."""
    term, pod_class = rows[0].term, rows[0].representative.pod_class
    required = nodeaffinity.required(pod_class.placement.affinity)
    node_terms = () if required is None else required.node_selector_terms
    applies = {
        Karpenter.NODE_POOLS: True,
        Karpenter.NULL_SELECTOR: term.selector is None,
        Karpenter.HOSTNAME_MINIMUM: term.topology_key == HOSTNAME,
        Karpenter.OWN_KEY: _some_node_lacks_another_key(term, pod_class.terms, audit),
        Karpenter.MATCH_FIELDS: any(node_term.match_fields for node_term in node_terms),
        Karpenter.KEYS_TWICE: any(row.verdicts[Verdict.MERGED] for row in rows) and bool(term.match_label_keys),
        Karpenter.DEFAULTS: term.default,
    }
    differences = [Difference(rule=str(rule), clause=rule.clause) for rule, differs in applies.items() if differs]
    return OtherCount(engine="karpenter", path=str(term.path), differences=differences)


def _some_node_lacks_another_key(term: TopologyTerm, terms: Sequence[TopologyTerm], audit: Audit) -> bool:
    keys = {own.topology_key for own in terms if own.spread and own.required == term.required}
    return any(
        term.topology_key in node.metadata.labels and not keys <= node.metadata.labels.keys()
        for node in audit.nodes.nodes
    )
