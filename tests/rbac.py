"""The RBAC manifests of the documentation, permission by permission."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any, Final, NamedTuple

from ruamel.yaml import YAML

from tests.generated import ROOT

FOLDER: Final = ROOT / "docs" / "rbac"


class Permission(NamedTuple):
    """One thing that a user may do; what is not in an API group may be a path."""

    verb: str
    group: str
    resource: str

    def __str__(self) -> str:
        """Return it as kubectl writes it: ``list deployments.apps``, ``get /metrics``."""
        return f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group}"

    @property
    def rule(self) -> dict[str, Any]:
        """The rule that allows this and nothing else."""
        if self.resource.startswith("/"):
            return {"nonResourceURLs": [self.resource], "verbs": [self.verb]}
        return {"apiGroups": [self.group], "resources": [self.resource], "verbs": [self.verb]}


def manifest(name: str) -> dict[str, Any]:
    """Return the role that a file in ``docs/rbac`` holds."""
    found: dict[str, Any] = YAML(typ="safe").load(FOLDER / f"{name}.yaml")
    return found


def permissions(*names: str) -> list[Permission]:
    """Return what the roles of these files allow, sorted."""
    return sorted({allowed for name in names for rule in manifest(name)["rules"] for allowed in _of(rule)})


def _of(rule: dict[str, Any]) -> Iterable[Permission]:
    groups = rule.get("apiGroups", [""])
    return (Permission(*parts) for parts in product(rule["verbs"], groups, _targets(rule)))


def _targets(rule: dict[str, Any]) -> list[str]:
    assert not rule.keys() - {"apiGroups", "resources", "nonResourceURLs", "verbs"}
    return [*rule.get("resources", ()), *rule.get("nonResourceURLs", ())]
