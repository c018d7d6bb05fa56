"""SPR208 and SPR209: constraints that count all revisions together, or only one pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

import msgspec

from kubectl_spread.audit.merge.verdicts import BINDING_KEYS, REVISION_KEYS, Verdict
from kubectl_spread.audit.snapshot.revisions import revision_key, revision_of
from kubectl_spread.audit.snapshot.templates import PRESUMED, Template
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labelled, Labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.features import Behaviour
from kubectl_spread.kube.scheduler.podtopologyspread.constraints import counts_nothing
from kubectl_spread.phrases import listed
from kubectl_spread.report.model import Operation, Severity
from kubectl_spread.rules import patches
from kubectl_spread.rules.inputs import PodsInput, TemplateInput, TermInput, TermVariant
from kubectl_spread.rules.model import Evidence, Remedy, Rule, together
from kubectl_spread.rules.remedy import changed, in_file

_HASH: Final = "pod-template-hash"
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
ONE_POD_EACH: Final = frozenset(
    {
        _POD_NAME,
        "apps.kruise.io/cloneset-instance-id",
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
    }
)
_UNIQUE: Final = frozenset({_POD_NAME, "apps.kruise.io/cloneset-instance-id"})
"""Those of which no two pods in a namespace have the same value."""
_RUNS: Final = ("batch.kubernetes.io/job-name", "job-name")
_ENOUGH: Final = 3
"""The least number of pods of one revision that proves that their distinct values are by design."""
_BY_HAND: Final = "after each rollout, evict pods of the domain with the most pods"
_ADD_HASH: Final = "add pod-template-hash to matchLabelKeys if each revision is to be spread by itself"
_REMOVE_KEY: Final = "remove {key} from matchLabelKeys, or use a key whose value several pods share"


def _counts_old_revisions(rule_input: PodsInput) -> Iterator[Evidence]:
    """Yield pods of several revisions that count together now."""
    if pairs := list(_mixing_now([variant for variant in rule_input.variants if variant.term.spread], rule_input)):
        first, revisions = pairs[0]
        fix = _each_revision_by_itself(first.term, _HASH, rule_input)
        yield from together([variant for variant, _ in pairs], {"revisions": revisions}, fix=fix)


def _will_count_old_revisions(rule_input: TemplateInput) -> Iterator[Evidence]:
    """Yield a template whose rollout would count them so; stored pods of its workload have findings of their own."""
    template = rule_input.template
    if rule_input.beside_pods or not template.rolls or template.replicas in (0, 1):
        return
    key = revision_key(template.labels)
    spreads = [variant for variant in rule_input.variants if variant.term.spread]
    if mixing := [variant for variant in spreads if _mixes(variant, key, rule_input.behaviour)]:
        fix = _each_revision_by_itself(mixing[0].term, key, rule_input)
        yield from together(mixing, {"revisions": "all revisions"}, fix=fix)


def _each_revision_by_itself(term: TopologyTerm, key: str, rule_input: TermInput) -> Remedy | str:
    """Return the patch that adds the label of revisions to matchLabelKeys, unless a feature gate disables these."""
    if not rule_input.behaviour.scheduler_adds_match_label_keys:
        return _BY_HAND
    text = _ADD_HASH.replace(_HASH, key)
    path, keys = rule_input.term_path / "matchLabelKeys", list(term.match_label_keys)
    same = patches.same_topology(term, rule_input.term_path)
    if keys:
        return changed(text, (same, *patches.replaced(path, keys, [*keys, key])), rule_input)
    # kube-apiserver reads a test for null as a test for an absent field; the standard has no such test.
    absent = () if in_file(rule_input) else (patches.test(path, None),)
    return changed(text, (same, *absent, Operation(op="add", path=path.pointer, value=[key])), rule_input)


def _mixes(variant: TermVariant, key: str, behaviour: Behaviour) -> bool:
    """Tell whether a constraint counts its own pods and has no key that differs between revisions.

    Args:
        variant: The constraint, as a template has it.
        key: The label of revisions.
        behaviour: The behaviour of the scheduler.
    """
    if variant.effective is None or variant.unmet or counts_nothing(variant.effective, behaviour):
        return False
    return not variant.term.match_label_keys and key not in labelselectors.keys(variant.effective)


class _Revision(msgspec.Struct, frozen=True):
    """The pods of one revision of a Deployment, which numbers its revisions."""

    variant: TermVariant
    deployment: ObjectRef
    number: int


def _mixing_now(variants: list[TermVariant], rule_input: PodsInput) -> Iterator[tuple[TermVariant, str]]:
    """Yield variants of a Deployment's newest revision that count pods of others too, with all counted revisions."""
    if len({variant.labels[_HASH] for variant in variants if _HASH in variant.labels}) <= 1:
        return
    newest: dict[ObjectRef, int] = {}
    revisions_by_labels: dict[ObjectRef, Labelled[_Revision]] = {}
    for revision in (revision for variant in variants for revision in _revision(variant, rule_input)):
        newest[revision.deployment] = max(revision.number, newest.get(revision.deployment, 0))
        revisions_by_labels.setdefault(revision.deployment, Labelled()).add(revision.variant.labels, revision)
    for deployment, revisions in revisions_by_labels.items():
        for revision in (revision for _, revision in revisions if revision.number == newest[deployment]):
            selector = revision.variant.effective
            if selector is None or counts_nothing(selector, rule_input.behaviour):
                continue
            hashes = {counted.variant.labels[_HASH] for _, counted in revisions.selected(selector)}
            if len(hashes) > 1:
                yield revision.variant, f"the revisions {listed(sorted(hashes))}"


def _revision(variant: TermVariant, rule_input: TermInput) -> Iterator[_Revision]:
    """Yield the revision of pods of a Deployment, unless all of them are terminating."""
    staying = next((pod for pod in variant.pods if not pod.terminating), None)
    if staying is None or _HASH not in variant.labels:
        return
    _, *above = chain = rule_input.audit.snapshot.owner_chain(staying)
    if above:
        yield _Revision(variant, above[0].ref, chain[0].revision)


def _own_group(rule_input: PodsInput) -> Iterator[Evidence]:
    """Yield the first key by which no pod counts another one."""
    relabelled = {key.key for member in rule_input.members(Verdict.STALE_LABEL) for key in member.keys}

    def is_alone(labelled: list[TermVariant], key: str) -> bool:
        return key not in relabelled and _each_pod_is_alone(labelled, key, rule_input)

    yield from _by_own_value(rule_input, is_alone)


def _own_group_of_template(rule_input: TemplateInput) -> Iterator[Evidence]:
    """Yield the first key by which no pod of a template will count another one."""
    yield from _by_own_value(rule_input, partial(_each_future_pod_is_alone, rule_input=rule_input))


def _by_own_value(rule_input: TermInput, is_alone: Callable[[list[TermVariant], str], bool]) -> Iterator[Evidence]:
    """Yield the first key of which each pod has its own value, so that ``is_alone`` holds for the pods with it."""
    variants = [variant for variant in rule_input.variants if variant.term.spread and not variant.unmet]
    variants_by_key: dict[str, list[TermVariant]] = {}
    for variant in variants:
        for key in dict.fromkeys(variant.term.match_label_keys):
            variants_by_key.setdefault(key, []).append(variant)
    for key, variants_of_key in variants_by_key.items():
        labelled = [variant for variant in variants_of_key if key in variant.labels]
        if labelled and is_alone(labelled, key):
            operations = patches.without_keys({key}, labelled[0].term, rule_input.term_path)
            fix = changed(_REMOVE_KEY, operations, rule_input)
            yield from together(labelled, {"key": key}, fix=fix)
            return


def _each_future_pod_is_alone(variants: list[TermVariant], key: str, rule_input: TemplateInput) -> bool:
    """Tell whether no pods of a template share a value of the key, nor pods of other templates."""
    if key not in ONE_POD_EACH:
        return False
    return key in _UNIQUE or not any(
        _may_count(variant, key, template, rule_input)
        for variant in variants
        for template in rule_input.audit.templates
        if template is not rule_input.template
    )


def _may_count(variant: TermVariant, key: str, template: Template, rule_input: TermInput) -> bool:
    """Tell whether a constraint may count pods of another template."""
    if template.namespace != rule_input.namespace or key not in template.labels or variant.authored is None:
        return False
    return all(
        labelselectors.satisfies(requirement, template.labels)
        for requirement in labelselectors.requirements(variant.authored)
        if template.labels.get(requirement.key) != PRESUMED
    )


def _each_pod_is_alone(variants: list[TermVariant], key: str, rule_input: TermInput) -> bool:
    """Tell whether each pod has its own value of a key and its constraint counts no other pod."""
    values = Counter[str]()
    for variant in variants:
        values[variant.labels[key]] += variant.number
    if any(number > 1 for number in values.values()) or not _distinct_by_design(variants, key):
        return False
    pods_by_value: dict[str, list[tuple[Labels, int]]] = {}
    for labels, number in _pods_with(key, rule_input):
        pods_by_value.setdefault(labels[key], []).append((labels, number))
    return all(_matching(variant.effective, pods_by_value.get(variant.labels[key], ())) <= 1 for variant in variants)


def _distinct_by_design(variants: list[TermVariant], key: str) -> bool:
    """Tell whether distinct values are by design: of the key, or since several pods of one revision and run differ."""
    if key in ONE_POD_EACH:
        return True
    if key in REVISION_KEYS or key in BINDING_KEYS:
        return False
    variants_of_runs = Counter((revision_of(variant.labels), _run_of(variant.labels)) for variant in variants)
    return max(variants_of_runs.values(), default=0) >= _ENOUGH


def _run_of(labels: Labels) -> str:
    return next((labels[key] for key in _RUNS if key in labels), "")


def _pods_with(key: str, rule_input: TermInput) -> Iterator[tuple[Labels, int]]:
    """Yield the labels and numbers of all pods of the namespace with a key: the bound pods, then the pending ones."""
    for labels, per_node in rule_input.audit.snapshot.population(rule_input.namespace):
        if key in labels:
            yield labels, per_node.total()
    for pod in rule_input.audit.pods:
        if pod.namespace == rule_input.namespace and not pod.node and key in pod.pod_class.labels:
            yield pod.pod_class.labels, 1


def _matching(selector: LabelSelector | None, counts: Iterable[tuple[Labels, int]]) -> int:
    return sum(number for labels, number in counts if labelselectors.matches(selector, labels))


COUNTS_OLD_REVISIONS: Final = Rule(
    code="SPR208",
    name="counts-old-revisions",
    severity=Severity.INFO,
    summary="A spread constraint counts pods of old and new revisions together",
    message=(
        "The constraint counts pods of {revisions} together. Once the old pods of a rollout are gone, the new ones may "
        "be uneven."
    ),
    fix=_ADD_HASH,
    of_pods=_counts_old_revisions,
    of_template=_will_count_old_revisions,
)
OWN_GROUP: Final = Rule(
    code="SPR209",
    name="own-group",
    severity=Severity.WARNING,
    summary="A matchLabelKeys key has a different value on each pod, so that no pod counts another",
    message="Every pod has its own value of {key}, so each pod counts only itself and nothing is spread.",
    fix=_REMOVE_KEY,
    of_pods=_own_group,
    of_template=_own_group_of_template,
)
