"""The families of metrics: each is declared once, and docs/metrics.md is generated from them.

All families are gauges, because a value may fall at any time.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

MOST_DOMAINS: Final = 32
"""A constraint or workload with more domains has no series for them, because each new hostname would begin a series."""
MOST_CHARACTERS: Final = 320
"""The longest label value, in characters; it has room for each name that Kubernetes itself lets an object have."""
WORKLOAD: Final = ("namespace", "workload", "workload_type")
"""The labels of a workload, as kubernetes-mixin has them; the type is the kind in lower case."""
CONSTRAINT: Final = (*WORKLOAD, "path", "topology_key")
"""The labels of a constraint or affinity term."""


class Stability(Enum):
    """How far a name can be relied on, in the words of Kubernetes' own metrics."""

    STABLE = "STABLE"
    EXPERIMENTAL = "EXPERIMENTAL"


class Family(msgspec.Struct, frozen=True, eq=False):
    """The metrics with one name.

    Attributes:
        name: The complete name.
        labels: The names of the labels, in the order of a line.
        help: The meaning of the value.
        source: The part of the cluster or of the report that the value comes from.
        stability: How far the name, the labels and the meaning can be relied on.
        totals: Whether there is one value for the whole report, and not one for each workload.
    """

    name: str
    labels: tuple[str, ...]
    help: str
    source: str
    stability: Stability = Stability.STABLE
    totals: bool = False

    @property
    def header(self) -> str:
        """The lines before the samples."""
        return f"# HELP {self.name} [{self.stability.value}] {self.help}\n# TYPE {self.name} gauge\n"


INFO: Final = Family(
    "kube_spread_info",
    ("context", "cluster_name", "cluster_uid", "evaluated_as", "server_version", "version_source", "nodes"),
    "The cluster, and the Kubernetes minor that it was evaluated as. The value is 1.",
    "kubeconfig, `/version`, namespace `kube-system`",
    totals=True,
)
READ: Final = Family(
    "kube_spread_read_timestamp_seconds",
    (),
    "When the pods were read, by the clock of the API server.",
    "the `Date` header of the API server",
    totals=True,
)
NODES: Final = Family("kube_spread_nodes", (), "Nodes that were listed.", "nodes", totals=True)
EVALUATED_PODS: Final = Family("kube_spread_evaluated_pods", (), "Pods that were evaluated.", "pods", totals=True)
EVALUATED_TEMPLATES: Final = Family(
    "kube_spread_evaluated_templates", (), "Pod templates that were evaluated.", "workloads", totals=True
)
CONSTRAINTS: Final = Family(
    "kube_spread_constraints", (), "Constraints and affinity terms in the report.", "the report", totals=True
)
FINDINGS: Final = Family(
    "kube_spread_findings", ("severity",), "Findings by severity, also where there are none.", "rules", totals=True
)
SILENCED: Final = Family(
    "kube_spread_silenced_findings",
    (),
    "Findings that --ignore, --severity or an annotation leaves out.",
    "rules",
    totals=True,
)
KNOWN: Final = Family(
    "kube_spread_known_findings", (), "Findings that the baseline has.", "the file of `--baseline`", totals=True
)
SKIPPED: Final = Family(
    "kube_spread_skipped_objects",
    ("reason",),
    "Objects or lists that were not evaluated, by reason.",
    "the report",
    totals=True,
)
FINDING: Final = Family(
    "kube_spread_finding",
    (*WORKLOAD, "code", "severity"),
    "The workload has a finding with this code and severity. The value is 1.",
    "rules",
)
CONSTRAINT_INFO: Final = Family(
    "kube_spread_constraint_info",
    (
        *CONSTRAINT,
        "when_unsatisfiable",
        "max_skew",
        "min_domains",
        "node_affinity_policy",
        "node_taints_policy",
    ),
    "The fields of the constraint, with defaults; empty where a field does not apply. The value is 1.",
    "pods",
)
SKEW: Final = Family(
    "kube_spread_constraint_skew",
    CONSTRAINT,
    "Matching pods of the fullest eligible domain above the global minimum.",
    "bound pods and nodes",
)
MAX_SKEW: Final = Family("kube_spread_constraint_max_skew", CONSTRAINT, "The maxSkew of the constraint.", "pods")
GLOBAL_MINIMUM: Final = Family(
    "kube_spread_constraint_global_minimum",
    CONSTRAINT,
    "Matching pods of the emptiest eligible domain; 0 with fewer domains than minDomains.",
    "bound pods and nodes",
)
ELIGIBLE_DOMAINS: Final = Family(
    "kube_spread_constraint_eligible_domains",
    CONSTRAINT,
    "Domains that have a node which counts for the pods.",
    "nodes",
)
ALLOWED_DOMAINS: Final = Family(
    "kube_spread_constraint_allowed_domains",
    CONSTRAINT,
    "Domains where this constraint allows one more such pod.",
    "bound pods and nodes",
    Stability.EXPERIMENTAL,
)
LOWER_BOUND: Final = Family(
    "kube_spread_constraint_lower_bound",
    CONSTRAINT,
    "1 where domains are inferred from pods, so that the skew may be larger.",
    "zone labels of pods, where nodes cannot be listed",
    Stability.EXPERIMENTAL,
)
CONSTRAINT_PODS: Final = Family("kube_spread_constraint_pods", CONSTRAINT, "Pods with the constraint.", "pods")
PENDING_PODS: Final = Family(
    "kube_spread_constraint_pending_pods", CONSTRAINT, "Pods with the constraint that have no node.", "pods"
)
DOMAIN_PODS: Final = Family(
    "kube_spread_constraint_domain_pods",
    (*CONSTRAINT, "domain"),
    f"Matching pods of an eligible domain, where there are up to {MOST_DOMAINS} domains.",
    "bound pods and nodes",
    Stability.EXPERIMENTAL,
)
VERDICT_PODS: Final = Family(
    "kube_spread_pods",
    (*CONSTRAINT, "verdict"),
    "Pods with the constraint by the verdict on their stored selector.",
    "labels and selectors of pods",
)
WORKLOAD_PODS: Final = Family(
    "kube_spread_workload_pods",
    WORKLOAD,
    "Running pods of a workload with replicas, on nodes that were listed.",
    "bound pods and nodes",
    Stability.EXPERIMENTAL,
)
WORKLOAD_DOMAIN_PODS: Final = Family(
    "kube_spread_workload_domain_pods",
    (*WORKLOAD, "topology_key", "domain"),
    f"Running pods of a workload in each zone that has any, where there are up to {MOST_DOMAINS} such zones.",
    "bound pods and nodes",
    Stability.EXPERIMENTAL,
)
LARGEST_DOMAIN_RATIO: Final = Family(
    "kube_spread_workload_largest_domain_ratio",
    (*WORKLOAD, "topology_key"),
    "Share of a workload's running pods in the zone, or on the node, with the most of them; from 0 to 1.",
    "bound pods and nodes",
    Stability.EXPERIMENTAL,
)
FAMILIES: Final = (
    INFO,
    READ,
    NODES,
    EVALUATED_PODS,
    EVALUATED_TEMPLATES,
    CONSTRAINTS,
    FINDINGS,
    SILENCED,
    KNOWN,
    SKIPPED,
    FINDING,
    CONSTRAINT_INFO,
    SKEW,
    MAX_SKEW,
    GLOBAL_MINIMUM,
    ELIGIBLE_DOMAINS,
    ALLOWED_DOMAINS,
    LOWER_BOUND,
    CONSTRAINT_PODS,
    PENDING_PODS,
    DOMAIN_PODS,
    VERDICT_PODS,
    WORKLOAD_PODS,
    WORKLOAD_DOMAIN_PODS,
    LARGEST_DOMAIN_RATIO,
)
"""All families, in the order of a page."""
