"""Random cases: questions for the apiserver and the scheduler; equal seeds give equal cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, TypeVar

import msgspec

from kubectl_spread.kube import apiserver
from kubectl_spread.kube.api.types import Pod
from kubectl_spread.kube.features import behaviour, gates
from kubectl_spread.sources.decode import json_objects
from tests.builders import HOSTNAME, ZONE, Json
from tests.conformance import advice_cases, resource_cases

T = TypeVar("T")

KEYS: Final = ("app", "rev", "tenant", "pod-template-hash", "example.com/role")
BAD_KEYS: Final = (
    "",
    "/simple",
    "example.com/",
    "a/b/c",
    "-dash",
    "foo bar",
    "Example.com/role",
    "exa_mple.com/role",
    "caf\u00e9",
    "caf\u00e9.com/role",
    'quo"te\\',
    "tab\tnew\nline",
    "soft\u00adhyphen",
    "no\u00a0break",
    "\U0001f600",
    "\x7f\x01",
    "k" * 63,
    "k" * 64,
    "\u00e9" * 32,
    "p" * 253 + "/role",
    "p" * 254 + "/role",
    ".dot",
)
VALUES: Final = ("web", "r1", "r2", "a", "b", "")
BAD_VALUES: Final = ("bad value", "-x", "v" * 63, "v" * 64, "\u00e9", "\u00e9" * 32, "x\n", "a/b", "_")
NAMESPACES: Final = ("default", "other", "third")
BAD_NAMESPACES: Final = ("Bad_Namespace", "a.b", "", "n" * 63, "n" * 64, "-a", "a..b", "n" * 254)
DEPRECATED_TOPOLOGY_KEYS: Final = ("failure-domain.beta.kubernetes.io/zone", "beta.kubernetes.io/os")
TOPOLOGY_KEYS: Final = (ZONE, HOSTNAME, "rack")
BAD_TOPOLOGY_KEYS: Final = ("", "foo bar", "/x", "a/b/c", *DEPRECATED_TOPOLOGY_KEYS)
SELECTOR_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
NUMBERS: Final = (
    "4",
    "5",
    "10",
    "007",
    "-3",
    "+5",
    "1_0",
    "1.5",
    "",
    "abc",
    "9223372036854775807",
    "9223372036854775808",
)
EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")
TAINTED_KEYS: Final = ("gpu", "dedicated", "node.kubernetes.io/unschedulable")
TAINT_VALUES: Final = ("", "a", "5", "10", "007", "-3")
PHASES: Final = (*["Running"] * 8, "Pending", "Unknown", "Succeeded", "Failed", "")
OWNERS: Final = (
    ("ReplicaSet", "apps/v1"),
    ("ReplicaSet", "apps/v1"),
    ("StatefulSet", "apps/v1"),
    ("ReplicationController", "v1"),
    ("DaemonSet", "apps/v1"),
    ("ReplicaSet", "argoproj.io/v1alpha1"),
)


class Generator:
    """Makes the parts of one case; ``spoil`` is the chance that a field gets a value that the API refuses."""

    def __init__(self, random: Random, *, spoil: float, alike: bool) -> None:
        """Draw from ``random``; ``alike`` leaves few labels to draw from, so that pods match selectors."""
        self.random = random
        self.spoil = spoil
        self.hard = 0.5
        self.alike = alike
        self.label_keys = random.sample(KEYS, random.randint(1, 3)) if alike else KEYS
        self.label_values = random.sample(VALUES, random.randint(1, 2)) if alike else VALUES

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, good: Sequence[T], bad: Sequence[T] = ()) -> T:
        """Return one of ``good``, or of ``bad`` if the case is to be spoilt here."""
        return self.random.choice(bad if bad and self.chance(self.spoil) else good)

    def some(self, most: int, make: Callable[[], T]) -> list[T]:
        """Return up to ``most``."""
        return [make() for _ in range(self.random.randint(0, most))]

    def fields(self, **makers: tuple[float, Callable[[], object]]) -> Json:
        """Return an object: each field with its chance."""
        return {name: make() for name, (probability, make) in makers.items() if self.chance(probability)}

    def key(self) -> str:
        return self.pick(self.label_keys, BAD_KEYS)

    def value(self) -> str:
        return self.pick(self.label_values, BAD_VALUES)

    def labels(self) -> Json:
        generated = {key: self.value() for key in self.label_keys if self.chance(0.75)}
        if self.chance(self.spoil):
            generated[self.pick(BAD_KEYS)] = self.value()
        return generated

    def few_labels(self) -> Json:
        return {self.key(): self.value() for _ in range(self.random.choice((0, 1, 1, 2)))}

    def requirement(self) -> Json:
        operator = self.pick(SELECTOR_OPERATORS, ("", "in", "Gt", "Equals"))
        wants_values = operator in ("In", "NotIn") or self.chance(self.spoil)
        generated: Json = {"key": self.key(), "operator": operator}
        if wants_values and not self.chance(self.spoil):
            generated["values"] = [self.value() for _ in range(self.random.choice((1, 1, 2)))]
        elif self.chance(0.1):
            generated["values"] = []
        return generated

    def selector(self) -> Json:
        if self.chance(0.15):
            return {}
        generated = self.fields(
            matchLabels=(0.6, self.few_labels),
            matchExpressions=(0.5, lambda: self.some(1 if self.alike else 3, self.requirement)),
        )
        return generated or {"matchLabels": {"app": self.value()}}

    def selector_or_null(self) -> Json | None:
        """Return a selector or null, which is not valid with keys to match."""
        return None if self.chance(0.05) else self.selector()

    def keys(self) -> list[str]:
        generated = [self.key() for _ in range(self.random.choice((0, 1, 1, 1, 2, 3)))]
        return generated if self.chance(0.3) else list(dict.fromkeys(generated))

    def constraint(self) -> Json:
        good = "DoNotSchedule" if self.chance(self.hard) else "ScheduleAnyway"
        action = self.pick((good,), ("", "doNotSchedule", "Maybe"))
        generated = {
            "maxSkew": self.pick((1, 1, 1, 2, 3, 5), (0, -1, 2**31 - 1, -(2**31))),
            "topologyKey": self.pick(TOPOLOGY_KEYS, BAD_TOPOLOGY_KEYS),
            "whenUnsatisfiable": action,
            **self.fields(
                labelSelector=(0.95, self.selector_or_null),
                matchLabelKeys=(0.6, self.keys),
                nodeAffinityPolicy=(0.3, self.policy),
                nodeTaintsPolicy=(0.4, self.policy),
            ),
        }
        if action == "DoNotSchedule" or self.chance(self.spoil):
            generated |= self.fields(minDomains=(0.3, lambda: self.pick((1, 2, 3, 4), (0, -1, 2**31 - 1))))
        return generated

    def policy(self) -> str:
        return self.pick(("Honor", "Ignore"), ("", "honor", "Maybe"))

    def constraints(self) -> list[Json]:
        """Return constraints whose topologyKey and whenUnsatisfiable differ, unless the case is spoilt."""
        generated = [self.constraint() for _ in range(self.random.choice((0, 1, 1, 1, 2, 2, 3)))]
        if self.chance(self.spoil):
            return generated
        pairs = {(constraint["topologyKey"], constraint["whenUnsatisfiable"]): constraint for constraint in generated}
        return list(pairs.values())

    def term(self) -> Json:
        return {
            "topologyKey": self.pick(TOPOLOGY_KEYS, BAD_TOPOLOGY_KEYS),
            **self.fields(
                labelSelector=(0.95, self.selector_or_null),
                namespaces=(0.2, lambda: self.some(2, lambda: self.pick(NAMESPACES, BAD_NAMESPACES))),
                namespaceSelector=(0.2, self.selector_or_null),
                matchLabelKeys=(0.4, self.keys),
                mismatchLabelKeys=(0.3, self.keys),
            ),
        }

    def weighted(self) -> Json:
        return {"weight": self.pick((1, 50, 100), (0, 101, -5)), "podAffinityTerm": self.term()}

    def pod_affinity(self) -> Json:
        return self.fields(
            requiredDuringSchedulingIgnoredDuringExecution=(0.6, lambda: self.some(2, self.term)),
            preferredDuringSchedulingIgnoredDuringExecution=(0.5, lambda: self.some(2, self.weighted)),
        )

    def node_affinity(self) -> Json:
        terms = [self.node_term() for _ in range(self.random.choice((1, 1, 2)))]
        return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}

    def node_term(self) -> Json:
        return self.fields(
            matchExpressions=(0.8, lambda: self.some(2, self.node_requirement)),
            matchFields=(0.2, lambda: [self.field_requirement()]),
        )

    def node_requirement(self) -> Json:
        operator = self.random.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        if operator in ("Gt", "Lt"):
            return {"key": "cpu", "operator": operator, "values": [self.random.choice(NUMBERS)]}
        key = self.random.choice(("pool", ZONE, "rack"))
        if operator in ("Exists", "DoesNotExist"):
            return {"key": key, "operator": operator}
        values = [self.random.choice(("a", "b", "web", "")) for _ in range(self.random.choice((1, 2)))]
        return {"key": key, "operator": operator, "values": values}

    def field_requirement(self) -> Json:
        name = self.random.choice(("n0", "n1", "gone"))
        return {"key": "metadata.name", "operator": self.random.choice(("In", "NotIn")), "values": [name]}

    def toleration(self) -> Json:
        operator = self.random.choice(("", "Equal", "Exists", "Exists", "Lt", "Gt", "Weird"))
        return {
            **self.fields(key=(0.8, lambda: self.random.choice(TAINTED_KEYS))),
            "operator": operator,
            **self.fields(
                value=(0.5, lambda: self.random.choice(TAINT_VALUES)),
                effect=(0.6, lambda: self.random.choice(EFFECTS)),
            ),
        }

    def taint(self) -> Json:
        return {
            "key": self.random.choice(TAINTED_KEYS),
            "effect": self.random.choice(EFFECTS),
            **self.fields(value=(0.5, lambda: self.random.choice(TAINT_VALUES))),
        }

    def node(self, index: int) -> Json:
        name = f"n{index}"
        labels = self.fields(
            **{
                HOSTNAME: (0.96, lambda: name),
                ZONE: (0.92, lambda: self.random.choice(("a", "a", "b", "c", ""))),
                "rack": (0.8, lambda: self.random.choice(("r1", "r2", ""))),
                "pool": (0.7, lambda: self.random.choice(("web", "db"))),
                "cpu": (0.5, lambda: self.random.choice(NUMBERS)),
            }
        )
        spec = self.fields(
            unschedulable=(0.1, lambda: True),
            taints=(0.3, lambda: [self.taint() for _ in range(self.random.choice((1, 1, 2)))]),
        )
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}

    def cluster_pod(self, index: int, nodes: int) -> Json:
        """Return a pod as in a scheduler's cluster: bound or not, finished, terminating, of any namespace."""
        metadata = {
            "name": f"p{index}",
            "namespace": self.random.choice((*["default"] * 6, "other", "third")),
            "labels": self.labels(),
            **self.fields(deletionTimestamp=(0.1, lambda: "2026-09-02T10:00:00Z")),
        }
        spec = self.fields(nodeName=(0.9, lambda: f"n{self.random.randint(0, nodes)}"))
        return {"metadata": metadata, "spec": spec, "status": {"phase": self.random.choice(PHASES)}}

    def pod(self, **spec: tuple[float, Callable[[], object]]) -> Json:
        metadata = {"name": "p", "namespace": "default", "labels": self.labels()}
        return {"metadata": metadata, "spec": self.fields(**spec)}

    def api_pod(self) -> Json:
        """Return a pod with the fields that the merge and the validation read."""
        return self.pod(topologySpreadConstraints=(0.9, self.constraints), affinity=(0.5, self.affinity))

    def affinity(self) -> Json:
        return self.fields(podAffinity=(0.6, self.pod_affinity), podAntiAffinity=(0.7, self.pod_affinity))

    def placed_pod(self) -> Json:
        """Return a pod with the fields that spreading reads."""
        return self.pod(
            topologySpreadConstraints=(0.97, self.constraints),
            nodeSelector=(0.1, lambda: {self.random.choice(("pool", ZONE)): self.random.choice(("web", "a"))}),
            affinity=(0.2, lambda: {"nodeAffinity": self.node_affinity()}),
            tolerations=(0.4, lambda: self.some(2, self.toleration)),
        )

    def owned_pod(self) -> Json:
        """Return a pod without constraints, which gets default constraints, with or without an owner."""
        pod = self.placed_pod()
        pod["spec"].pop("topologySpreadConstraints", None)
        kind, version = self.random.choice(OWNERS)
        owner = {"apiVersion": version, "kind": kind, "name": "owner", "uid": "u", "controller": self.chance(0.9)}
        return {**pod, "metadata": {**pod["metadata"], **self.fields(ownerReferences=(0.8, lambda: [owner]))}}

    def defaults(self) -> Json:
        """Return default constraints and the objects that their selectors are deduced from."""
        return {
            "services": self.some(2, lambda: self.selecting(self.few_labels)),
            "replicationControllers": self.some(1, lambda: self.selecting(self.few_labels, name="owner")),
            "replicaSets": self.some(1, lambda: self.selecting(self.selector, name="owner")),
            "statefulSets": self.some(1, lambda: self.selecting(self.selector, name="owner")),
            **({"systemDefaults": True} if self.chance(0.5) else {"defaultConstraints": self.default_constraints()}),
        }

    def selecting(self, selector: Callable[[], Json], name: str = "") -> Json:
        """Return an object whose spec has a selector or is empty."""
        metadata = {"name": name or f"s{self.random.random()}", "namespace": self.random.choice(NAMESPACES[:2])}
        return {"metadata": metadata, "spec": self.fields(selector=(0.9, selector))}

    def default_constraints(self) -> list[Json]:
        """Return constraints as a scheduler's configuration has them, without selectors."""
        return [
            {name: field for name, field in constraint.items() if name != "labelSelector"}
            for constraint in self.constraints()
        ]

    def cluster(self) -> Json:
        nodes = self.random.choice((0, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7))
        return {
            "nodes": [self.node(index) for index in range(nodes)],
            "pods": [self.cluster_pod(index, nodes) for index in range(self.random.choice((0, 4, 8, 12, 16)))],
        }


def _create(generator: Generator) -> Json:
    return {"pod": generator.api_pod()}


def _update(generator: Generator) -> Json:
    """Return a stored pod, merged or not, and its update with other labels, or sometimes with a forbidden new spec."""
    old = generator.api_pod()
    if generator.chance(0.6):
        old = _merged(old)
    labels = generator.labels() if generator.chance(0.8) else old["metadata"]["labels"]
    spec = generator.api_pod()["spec"] if generator.chance(0.15) else old["spec"]
    return {"old": old, "pod": {"metadata": {**old["metadata"], "labels": labels}, "spec": spec}}


def _template(generator: Generator) -> Json:
    pod = generator.api_pod()
    if generator.chance(0.2):
        pod = _merged(pod)
    template = {"metadata": {"labels": {**pod["metadata"]["labels"], "app": "web"}}, "spec": pod["spec"]}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"deployment": {"metadata": {"name": "d", "namespace": "default"}, "spec": spec}}


def _filter(generator: Generator, *, hard: float = 0.8) -> Json:
    generator.hard = hard
    if generator.chance(0.2):
        return {"pod": generator.owned_pod(), **generator.cluster(), **generator.defaults()}
    pod = generator.placed_pod()
    if generator.chance(0.5):
        pod = _merged(pod)
    if generator.chance(0.2):
        pod["metadata"] = {**pod["metadata"], "labels": generator.labels()}
    return {"pod": pod, **generator.cluster()}


def _scores(generator: Generator) -> Json:
    generated = _filter(generator, hard=0.2)
    generated["feasible"] = [node["metadata"]["name"] for node in generated["nodes"] if generator.chance(0.8)]
    return generated


def _affinity(generator: Generator) -> Json:
    generated = generator.cluster()
    for pod in generated["pods"]:
        if generator.chance(0.5):
            pod["spec"]["affinity"] = generator.affinity()
    generated["namespaces"] = [
        {"metadata": {"name": name, "labels": generator.few_labels()}} for name in NAMESPACES if generator.chance(0.8)
    ]
    pod = generator.pod(affinity=(0.8, generator.affinity))
    pod["metadata"]["namespace"] = generator.random.choice(NAMESPACES)
    return {"pod": pod, **generated}


def _merged(pod: Json) -> Json:
    """Return a pod as a merging apiserver stores it."""
    typed = json_objects.decode(msgspec.json.encode(pod), Pod)
    spec = apiserver.prepare_for_create(typed.spec, typed.metadata.labels, _MERGING)
    return {**pod, "spec": {**pod["spec"], **_rewritten(pod["spec"], msgspec.to_builtins(spec))}}


def _rewritten(written: Json, stored: Any) -> Json:
    return {
        name: stored[name] for name in ("topologySpreadConstraints", "affinity") if name in written and name in stored
    }


_MERGING: Final = behaviour(37, gates(37, {}))

MAKERS: Final[dict[str, Callable[[Generator], Json]]] = {
    "create": _create,
    "update": _update,
    "template": _template,
    "filter": _filter,
    "scores": _scores,
    "affinity": _affinity,
    "resources": lambda generator: resource_cases.question(generator.random),
}
"""Maps a kind of question to the function that makes its cases."""
KINDS: Final = tuple(MAKERS)
ADVICE_KINDS: Final = ("next pod", "next pods", "causes")
"""Kinds whose questions for the scheduler depend on our own answer."""
_API_KINDS: Final = frozenset({"create", "update", "template"})


def case(kind: str, seed: int, index: int) -> Json:
    """Return one case; the same for the same kind, seed and index.

    Half of the cases for the apiserver are valid, so that rules behind the first errors are reached too. All cases for
    the scheduler are valid, because only valid objects are stored.
    """
    random = Random(f"{seed}/{kind}/{index}")
    if kind in ADVICE_KINDS:
        return {"kind": kind, **advice_cases.question(random, spread_alone=kind == "next pods")}
    api = kind in _API_KINDS
    spoil = random.choice((0.0, 0.04)) if api else 0.0
    return {"kind": kind, **MAKERS[kind](Generator(random, spoil=spoil, alike=not api or random.random() < 0.3))}
