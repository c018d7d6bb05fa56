"""Random workloads that become uneven in one of several ways."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from tests.builders import HOSTNAME, ZONE, Json

_HASH = "pod-template-hash"


class Way(Enum):
    """The cause of the unevenness."""

    CORDONED = "some domains were cordoned while the pods were placed"
    SCALED = "a scale-down took the pods of one domain first"
    LATE = "nodes of some domains came late"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One workload: its constraint, its pods, and the nodes of each domain.

    ``held`` domains get no pods at first; a workload that is scaled down from ``before`` replicas has none of them.
    ``slots`` is how many pods each node of a domain takes. ``other_disk``: there is a node that no pod wants.
    ``stuck``: the domains that lack pods are cordoned in the end. ``patient``: each eviction waits for the one before.
    """

    way: Way
    key: str
    max_skew: int
    replicas: int
    before: int
    domains: Mapping[str, int]
    held: Sequence[str]
    slots: Mapping[str, int]
    fields: Json
    spec: Json = field(default_factory=dict)
    tainted: Sequence[str] = ()
    other_disk: bool = False
    stuck: bool = False
    patient: bool = True

    def names(self, domain: str) -> list[str]:
        """Return the nodes of one domain."""
        return [domain] if self.key == HOSTNAME else [f"{domain}{number}" for number in range(self.domains[domain])]

    def room(self, domain: str) -> int:
        """Return how many pods the nodes of one domain take in all."""
        return self.slots[domain] * len(self.names(domain))


def random_case(seed: int) -> Case:
    """Return the case of a seed."""
    chance = random.Random(seed)
    way = chance.choice(list(Way))
    key = chance.choice([ZONE, HOSTNAME])
    max_skew = chance.choice([1, 1, 2, 3])
    number = chance.randint(2, 3) if max_skew > 1 else chance.randint(2, 5)
    domains = {f"{letter}0" if key == HOSTNAME else letter: chance.randint(1, 2) for letter in "abcdef"[:number]}
    held = [] if way is Way.SCALED else chance.sample(sorted(domains), chance.randint(1, max(1, number // 2)))
    open_at_first = number - len(held)
    if way is Way.SCALED:
        before = number * (max_skew + 2)
        replicas = before - chance.randint(max_skew + 1, max_skew + 2)
    else:
        before = replicas = chance.randint(max(4, open_at_first * max_skew + 1), 14)
    fields: Json = {"match": [_HASH]} if chance.random() < 0.3 else {}
    if chance.random() < 0.4:
        fields["minDomains"] = chance.randint(2, max(2, open_at_first)) if open_at_first > 1 else 1
    if way is Way.CORDONED or chance.random() < 0.3:
        fields["nodeTaintsPolicy"] = "Honor"
    spec: Json = {}
    tainted: Sequence[str] = ()
    if chance.random() < 0.3:
        tainted = chance.sample(sorted(domains), 1)
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    most = -(-before // open_at_first) + max_skew
    tight = chance.random() < 0.5
    slots = {
        domain: chance.randint(1, most) if domain in held and way is not Way.SCALED else most for domain in domains
    }
    other_disk = chance.random() < 0.3
    if other_disk:
        spec["nodeSelector"] = {"disk": "ssd"}
    return Case(
        way=way,
        key=key,
        max_skew=max_skew,
        replicas=replicas,
        before=before,
        domains=domains,
        held=held,
        slots=slots if tight else dict.fromkeys(domains, 60),
        fields=fields,
        spec=spec,
        tainted=tainted,
        other_disk=other_disk,
        stuck=chance.random() < 0.08,
        patient=chance.random() < 0.5,
    )
