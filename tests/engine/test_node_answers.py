"""The answers about nodes that need no simulated cluster are those of the simulated cluster."""

from __future__ import annotations

import random

import pytest

from kubectl_spread.engine.node_answers import answers_of
from tests.audits import audit, engine_of
from tests.builders import HOSTNAME, ZONE, Json, affinity, term
from tests.plan import small

SEEDS = range(150)


def odd(resource: Json, seed: int) -> Json:
    """Give a pod a host port, or a term of pod affinity or anti-affinity, now and then."""
    if resource["kind"] != "Pod":
        return resource
    chance = random.Random(f"{seed} {resource['metadata']['labels']}")
    spec = dict(resource["spec"])
    if chance.random() < 0.2:
        spec["containers"] = [{**each, "ports": [{"containerPort": 80, "hostPort": 80}]} for each in spec["containers"]]
    if chance.random() < 0.3:
        group = chance.choice(["podAntiAffinity", "podAntiAffinity", "podAffinity"])
        spec["affinity"] = affinity(group, term(key=chance.choice([HOSTNAME, ZONE])))
    return {**resource, "spec": spec}


@pytest.mark.parametrize("varied", [False, True])
def test_node_answers_are_those_of_the_simulated_cluster(*, varied: bool) -> None:
    """They are about pending pods, and about one more pod like each that runs."""
    compared, refused = 0, 0
    for seed in SEEDS:
        objects = [odd(each, seed) for each in small.cluster_of(f"answers-{seed}", varied=varied)]
        evaluation = audit(*objects)
        engine = engine_of(evaluation)
        for group in evaluation.groups:
            for pod in group.pods:
                if pod.terminating or pod.gates:
                    continue
                answers = answers_of(group.evaluation, pod, evaluation)
                destinations = engine.next_destinations(pod) if pod.node else engine.destinations(pod)
                if answers.unknown or destinations.unknown:
                    continue
                free = sorted(answers.free())
                assert free == destinations.allowed, (seed, pod.name)
                compared += 1
                refused += len(free) < len(evaluation.nodes.nodes)
    assert compared > 500
    assert refused > 100
