"""SPR2xx: fields about spread and affinity that the API does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_spread.kube.api.fieldpath import FieldPath
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import Evidence, Rule
from kubectl_spread.rules.rule_input import RuleInput

_RENAME: Final = "rename it to {name}"
_MOVE: Final = "move it to {meant}"


def _unknown_field(subject: RuleInput) -> Iterator[Evidence]:
    kind = "Pod" if subject.template is None else subject.template.kind
    for field, pods in subject.unknown_fields:
        name = str(field.intended[-1]) if field.intended else ""
        values = {"field": str(field.path), "kind": kind, "meant": str(field.intended), "name": name}
        yield Evidence(pods, values, fix=_fix(field.path, field.intended))


def _fix(path: FieldPath, intended: FieldPath) -> str | None:
    """Return the fix for a field; None if the intended field is unknown."""
    if not intended:
        return None
    return _RENAME if path[:-1] == intended[:-1] else _MOVE


UNKNOWN_FIELD: Final = Rule(
    code="SPR215",
    name="unknown-field",
    severity=Severity.ERROR,
    summary="A manifest has a spread or affinity field that is misspelt or at the wrong place",
    message=(
        "a {kind} has no field {field}: kube-apiserver refuses the manifest, or drops the field where validation is "
        "not strict, and the pods are placed without it"
    ),
    why=(
        "kubectl asks kube-apiserver for strict validation, which refuses unknown fields. Other clients do not, and "
        "then the field is dropped without an error. Fields inside spread constraints, pod affinity terms and their "
        "selectors are checked, and fields with the names of these, or nearly so, at another place. Objects that were "
        "read from a cluster never have unknown fields."
    ),
    fix="remove it: nothing reads it",
    source="https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation",
    needs_nodes=False,
    check=_unknown_field,
)
