"""The labels that nodes lack: commands where the values are known, and else the form of the command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubectl_spread.kube.api.content import is_object_name, label_value_problems
from kubectl_spread.kube.api.labels import HOSTNAME
from kubectl_spread.rules.constraints.workload import CURRENT_KEYS
from kubectl_spread.rules.remedy import Remedy, literal
from kubectl_spread.rules.rule_input import RuleInput


def labelled(nodes: Iterable[str], key: str, rule_input: RuleInput) -> Remedy:
    """Return how nodes get a topology key, or another key to use instead of a deprecated one.

    A value is known where a node has the deprecated label that the key replaces, and for the name of the node.
    """
    if key in CURRENT_KEYS:
        return Remedy(literal(f"use {CURRENT_KEYS[key][1]} in the pod template: {key} is deprecated"))
    values = {node: _known_value(node, key, rule_input.audit.nodes.labels_of(node)) for node in nodes}
    usable = [value and not label_value_problems(value) and is_object_name(node) for node, value in values.items()]
    if not (usable and all(usable)):
        command = f"kubectl label node NODE {key}=VALUE"
        return Remedy(literal(f"label the nodes ({command}), or use a topology key that they have"))
    nodes_by_value: dict[str, list[str]] = {}
    for node, value in sorted(values.items()):
        nodes_by_value.setdefault(value, []).append(node)
    commands = tuple(("kubectl", "label", "node", *named, f"{key}={value}") for value, named in nodes_by_value.items())
    source = "their names" if key == HOSTNAME else "the values of their deprecated label"
    return Remedy(literal(f"label the nodes with {source}, or use a topology key that they have"), commands)


def _known_value(node: str, key: str, labels: Mapping[str, str]) -> str:
    """Return the value that a node should have for a key; "" where only its operator knows."""
    if key == HOSTNAME:
        return node
    return next((labels.get(old, "") for old, (_, current) in CURRENT_KEYS.items() if current == key), "")
