"""SPR2xx: constraints that count all revisions together, or only one pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from kubectl_spread.audit.merge.verdicts import BINDING_KEYS, REVISION_KEYS, Verdict
from kubectl_spread.audit.snapshot.labelled import Labelled
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.audit.snapshot.revisions import revision_of
from kubectl_spread.audit.snapshot.templates import PRESUMED, Template
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import counts_nothing
from kubectl_spread.phrases import some
from kubectl_spread.report.severity import Severity
from kubectl_spread.rules.model import KUBERNETES, Evidence, Rule, together
from kubectl_spread.rules.rule_input import RuleInput
from kubectl_spread.rules.variants import TermVariant

_HASH: Final = "pod-template-hash"
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_ONE_POD_EACH: Final = frozenset(
    {_POD_NAME, "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index"}
)
_RUNS: Final = ("batch.kubernetes.io/job-name", "job-name")
_ENOUGH: Final = 3
"""The least number of pods of one revision that proves that their distinct values are by design."""
_BY_HAND: Final = "after a rollout, evict pods of the fullest domain"


def _counts_old_revisions(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield pods of several revisions that count together now, or a template whose rollout would count them so."""
    variants = [variant for variant in rule_input.variants if variant.term.spread and variant.term.required]
    counted = (
        _together_now(variants, rule_input) if rule_input.template is None else _in_a_rollout(variants, rule_input)
    )
    has_keys = rule_input.behaviour.scheduler_adds_match_label_keys
    for evidence in together((variant, {"revisions": revisions}) for variant, revisions in counted):
        yield msgspec.structs.replace(evidence, fix=None if has_keys else _BY_HAND)


def _in_a_rollout(variants: list[TermVariant], rule_input: RuleInput) -> Iterator[tuple[TermVariant, str]]:
    """Yield the variants of a template that rolls; stored pods of its workload have findings of their own."""
    template = rule_input.template
    if template is not None and template.rolls and template.replicas not in (0, 1) and not rule_input.beside_pods:
        yield from ((variant, "all revisions") for variant in variants if _mixes(variant, rule_input))


def _mixes(variant: TermVariant, rule_input: RuleInput) -> bool:
    """Tell whether a constraint counts its own pods and has no key that differs between revisions."""
    if variant.effective is None or variant.unmet or counts_nothing(variant.effective, rule_input.behaviour):
        return False
    return not variant.term.match_label_keys and _HASH not in labelselectors.keys(variant.effective)


class _Revision(msgspec.Struct, frozen=True):
    """Pods of one revision of one Deployment; a newer revision has a higher ``number``."""

    variant: TermVariant
    deployment: ObjectRef
    number: int


def _together_now(variants: list[TermVariant], rule_input: RuleInput) -> Iterator[tuple[TermVariant, str]]:
    """Yield variants of a Deployment's newest revision that count pods of others too, with all counted revisions."""
    if len({variant.labels[_HASH] for variant in variants if _HASH in variant.labels}) <= 1:
        return
    newest: dict[ObjectRef, int] = {}
    standing: dict[ObjectRef, Labelled[_Revision]] = {}
    for revision in (revision for variant in variants for revision in _revision(variant, rule_input)):
        newest[revision.deployment] = max(revision.number, newest.get(revision.deployment, 0))
        standing.setdefault(revision.deployment, Labelled()).add(revision.variant.labels, revision)
    for deployment, revisions in standing.items():
        for revision in (revision for _, revision in revisions if revision.number == newest[deployment]):
            selector = revision.variant.effective
            if selector is None or counts_nothing(selector, rule_input.behaviour):
                continue
            counted = {other.variant.labels[_HASH] for _, other in revisions.selected(selector)}
            if len(counted) > 1:
                yield revision.variant, f"the revisions {some(sorted(counted))}"


def _revision(variant: TermVariant, rule_input: RuleInput) -> Iterator[_Revision]:
    """Yield the revision of pods of a Deployment, unless all of them are terminating."""
    staying = next((pod for pod in variant.pods if not pod.terminating), None)
    if staying is None or _HASH not in variant.labels:
        return
    _, *above = chain = rule_input.audit.snapshot.owner_chain(staying)
    if above:
        yield _Revision(variant, above[0].ref, chain[0].revision)


def _own_group(rule_input: RuleInput) -> Iterator[Evidence]:
    """Yield the first key by which no pod counts another one."""
    variants = [variant for variant in rule_input.variants if variant.term.spread and not variant.unmet]
    relabelled = {key.key for member in rule_input.members(Verdict.STALE_LABEL) for key in member.keys}
    variants_by_key: dict[str, list[TermVariant]] = {}
    for variant in variants:
        for key in dict.fromkeys(variant.term.match_label_keys):
            variants_by_key.setdefault(key, []).append(variant)
    for key, of_key in variants_by_key.items():
        if key in relabelled:
            continue
        having = [variant for variant in of_key if key in variant.labels]
        alone = _alone if rule_input.template is None else _alone_by_name
        if having and alone(having, key, rule_input):
            yield from together((variant, {"key": key}) for variant in having)
            return


def _alone_by_name(having: list[TermVariant], key: str, rule_input: RuleInput) -> bool:
    """Tell whether no pods of a template share a value of the key, nor pods of other templates."""
    if key not in _ONE_POD_EACH:
        return False
    others = (other for other in rule_input.audit.templates if other is not rule_input.template)
    return key == _POD_NAME or not any(
        _shares(variant, key, other, rule_input) for variant in having for other in others
    )


def _shares(variant: TermVariant, key: str, other: Template, rule_input: RuleInput) -> bool:
    """Tell whether a constraint may count pods of another template."""
    if other.namespace != rule_input.namespace or key not in other.labels or variant.authored is None:
        return False
    fixed = {name: text for name, text in other.labels.items() if text != PRESUMED}
    return all(
        labelselectors.satisfies(requirement, fixed)
        for requirement in labelselectors.requirements(variant.authored)
        if other.labels.get(requirement.key) != PRESUMED
    )


def _alone(having: list[TermVariant], key: str, rule_input: RuleInput) -> bool:
    """Tell whether each pod has its own value of a key and its constraint counts no other pod."""
    values = Counter[str]()
    for variant in having:
        values[variant.labels[key]] += variant.number
    if any(number > 1 for number in values.values()) or not _distinct_by_design(having, key):
        return False
    sharing: dict[str, list[tuple[Labels, int]]] = {}
    for labels, number in _pods_with(key, rule_input):
        sharing.setdefault(labels[key], []).append((labels, number))
    return all(_matching(variant.effective, sharing.get(variant.labels[key], ())) <= 1 for variant in having)


def _distinct_by_design(having: list[TermVariant], key: str) -> bool:
    """Tell whether distinct values are by design: of the key, or since several pods of one revision and run differ."""
    if key in _ONE_POD_EACH:
        return True
    if key in REVISION_KEYS or key in BINDING_KEYS:
        return False
    alike = Counter((revision_of(variant.labels), _run_of(variant.labels)) for variant in having)
    return max(alike.values(), default=0) >= _ENOUGH


def _run_of(labels: Labels) -> str:
    return next((labels[key] for key in _RUNS if key in labels), "")


def _pods_with(key: str, rule_input: RuleInput) -> Iterator[tuple[Labels, int]]:
    """Yield the labels and numbers of all pods of the namespace with a key: the bound pods, then the pending ones."""
    for labels, per_node in rule_input.audit.snapshot.population(rule_input.namespace):
        if key in labels:
            yield labels, per_node.total()
    for pod in rule_input.audit.pods:
        if _pending(pod, rule_input.namespace) and key in pod.pod_class.labels:
            yield pod.pod_class.labels, 1


def _pending(pod: PodRecord, namespace: str) -> bool:
    return pod.pod_class.namespace == namespace and not pod.node


def _matching(selector: LabelSelector | None, counts: Iterable[tuple[Labels, int]]) -> int:
    return sum(number for labels, number in counts if labelselectors.matches(selector, labels))


COUNTS_OLD_REVISIONS: Final = Rule(
    code="SPR208",
    name="counts-old-revisions",
    severity=Severity.INFO,
    summary="A DoNotSchedule constraint counts pods of old and new revisions together",
    message="the constraint counts pods of {revisions} together: once the old ones are gone, the rest may be uneven",
    why=(
        "During a rollout the new pods are placed by where the old ones are. When those are deleted, nothing moves the "
        "new ones. matchLabelKeys with pod-template-hash makes each revision count by itself."
    ),
    fix="add matchLabelKeys: [pod-template-hash] to the constraint, if each revision is to be spread by itself",
    source="https://kep.k8s.io/3243",
    needs_nodes=False,
    check=_counts_old_revisions,
)
OWN_GROUP: Final = Rule(
    code="SPR209",
    name="own-group",
    severity=Severity.WARNING,
    summary="A matchLabelKeys key has another value on each pod, so that no pod counts another",
    message="every pod has its own {key} and counts only itself: nothing is spread",
    why=(
        "matchLabelKeys narrows the selector to pods with the same value. Where each pod has its own, every domain "
        "holds at most the pod itself, and all pods may go to one domain."
    ),
    fix="remove the key, or name one whose value the pods of a group have in common",
    source=f"{KUBERNETES}/pkg/controller/statefulset/stateful_set_utils.go",
    needs_nodes=False,
    check=_own_group,
)
