"""Random pods, and changes of their labels one after another; equal seeds give equal changes."""

from __future__ import annotations

from random import Random
from typing import Any, Final, NamedTuple

from tests.builders import Json
from tests.conformance.policies.objects import CONTAINERS, NAMESPACE, Objects

_LONGEST: Final = 4


class Relabelling(NamedTuple):
    """A pod and the changes of its labels; a label that becomes null is removed."""

    pod: Json
    changes: list[Json]


def case(seed: int, index: int) -> Relabelling:
    """Return one pod with changes; the same for the same seed and index."""
    random = Random(f"{seed}/relabelling/{index}")
    pods = Objects(random, "Pod")
    labels = pods.pod_labels = pods.labels()
    spec = {
        **CONTAINERS,
        **pods.fields(
            topologySpreadConstraints=(0.9, super(Objects, pods).constraints),
            affinity=(0.6, pods.affinity),
            nodeName=(0.3, lambda: "n1"),
        ),
    }
    metadata = {"name": f"relabelled-{seed}-{index}", "namespace": NAMESPACE, "labels": labels}
    changes: list[Json] = []
    present = dict(labels)
    keys = _listed(spec)
    for _ in range(random.randint(1, _LONGEST)):
        changes.append(_change(pods, keys, labels, present))
        for key, value in changes[-1].items():
            present = {name: text for name, text in {**present, key: value}.items() if text is not None}
    return Relabelling({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, changes)


def _listed(value: Any) -> list[str]:
    """Return the keys in all lists of keys below a field."""
    if isinstance(value, list):
        return [key for entry in value for key in _listed(entry)]
    if not isinstance(value, dict):
        return []
    lists = [value.get(field, []) for field in ("matchLabelKeys", "mismatchLabelKeys")]
    return [key for keys in (*lists, *map(_listed, value.values())) for key in keys]


def _change(pods: Objects, keys: list[str], original: Json, present: Json) -> Json:
    """Return a change of one label or two, mostly of listed keys.

    A label gets a new value or none, a label is new, or all labels get the values of the creation.
    """
    random = pods.random
    change: Json = {}
    for _ in range(random.choice((1, 1, 1, 2))):
        key = random.choice([*keys, *keys, *sorted({*original, *present}), pods.key()])
        match random.choice(("change", "change", "remove", "restore", "other")):
            case "change":
                change[key] = random.choice(("r1", "r2", "r3", ""))
            case "remove":
                change[key] = None
            case "restore":
                change |= {name: original.get(name) for name in {**present, **original}}
            case "other":
                change["example.com/other"] = random.choice(("a", "b"))
    return change
