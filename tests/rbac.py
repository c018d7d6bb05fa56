"""The RBAC manifests of the documentation, permission by permission."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Final, NamedTuple

from ruamel.yaml import YAML

from tests.generated import ROOT

DIRECTORY: Final = ROOT / "docs" / "rbac"


class Permission(NamedTuple):
    """A verb on a resource, or on a path; ``name`` limits it to one object."""

    verb: str
    group: str
    resource: str
    name: str = ""

    def __str__(self) -> str:
        """Return it as kubectl does: ``list deployments.apps``, ``get namespaces/shop``, ``get /metrics``."""
        resource = f"{self.resource}{'.' if self.group else ''}{self.group}"
        return f"{self.verb} {resource}{'/' if self.name else ''}{self.name}"

    @property
    def rule(self) -> dict[str, Any]:
        """The rule that allows this permission alone."""
        if self.resource.startswith("/"):
            return {"nonResourceURLs": [self.resource], "verbs": [self.verb]}
        names = {"resourceNames": [self.name]} if self.name else {}
        return {"apiGroups": [self.group], "resources": [self.resource], **names, "verbs": [self.verb]}


def manifest(name: str) -> dict[str, Any]:
    """Return the role in a file of ``docs/rbac``."""
    role: dict[str, Any] = YAML(typ="safe").load(DIRECTORY / f"{name}.yaml")
    return role


def permissions(*names: str) -> list[Permission]:
    """Return the permissions of the roles in these files, sorted."""
    return permissions_of(map(manifest, names))


def permissions_of(roles: Iterable[Mapping[str, Any]]) -> list[Permission]:
    """Return the permissions of roles, sorted."""
    return sorted({allowed for role in roles for rule in role["rules"] for allowed in _of(rule)})


def _of(rule: dict[str, Any]) -> Iterable[Permission]:
    groups = rule.get("apiGroups", [""])
    names = rule.get("resourceNames", [""])
    return (Permission(*parts) for parts in product(rule["verbs"], groups, _targets(rule), names))


def _targets(rule: dict[str, Any]) -> list[str]:
    assert not rule.keys() - {"apiGroups", "resources", "nonResourceURLs", "resourceNames", "verbs"}
    return [*rule.get("resources", ()), *rule.get("nonResourceURLs", ())]
