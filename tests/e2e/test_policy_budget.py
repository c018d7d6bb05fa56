"""The policies stay within the cost that kube-apiserver allows, for templates far beyond those that people write."""

from __future__ import annotations

from functools import partial

import pytest

from tests.builders import HOSTNAME, Json, affinity, constraint, term
from tests.controlplane.cluster import ControlPlane
from tests.e2e.guarded import EARLY, refusal
from tests.e2e.manifests import deployment, pod

pytestmark = pytest.mark.e2e

TERMS = 60
KEYS = [f"key-{number}" for number in range(60)]
VALUES = [f"value-{number}" for number in range(60)]
SELECTED = {f"selected-{number}": VALUES[-1] for number in range(20)}
LABELS = {"app": "big", **SELECTED, **dict.fromkeys(KEYS, "x"), **{f"label-{number}": "x" for number in range(300)}}
SELECTOR: Json = {"matchExpressions": [{"key": key, "operator": "In", "values": VALUES} for key in SELECTED]}
COUNTER = "apiserver_validating_admission_policy_check_total{"
"""It counts refused requests, and accepted requests that a policy could not evaluate."""
ACCEPTED = 'enforcement_action="allow"'


def _big(kind: str, terms: int, *absent: str) -> Json:
    """Return a pod or a Deployment with so many constraints and as many affinity terms."""
    constraints = [
        constraint(key=f"example.com/{number}", hard=False, selects=SELECTOR, match=KEYS) for number in range(terms)
    ]
    constraints[-1]["matchLabelKeys"] = [*KEYS[len(absent) :], *absent]
    each = term(key=HOSTNAME, selects=SELECTOR, match=KEYS[:30], mismatch=KEYS[30:])
    more = affinity("podAntiAffinity", *[each] * terms)
    if kind == "Pod":
        return pod("big", constraints, labels=LABELS, namespace=EARLY, affinity=more)
    return deployment("big", constraints, labels=LABELS, namespace=EARLY, affinity=more)


def _not_evaluated(cluster: ControlPlane) -> list[str]:
    """Return the counts of accepted requests that a policy could not evaluate."""
    lines = cluster.api.raw("/metrics", "text/plain").decode().splitlines()
    return [line for line in lines if line.startswith(COUNTER) and ACCEPTED in line]


@pytest.mark.parametrize("kind", ["Pod", "Deployment"])
def test_sixty_constraints_and_terms_are_evaluated(guarded_cluster: ControlPlane, kind: str) -> None:
    """Each has 20 requirements of 60 values and 60 keys; an absent key in the last one is found."""
    before = _not_evaluated(guarded_cluster)
    assert refusal(partial(guarded_cluster.api.create, _big(kind, TERMS), dryRun="All")) == ""
    message = refusal(partial(guarded_cluster.api.create, _big(kind, TERMS, "absent"), dryRun="All"))
    assert message.startswith("SPR107 absent-key: matchLabelKeys lists absent, ")
    assert _not_evaluated(guarded_cluster) == before


def test_an_object_with_too_many_keys_passes(guarded_cluster: ControlPlane) -> None:
    """Each of its keys would be compared with all others, which the budget of kube-apiserver does not count."""
    keys = [f"absent-{number}" for number in range(20_000)]
    absent = partial(_with_keys, guarded_cluster, EARLY)
    assert refusal(partial(absent, keys[:500])).startswith("SPR107 absent-key: ")
    assert refusal(partial(absent, keys)) == ""


def _with_keys(cluster: ControlPlane, namespace: str, keys: list[str]) -> Json:
    return cluster.api.create(deployment("big", [constraint(match=keys)], namespace=namespace), dryRun="All")


def test_an_object_beyond_the_budget_is_accepted(guarded_cluster: ControlPlane) -> None:
    """The failure policy is Ignore, and the metrics of kube-apiserver count the request."""
    before = _not_evaluated(guarded_cluster)
    keys = [constraint(key=f"example.com/{number}", hard=False, match=["absent"]) for number in range(6_000)]
    guarded_cluster.api.create(deployment("big", keys, namespace=EARLY), dryRun="All")
    after = _not_evaluated(guarded_cluster)
    assert before != after
    assert all('policy="kubectl-spread-workloads"' in line for line in {*after} - {*before})
