"""The RBAC manifests of the documentation, permission by permission."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any, Final, NamedTuple

from ruamel.yaml import YAML

from tests.generated import ROOT

DIRECTORY: Final = ROOT / "docs" / "rbac"


class Permission(NamedTuple):
    """One thing that a user may do; what is not in an API group may be a path, and ``name`` the only object."""

    verb: str
    group: str
    resource: str
    name: str = ""

    def __str__(self) -> str:
        """Return it as kubectl writes it: ``list deployments.apps``, ``get namespaces/shop``, ``get /metrics``."""
        resource = f"{self.resource}{'.' if self.group else ''}{self.group}"
        return f"{self.verb} {resource}{'/' if self.name else ''}{self.name}"

    @property
    def rule(self) -> dict[str, Any]:
        """The rule that allows this and nothing else."""
        if self.resource.startswith("/"):
            return {"nonResourceURLs": [self.resource], "verbs": [self.verb]}
        names = {"resourceNames": [self.name]} if self.name else {}
        return {"apiGroups": [self.group], "resources": [self.resource], **names, "verbs": [self.verb]}


def manifest(name: str) -> dict[str, Any]:
    """Return the role that a file in ``docs/rbac`` holds."""
    role: dict[str, Any] = YAML(typ="safe").load(DIRECTORY / f"{name}.yaml")
    return role


def permissions(*names: str) -> list[Permission]:
    """Return what the roles of these files allow, sorted."""
    return sorted({allowed for name in names for rule in manifest(name)["rules"] for allowed in _of(rule)})


def _of(rule: dict[str, Any]) -> Iterable[Permission]:
    groups = rule.get("apiGroups", [""])
    names = rule.get("resourceNames", [""])
    return (Permission(*parts) for parts in product(rule["verbs"], groups, _targets(rule), names))


def _targets(rule: dict[str, Any]) -> list[str]:
    assert not rule.keys() - {"apiGroups", "resources", "nonResourceURLs", "resourceNames", "verbs"}
    return [*rule.get("resources", ()), *rule.get("nonResourceURLs", ())]
