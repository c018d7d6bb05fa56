"""SPR206: spread constraints that do not select their own pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from kubectl_spread.audit.evaluation.evaluators import FIXED_TEMPLATES
from kubectl_spread.audit.snapshot.records import OwnerRecord
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.field import POD_SPEC
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.phrases import listed, named, value
from kubectl_spread.report.model import Severity
from kubectl_spread.rules import patches
from kubectl_spread.rules.model import Evidence, Remedy, Rule, RuleInput, Values, together
from kubectl_spread.rules.remedy import changed, corrected
from kubectl_spread.rules.variants import TermVariant

_FIND_THE_WRITER: Final = "find the mutating webhook or the edit that changed the label. Then {restart}"
_OF_A_POD: Final = "make labelSelector and the labels of the pod agree"
_RESTART_OR_FIND: Final = "if the template is newer than the pods, {restart}. If not, find what changed the label"


def _self_mismatch(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield the pods that their own selector does not select, separately if it would select their template's labels."""
    authored: list[tuple[TermVariant, Values]] = []
    changed: list[tuple[TermVariant, Values]] = []
    fixes: list[str] = []
    for variant in rule_input.variants:
        if not (variant.term.spread and variant.unmet):
            continue
        owner = _owner(variant, rule_input)
        if owner is None or not _template_agrees(variant, owner):
            authored.append((variant, _mismatch(variant, owner)))
        else:
            changed.append((variant, _mismatch(variant, owner)))
            fixes.append(_FIND_THE_WRITER if owner.ref.kind in FIXED_TEMPLATES else _RESTART_OR_FIND)
    yield from together(authored, fix=_OF_A_POD if rule_input.workload.kind == "Pod" else _own_selector(rule_input))
    yield from together(changed, fix=fixes[0] if fixes else None)


def _own_selector(rule_input: RuleInput) -> Remedy | None:
    """Return the patch that makes the workload's selector that of the constraint.

    None where the template was not read, or does not have this constraint any more.
    """
    template = rule_input.audit.template_of(rule_input.workload)
    if template is None:
        return None
    path = rule_input.pod_path.moved(POD_SPEC, template.path)
    terms = template.terms_by_path.get(path, ())
    if len(terms) != 1:
        return None
    if labelselectors.matches(terms[0].selector, template.labels):
        return None if rule_input.template is not None else corrected(rule_input)
    own = template.selector
    if own is None or labelselectors.is_empty(own) or not labelselectors.matches(own, template.labels):
        return None
    selectors = msgspec.to_builtins(terms[0].selector), msgspec.to_builtins(own)
    operations = (
        patches.same_topology(terms[0], rule_input.term_path),
        *patches.replaced(path / "labelSelector", *selectors),
    )
    return changed("set labelSelector to the selector of the workload, which selects its pods", operations, rule_input)


def _owner(variant: TermVariant, rule_input: RuleInput) -> OwnerRecord | None:
    """Return the owner of stored pods, if it was read and its template has labels."""
    chain = rule_input.audit.snapshot.owner_chain(variant.pods[0]) if variant.stored else ()
    return chain[0] if chain and chain[0].template_labels else None


def _template_agrees(variant: TermVariant, owner: OwnerRecord) -> bool:
    """Tell whether the labels of the pods' template meet the unmet requirements."""
    return all(labelselectors.satisfies(requirement, owner.template_labels) for requirement in variant.unmet)


def _mismatch(variant: TermVariant, owner: OwnerRecord | None) -> Values:
    requirements = labelselectors.describe_requirements(variant.authored or LabelSelector(), variant.unmet)
    keys = list(dict.fromkeys(requirement.key for requirement in variant.unmet))
    have = _label_texts(keys, variant.labels)
    return {"asked": listed(requirements), "have": have, "template": _template_text(keys, have, owner)}


def _template_text(keys: Iterable[str], have: str, owner: OwnerRecord | None) -> str:
    """Return the labels of the pods' template, as a part of the message; "" if it was not read."""
    if owner is None:
        return ""
    template = f"the template of {named(owner.ref.kind, owner.ref.name)}"
    template_labels = _label_texts(keys, owner.template_labels)
    return f", as {template} has" if template_labels == have else f", while {template} has {template_labels}"


def _label_texts(keys: Iterable[str], labels: Labels) -> str:
    return listed([f"{key}={value(labels[key])}" if key in labels else f"no label {key}" for key in keys])


SELF_MISMATCH: Final = Rule(
    code="SPR206",
    name="self-mismatch",
    severity=Severity.WARNING,
    summary="A spread constraint does not select the pods that have it",
    message=(
        "The selector requires {asked}, but the pods have {have}{template}. They do not count themselves, so they "
        "may all be placed together."
    ),
    why=(
        "A spread constraint counts the pods that its selector selects. Pods that it does not select are placed by "
        "where other pods are. None of them is counted for the next one, so all may go to one domain."
    ),
    fix="make labelSelector and the labels of the pod template agree",
    source="https://kep.k8s.io/895",
    remedies=("command", "patch"),
    no_remedy="A patch needs a workload whose selector and pod template were read, and that selects its own pods.",
    removes_pods=True,
    explains_exposure=True,
    check=_self_mismatch,
)
