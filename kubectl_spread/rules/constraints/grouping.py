"""SPR2xx: which pods count together, all revisions at once or each pod by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from kubectl_spread.audit.merge.verdicts import BINDING_KEYS, REVISION_KEYS, Verdict
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.audit.snapshot.revisions import revision_of
from kubectl_spread.audit.snapshot.templates import PRESUMED, Template
from kubectl_spread.kube.api import labels as labelselectors
from kubectl_spread.kube.api.labels import Labels
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.types import LabelSelector
from kubectl_spread.kube.scheduler.podtopologyspread import counts_nothing
from kubectl_spread.phrases import some
from kubectl_spread.rules.holders import Holder, holders, together
from kubectl_spread.rules.model import Evidence, Rule, Severity, Subject

_HASH: Final = "pod-template-hash"
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_ONE_POD_EACH: Final = frozenset(
    {_POD_NAME, "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index"}
)
_RUNS: Final = ("batch.kubernetes.io/job-name", "job-name")
_ENOUGH: Final = 3
"""So many pods of one revision, each with its own value, are no coincidence."""
_BY_HAND: Final = "after a rollout, evict pods of the fullest domain"


def _counts_old_revisions(subject: Subject) -> Iterator[Evidence]:
    """Tell where pods of several revisions count together now, or would in a rollout of a template without pods."""
    found = [holder for holder in holders(subject) if holder.clause.spread and holder.clause.required]
    counted = _together_now(found, subject) if subject.template is None else _in_a_rollout(found, subject)
    has_keys = subject.audit.context.behaviour.scheduler_adds_match_label_keys
    for evidence in together((holder, {"revisions": revisions}) for holder, revisions in counted):
        yield msgspec.structs.replace(evidence, fix=None if has_keys else _BY_HAND)


def _in_a_rollout(found: list[Holder], subject: Subject) -> Iterator[tuple[Holder, str]]:
    """Yield what a template says that rolls; where stored pods are judged they tell it themselves, when it happens."""
    template = subject.template
    if template is not None and template.rolls and template.replicas not in (0, 1) and not subject.beside_pods:
        yield from ((holder, "all revisions") for holder in found if _mixes(holder, subject))


def _mixes(holder: Holder, subject: Subject) -> bool:
    """Tell whether a constraint counts its own pods and names nothing by which revisions could differ."""
    if holder.effective is None or holder.unmet or counts_nothing(holder.effective, subject.audit.context.behaviour):
        return False
    return not holder.clause.match_label_keys and _HASH not in labelselectors.keys(holder.effective)


class _Revision(msgspec.Struct, frozen=True):
    """Pods of one revision of one Deployment; ``number`` tells how new it is."""

    holder: Holder
    deployment: ObjectRef
    number: int


def _together_now(found: list[Holder], subject: Subject) -> Iterator[tuple[Holder, str]]:
    """Yield what has the newest revision of a Deployment and counts pods of others too, with all that it counts."""
    if len({holder.labels[_HASH] for holder in found if _HASH in holder.labels}) <= 1:
        return
    standing = [revision for holder in found for revision in _revision(holder, subject)]
    for one in standing:
        same = [other for other in standing if other.deployment == one.deployment]
        counted = {other.holder.labels[_HASH] for other in same if _counts(one.holder, other.holder.labels, subject)}
        if len(counted) > 1 and one.number == max(other.number for other in same):
            yield one.holder, f"the revisions {some(sorted(counted))}"


def _revision(holder: Holder, subject: Subject) -> Iterator[_Revision]:
    """Yield the revision of pods that a Deployment owns and that do not all leave."""
    staying = next((pod for pod in holder.pods if not pod.terminating), None)
    if staying is None or _HASH not in holder.labels:
        return
    _, *above = chain = subject.audit.snapshot.owner_chain(staying)
    if above:
        yield _Revision(holder, above[0].ref, chain[0].revision)


def _counts(holder: Holder, labels: Labels, subject: Subject) -> bool:
    if counts_nothing(holder.effective, subject.audit.context.behaviour):
        return False
    return labelselectors.matches(holder.effective, labels)


def _own_group(subject: Subject) -> Iterator[Evidence]:
    """Name the first key by which no pod counts another one."""
    found = [holder for holder in holders(subject) if holder.clause.spread and not holder.unmet]
    relabelled = {key.key for member in subject.members(Verdict.STALE_LABEL) for key in member.keys}
    for key in dict.fromkeys(key for holder in found for key in holder.clause.match_label_keys):
        if key in relabelled:
            continue
        having = [holder for holder in found if key in holder.clause.match_label_keys and key in holder.labels]
        alone = _alone if subject.template is None else _alone_by_name
        if having and alone(having, key, subject):
            yield from together((holder, {"key": key}) for holder in having)
            return


def _alone_by_name(having: list[Holder], key: str, subject: Subject) -> bool:
    """Tell whether the pods of a template can only be alone; an index may be shared with pods of other templates."""
    if key not in _ONE_POD_EACH:
        return False
    others = (other for other in subject.audit.templates if other is not subject.template)
    return key == _POD_NAME or not any(_shares(holder, key, other, subject) for holder in having for other in others)


def _shares(holder: Holder, key: str, other: Template, subject: Subject) -> bool:
    """Tell whether a constraint may count pods of another template."""
    if other.namespace != subject.namespace or key not in other.labels or holder.authored is None:
        return False
    known = {name: text for name, text in other.labels.items() if text != PRESUMED}
    return all(
        labelselectors.satisfies(asked, known)
        for asked in labelselectors.requirements(holder.authored)
        if other.labels.get(asked.key) != PRESUMED
    )


def _alone(having: list[Holder], key: str, subject: Subject) -> bool:
    """Tell whether each pod has its own value of a key and its constraint counts no pod but itself."""
    values = Counter[str]()
    for holder in having:
        values[holder.labels[key]] += holder.number
    if any(number > 1 for number in values.values()) or not _telling(having, key):
        return False
    sharing: dict[str, list[tuple[Labels, int]]] = {}
    for labels, number in _pods_with(key, subject):
        sharing.setdefault(labels[key], []).append((labels, number))
    return all(_matching(holder.effective, sharing.get(holder.labels[key], ())) <= 1 for holder in having)


def _telling(having: list[Holder], key: str) -> bool:
    """Tell whether distinct values are by design: the key's own, or on several pods of one revision and run."""
    if key in _ONE_POD_EACH:
        return True
    if key in REVISION_KEYS or key in BINDING_KEYS:
        return False
    alike = Counter((revision_of(holder.labels), _run_of(holder.labels)) for holder in having)
    return max(alike.values(), default=0) >= _ENOUGH


def _run_of(labels: Labels) -> str:
    return next((labels[key] for key in _RUNS if key in labels), "")


def _pods_with(key: str, subject: Subject) -> Iterator[tuple[Labels, int]]:
    """Yield the labels of all pods of the namespace that have a key, with their number: the bound, then the pending."""
    for labels, per_node in subject.audit.snapshot.population(subject.namespace):
        if key in labels:
            yield labels, per_node.total()
    for pod in subject.audit.pods:
        if _pending(pod, subject.namespace) and key in pod.shape.labels:
            yield pod.shape.labels, 1


def _pending(pod: PodRecord, namespace: str) -> bool:
    return pod.shape.namespace == namespace and not pod.node


def _matching(selector: LabelSelector | None, found: Iterable[tuple[Labels, int]]) -> int:
    return sum(number for labels, number in found if labelselectors.matches(selector, labels))


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
    source="https://github.com/kubernetes/kubernetes/blob/v1.37.1/pkg/controller/statefulset/stateful_set_utils.go",
    needs_nodes=False,
    check=_own_group,
)
