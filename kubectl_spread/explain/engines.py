"""Other engines: how do the descheduler and Karpenter see the same constraint?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from kubectl_spread.audit.evaluation.evaluate import Audit, EvaluatedConstraint
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api.types import Node, TopologySpreadConstraint
from kubectl_spread.kube.descheduler import topologyspread
from kubectl_spread.kube.descheduler.defaultevictor import Explained
from kubectl_spread.kube.descheduler.topologyspread import Bearer, PodCounts
from kubectl_spread.kube.scheduler import nodeaffinity
from kubectl_spread.report import model

_HOSTNAME: Final = "kubernetes.io/hostname"
_KARPENTER: Final = "karpenter.sh/"


class Karpenter(Explained):
    """A rule by which Karpenter differs from the scheduler; the clauses are about Karpenter."""

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
    """A rule that makes an engine differ, as a stable word and in English."""

    rule: str
    clause: str


_OWN_ONLY: Final = Difference(rule="default-constraints-not-read", clause="it reads the pods' own constraints only")
_NOT_LISTED: Final = Difference(
    rule="no-evictable-pod", clause="it reads the constraints of pods that it could evict, and none of these is one"
)


class OtherCount(model.Part, frozen=True, kw_only=True):
    """How another engine sees one constraint.

    ``row`` is an index in the constraints, absent where all rows of the path are meant.

    ``domains`` maps a topology value to the pods that it counts, ``skew`` is what it holds against maxSkew and
    ``violated`` what it makes of that; all are absent where it gives no number or does not look at the constraint.
    """

    engine: str
    row: int | UnsetType = UNSET
    path: str
    domains: dict[str, int] | UnsetType = UNSET
    skew: int | UnsetType = UNSET
    violated: bool | UnsetType = UNSET
    differences: list[Difference]


def other_counts(audit: Audit) -> list[OtherCount]:
    """Return how other engines see every counted constraint, by the report's rows; Karpenter where it made a node."""
    cluster = PodCounts(audit.snapshot.nodes, audit.snapshot.evictees)
    rows = [row for row in audit.rows if row.term.spread and row.spread is not None and not row.lower_bound]
    counts = [
        msgspec.structs.replace(_by_descheduler(row, row.term.constraint, cluster, audit), row=index)
        for index, row in enumerate(audit.rows)
        if row in rows and row.term.constraint is not None
    ]
    if any(_made_by_karpenter(node) for node in audit.nodes.nodes):
        paths = dict.fromkeys(row.path for row in rows)
        counts += [_by_karpenter([row for row in rows if row.path == path], audit) for path in paths]
    return counts


def _made_by_karpenter(node: Node) -> bool:
    return any(key.startswith(_KARPENTER) for key in node.metadata.labels)


def _by_descheduler(
    row: EvaluatedConstraint, constraint: TopologySpreadConstraint, cluster: PodCounts, audit: Audit
) -> OtherCount:
    if row.term.default:
        return OtherCount(engine="descheduler", path=str(row.path), differences=[_OWN_ONLY])
    pod_class = _listed_class(row, cluster, audit)
    if pod_class is None:
        return OtherCount(engine="descheduler", path=str(row.path), differences=[_NOT_LISTED])
    bearer = Bearer(
        pod_class.namespace, pod_class.labels, pod_class.placement, pod_class.spec.topology_spread_constraints
    )
    differences = [
        Difference(rule=str(rule), clause=rule.clause)
        for rule in topologyspread.differences(constraint, bearer, cluster, audit.context.behaviour)
    ]
    if not topologyspread.looks_at(constraint):
        return OtherCount(engine="descheduler", path=str(row.path), differences=differences)
    counted = topologyspread.count(constraint, bearer, cluster)
    return OtherCount(
        engine="descheduler",
        path=str(row.path),
        domains=dict(sorted(counted.match_num.items())),
        skew=counted.skew,
        violated=counted.exceeds_max_skew,
        differences=differences,
    )


def _listed_class(row: EvaluatedConstraint, cluster: PodCounts, audit: Audit) -> PodClass | None:
    """Return the class of pods of a row that the descheduler lists, if there are any."""
    listed = [pod.labels for pod in audit.snapshot.evictees if pod.namespace == row.namespace and cluster.lists(pod)]
    return next(
        (evaluation.pod_class for evaluation, _ in row.evaluations if evaluation.pod_class.labels in listed), None
    )


def _by_karpenter(rows: Sequence[EvaluatedConstraint], audit: Audit) -> OtherCount:
    """Return how Karpenter differs on one constraint, of which ``rows`` are the pods."""
    term, pod_class = rows[0].term, rows[0].representative.pod_class
    required = nodeaffinity.required(pod_class.placement.affinity)
    node_terms = () if required is None else required.node_selector_terms
    holds = {
        Karpenter.NODE_POOLS: True,
        Karpenter.NULL_SELECTOR: term.selector is None,
        Karpenter.HOSTNAME_MINIMUM: term.topology_key == _HOSTNAME,
        Karpenter.OWN_KEY: _some_node_lacks_another_key(term, pod_class.terms, audit),
        Karpenter.MATCH_FIELDS: any(node_term.match_fields for node_term in node_terms),
        Karpenter.KEYS_TWICE: any(row.verdicts[Verdict.MERGED] for row in rows) and bool(term.match_label_keys),
        Karpenter.DEFAULTS: term.default,
    }
    differences = [Difference(rule=str(rule), clause=rule.clause) for rule, true in holds.items() if true]
    return OtherCount(engine="karpenter", path=str(term.path), differences=differences)


def _some_node_lacks_another_key(term: TopologyTerm, terms: Sequence[TopologyTerm], audit: Audit) -> bool:
    alike = (other for other in terms if other.spread and other.required == term.required)
    others = {other.topology_key for other in alike} - {term.topology_key}
    return any(
        term.topology_key in node.metadata.labels and not others <= node.metadata.labels.keys()
        for node in audit.nodes.nodes
    )
