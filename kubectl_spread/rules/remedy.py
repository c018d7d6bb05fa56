"""What to do about a finding: a sentence, commands to type, and a patch of the object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.volumes import UNREAD
from kubectl_spread.audit.merge.verdicts import Verdict
from kubectl_spread.audit.snapshot.records import PodRecord
from kubectl_spread.audit.snapshot.revisions import revision_key
from kubectl_spread.audit.snapshot.templates import Template
from kubectl_spread.engine.answers import Removable, Shortfall, Trial
from kubectl_spread.errors import SpreadError
from kubectl_spread.kube.api.content import is_object_name, label_value_problems
from kubectl_spread.kube.api.labels import HOSTNAME, ZONE
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.kube.api.workloads import DaemonSet, Deployment, StatefulSet
from kubectl_spread.kube.apiserver import CURRENT_KEYS
from kubectl_spread.kube.custom import base_kind
from kubectl_spread.kube.disruption import PodDisruptionBudget
from kubectl_spread.memoization import memoized
from kubectl_spread.phrases import capitalized, listed, named, plural
from kubectl_spread.report.model import CommandLine, Operation
from kubectl_spread.rules import patches
from kubectl_spread.rules.inputs import PodsInput, RuleInput, TemplateInput
from kubectl_spread.rules.model import Remedy

if TYPE_CHECKING:
    # Rules ask the engine that they are given.
    from kubectl_spread.engine.engine import Engine

_FILTERS: Final = ("merge", "unmerge")
"""Commands of the plugin that read a file and no cluster."""
_RESTARTABLE: Final = ("Deployment", "StatefulSet", "DaemonSet")
_COSTS: Final = {
    **dict.fromkeys(_RESTARTABLE, "The patch restarts all pods of the workload"),
    "CronJob": "The patch takes effect with the next Job",
    "ReplicaSet": "The patch takes effect for new pods only",
    "ReplicationController": "The patch takes effect for new pods only",
}
"""Maps each kind whose pod template can be changed to the cost or the limit of a patch."""
_FIXED: Final = {
    "Job": "The pod template of a Job cannot change: delete the Job and create it again from a corrected manifest",
    "Pod": "The spec of a pod cannot change: delete the pod and create it again from a corrected manifest",
}
"""Maps each kind whose pod spec cannot be changed to the way to replace the object."""
_WAITS: Final = (
    "A StatefulSet waits for pending pods instead of replacing them, unless its podManagementPolicy is Parallel, so "
    "delete them"
)
_DIFFERS: Final = "The template is not like these pods at this place, so that a patch of it would be refused"
CORRECTED: Final = "corrected in the template; the rollout replaces {these}"
"""The fix for pods of an older revision, of which the engine gives the number."""
_CORRECTED: Final = {
    "CronJob": "corrected in the template, which the next Job has",
    "ReplicaSet": "corrected in the template, which only new pods have. To have such pods now, {restart}",
    "ReplicationController": "corrected in the template, which only new pods have. To have such pods now, {restart}",
}
"""Maps each kind without a rollout to the fix for pods of a template that is corrected."""
_UNREAD_BUDGETS: Final = "Disruption budgets were not read, and kubectl delete ignores them"
_MAKE_ROOM: Final = "set maxUnavailable: 1 in the strategy, so that an old pod may go before a new one runs"
_SCALE_DOWN: Final = (
    "scale the workload to 0, so that no old pod keeps a new one away, and scale it back after the patch"
)
_GONE: Final = ("--for=jsonpath={.status.replicas}=0", "--timeout=10m")
_FEW: Final = 3
"""The most pods that a command names to replace only them."""


def literal(text: str) -> str:
    """Return text with the braces of a template escaped."""
    return text.replace("{", "{{").replace("}", "}}")


class CommandFlags(NamedTuple):
    """The flags with which commands reach what was read.

    Attributes:
        cluster: kubectl's flags for the cluster.
        files: Those of the plugin's own commands for the files; none where a cluster, or standard input, was read.
    """

    cluster: Sequence[str] = ()
    files: Sequence[str] = ()


NO_FLAGS: Final = CommandFlags()


def flagged(command: CommandLine, flags: CommandFlags) -> CommandLine:
    """Return a command with the flags for what was read."""
    words = list(command.words)
    for index in reversed(range(len(words))):
        if words[index] == "kubectl" and words[index + 2] not in (*_FILTERS, "--local"):
            # kubectl takes no flags in front of a plugin's name.
            of_plugin = words[index + 1] == "spread"
            end = index + 3 if of_plugin else index + 1
            words[end:end] = flags.cluster
            if of_plugin:
                words += flags.files
    return CommandLine(words, command.pods)


def in_file(rule_input: RuleInput) -> bool:
    """Tell whether the finding's object is a manifest, which is edited and not patched."""
    return rule_input.manifest is not None or rule_input.workload in rule_input.audit.snapshot.manifests


def changed(text: str, operations: Sequence[Operation], rule_input: RuleInput) -> Remedy:
    """Return a change of the pod template as a patch of the workload, with its cost where it restarts pods.

    An object that the API would not change, or that its owner would change back, has no patch.
    """
    workload, owner = rule_input.workload, rule_input.template_owner
    if in_file(rule_input):
        return Remedy(text, patch=tuple(operations) if _has_known_path(rule_input) else ())
    if (fixed := _FIXED.get(workload.kind)) is not None:
        return Remedy(f"{text}. {fixed}")
    if owner is not None or workload.kind not in _COSTS:
        kind, name = (workload.kind, workload.name) if owner is None else (owner.kind, owner.name)
        return Remedy(f"{text}. Change it in {literal(named(kind, name))}, which owns the pods")
    if workload.kind == "ReplicaSet" and rule_input.audit.snapshot.ownership.record(workload) is None:
        whose = literal(named(workload.kind, workload.name))
        return Remedy(f"{text}. Change it in the object that owns {whose}, which was not read and would undo a patch")
    if not operations:
        return Remedy(text)
    template = rule_input.stored_template
    if template is not None and patches.is_done(operations, template):
        return corrected(rule_input)
    if template is not None and patches.is_refused(operations, template):
        return Remedy(f"{text}. {_DIFFERS}")
    return _tried_change(text, operations, rule_input)


def _tried_change(text: str, operations: Sequence[Operation], rule_input: RuleInput) -> Remedy:
    """Return a change as a patch of the workload, with what has to be done before and after it."""
    workload, tried = rule_input.workload, _rollout(rule_input, operations)
    cost, waits, after = _COSTS[workload.kind], "", tried.after
    if after:
        cost = "No pod of the workload runs until it is scaled back"
    elif waiting := _waiting_pods(rule_input):
        waits, after = f". {_WAITS} after the patch", (delete_pending(workload.namespace, waiting),)
    begin = text
    if (shortfall := tried.shortfall) is not None:
        if not tried.first:
            return Remedy(f"{text}. Wait with the patch: {literal(_stuck(shortfall))}")
        begin = (
            f"{text}. First {_SCALE_DOWN if tried.after else _MAKE_ROOM}: without that, {literal(_stuck(shortfall))}"
        )
    afterwards = literal(_afterwards(operations, tried.trial, rule_input))
    patch = tuple(operations)
    return Remedy(f"{begin}. {cost}{afterwards}{waits}", tried.first, patch=patch, after=after, change=text)


def _afterwards(operations: Sequence[Operation], trial: Trial, rule_input: RuleInput) -> str:
    """Return the findings that a rollout may leave, as a sentence after another; "" for none."""
    template = rule_input.audit.template_of(rule_input.workload)
    if template is None or template.replicas == 0:
        return ""
    effects = []
    if template.rolls and template.replicas != 1 and _counts_revisions_together(operations, template):
        effects.append("new pods may be uneven (SPR208)")
    if rule_input.workload.kind in _RESTARTABLE:
        effects += _effects(trial, rule_input)
    return _sentence(effects, trial.waiting)


def _effects(trial: Trial, rule_input: RuleInput) -> Iterator[str]:
    """Yield the findings that new pods may leave, in words with the code of the rule."""
    if any(rule_input.audit.volumes.of(pod).unknown == UNREAD for pod in rule_input.pods):
        yield "a new pod may find no node, because its claims and volumes were not read"
    if _leaves_closed_domain(rule_input):
        yield "a closed domain may hold the minimum down (SPR307)"
    if trial.uneven:
        yield "pods may be uneven by a soft constraint (SPR302)"
    if trial.last:
        yield "no node may take one more pod (SPR303)"
    if HOSTNAME in trial.together:
        yield "all pods may be on one node (SPR501)"
    elif ZONE in trial.together:
        yield "all pods may be in one zone (SPR502)"


def _sentence(effects: Iterable[str], waiting: Shortfall | None = None) -> str:
    """Return effects and the pods that wait as before, as a sentence after another; "" for nothing."""
    parts = [*effects, *([still_waiting(waiting)] if waiting else [])]
    return f". Afterwards {listed(parts)}" if parts else ""


def still_waiting(waiting: Shortfall) -> str:
    """Return that pods wait as before in a run of a trial, and why."""
    return f"{plural(waiting.pods, 'pod')} may still wait ({waiting.why})"


def _leaves_closed_domain(rule_input: RuleInput) -> bool:
    """Tell whether a domain that takes no new pod may become the only one with the fewest that a constraint counts."""
    audit = rule_input.audit
    for row in audit.rows_of(rule_input.workload):
        spread = row.spread
        if spread is None or not spread.constraint.hard:
            continue
        counts, value_of, pod_class = spread.match_num, spread.domains.value_of, row.representative.pod_class
        # A domain that is full now has no more pods after a rollout, either.
        free = {domain for node, domain in value_of.items() if audit.obstacles.of(pod_class, node) is None}
        held_open = any(number == counts.least for domain, number in counts.items() if domain in free)
        if not free.issuperset(counts) and (spread.allows_all or held_open):
            return True
    return False


def _counts_revisions_together(operations: Sequence[Operation], template: Template) -> bool:
    """Tell whether a hard constraint counts pods of all revisions, also after some operations."""
    key = revision_key(template.labels)
    added = [operation.path for operation in operations if key in str(operation.value)]
    return any(
        term.spread
        and term.required
        and key not in (*term.match_label_keys, *term.mentions)
        and not any(path.startswith(f"{term.path.pointer}/") for path in added)
        for term in template.terms
    )


class _Rollout(msgspec.Struct, frozen=True):
    """The trial of a rollout.

    Attributes:
        trial: What it leaves, after ``first``; nothing where nodes, pods or the workload were not read.
        shortfall: What it makes worse without ``first``; None for nothing.
        first: The commands after which it makes nothing worse; none if there are no such commands.
        after: The commands that follow it where ``first`` scale the workload to 0.
    """

    trial: Trial = Trial()
    shortfall: Shortfall | None = None
    first: tuple[CommandLine, ...] = ()
    after: tuple[CommandLine, ...] = ()


def _rollout(rule_input: RuleInput, operations: Sequence[Operation]) -> _Rollout:
    """Try the rollout that a JSON patch of the workload starts; without operations its pods are restarted."""
    return _tried_rollout(rule_input.audit, rule_input.engine, rule_input.workload, msgspec.json.encode(operations))


@memoized
def _tried_rollout(audit: Audit, engine: Engine, workload: ObjectRef, patch: bytes) -> _Rollout:
    operations = msgspec.json.decode(patch, type=tuple[Operation, ...])
    stored, template = audit.snapshot.workload_objects.get(workload), audit.template_of(workload)
    bound = [pod for pod in audit.counted.siblings(workload) if pod.node]
    if not isinstance(stored, Deployment | StatefulSet | DaemonSet) or template is None or not bound:
        return _Rollout()
    if not audit.evaluator.lists_nodes or audit.snapshot.may_lack_siblings(bound[0]):
        return _Rollout()
    if any(pod.pod_class.profile is None for pod in bound):
        return _Rollout()
    try:
        patched = patches.applied(operations, len(template.path) - 1, stored.template) if operations else None
        trial = engine.rollout(workload, patched)
        if trial.shortfall is None:
            return _Rollout(trial)
        roomier = engine.roomier_rollout(workload, patched)
        if roomier is None and patched is not None and isinstance(stored, StatefulSet):
            return _from_none(trial.shortfall, engine.rollout_from_none(workload, patched), workload, stored.replicas)
    except (LookupError, SpreadError):
        # The template is newer than the pods and lacks what is patched, or the workload is paused.
        return _Rollout()
    if roomier is None:
        return _Rollout(shortfall=trial.shortfall)
    fix, left = roomier
    return _Rollout(left, trial.shortfall, tuple(map(CommandLine, fix.commands)))


def _from_none(shortfall: Shortfall, trial: Trial, workload: ObjectRef, replicas: int) -> _Rollout:
    """Return the rollout of a StatefulSet that is scaled to 0 before, where that ends it."""
    if trial.shortfall is not None:
        return _Rollout(shortfall=shortfall)
    name, namespace = named(workload.kind, workload.name), ("-n", workload.namespace)
    down, up = (CommandLine(("kubectl", "scale", name, *namespace, f"--replicas={each}")) for each in (0, replicas))
    return _Rollout(trial, shortfall, (down, CommandLine(("kubectl", "wait", name, *namespace, *_GONE))), (up,))


def removable(pods: Sequence[PodRecord], rule_input: RuleInput) -> Removable:
    """Return the given pods of one workload that can be removed together; all of them if nodes were not read."""
    pod_class, audit = pods[0].pod_class, rule_input.audit
    if not audit.evaluator.lists_nodes or pod_class.profile is None or pod_class.pinned:
        return Removable(tuple(pods))
    return rule_input.engine.removable(pods)


def _stuck(shortfall: Shortfall) -> str:
    """Return that a rollout would leave new pods pending, as a clause."""
    pods = plural(shortfall.pods, "new pod")
    return f"{pods} would find no node ({shortfall.why}), so the rollout could not end"


def corrected(rule_input: RuleInput) -> Remedy:
    """Return the remedy for pods whose template is corrected already."""
    after = _waiting_pods(rule_input)
    text = _CORRECTED.get(rule_input.workload.kind, CORRECTED)
    if not after or _wait_anyway(after, rule_input):
        return Remedy(text, begun=True)
    return Remedy(f"{text}. {_WAITS}", (delete_pending(rule_input.namespace, after),), begun=True)


def _has_known_path(rule_input: RuleInput) -> bool:
    """Tell whether the path of the pod spec in the finding's object is known.

    Pods do not say which template of an object they were made from.
    """
    return isinstance(rule_input, TemplateInput) or rule_input.workload.kind in (*_COSTS, *_FIXED, "PodTemplate")


def _wait_anyway(names: Collection[str], rule_input: RuleInput) -> bool:
    """Tell whether pods of the workload wait after its pending pods are deleted, as far as nodes were read."""
    pods = list({pod.name: pod for pod in rule_input.pods if pod.name in names}.values())
    lists_nodes = rule_input.audit.evaluator.lists_nodes
    return lists_nodes and rule_input.engine.shortfall_after_removal(pods) is not None


def _waiting_pods(rule_input: RuleInput) -> tuple[str, ...]:
    """Return the pending pods of a StatefulSet, for which it may wait."""
    pods = {pod.name: pod for pod in rule_input.pods if pod.waits}
    if rule_input.workload.kind != "StatefulSet" or not pods:
        return ()
    return tuple(sorted(pods))


def delete_pending(namespace: str, pods: Sequence[str]) -> CommandLine:
    """Return the command that deletes pods for which a StatefulSet may wait.

    With the podManagementPolicy Parallel it may have replaced them before the command runs. The command does not wait:
    pods without a node are gone and replaced at once, and kubectl may take a new pod for the old one of the same name.
    """
    return CommandLine(("kubectl", "delete", "pod", "--ignore-not-found", "--wait=false", "-n", namespace, *pods), pods)


def delete(namespace: str, pods: Sequence[str]) -> CommandLine:
    """Return the command that deletes pods, which their owner replaces.

    For several pods it does not wait: while kubectl 1.32 waits for one, a StatefulSet may replace another under the
    same name, and kubectl takes the new pod for the old one.
    """
    flags = () if len(pods) == 1 else ("--wait=false",)
    return CommandLine(("kubectl", "delete", "pod", *flags, "-n", namespace, *pods), pods)


def evict(namespace: str, pod: str) -> CommandLine:
    """Return the command that evicts a pod, which its disruption budget may refuse."""
    metadata = {"name": pod, "namespace": namespace}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
    words = ("echo", msgspec.json.encode(body).decode(), "|", "kubectl", "create", "--raw", path, "-f", "-")
    return CommandLine(words, (pod,))


class Removal(msgspec.Struct, frozen=True):
    """The removal of pods that their owner replaces, as far as disruption budgets allow it.

    Attributes:
        verb: ``delete``, or ``evict`` where a budget selects any of the pods.
        pods: The names of the pods that can be removed now.
        note: What budgets decide about the pods; "" where none selects them.
        commands: The commands that remove ``pods``.
    """

    verb: Literal["delete", "evict"]
    pods: tuple[str, ...]
    note: str
    commands: tuple[CommandLine, ...]


def removal(pods: Sequence[PodRecord], audit: Audit) -> Removal:
    """Return how pods of one namespace can be removed; budgets do not concern pods without a node.

    Source: kubernetes v1.37.1 pkg/registry/core/pod/storage/eviction.go, Create and canIgnorePDB.
    """
    namespace, names = pods[0].namespace, tuple(sorted(pod.name for pod in pods))
    budgets = audit.snapshot.budgets
    bound = [pod for pod in pods if pod.node]
    of_pods = {pod.name: each for pod in bound if (each := budgets.of(namespace, pod.pod_class.labels))}
    if not of_pods:
        return Removal(
            "delete", names, "" if budgets.read or not bound else _UNREAD_BUDGETS, (delete(namespace, names),)
        )
    several = next((each for each in of_pods.values() if len(each) > 1), None)
    if several is not None:
        both = listed([budget.metadata.name for budget in several])
        note = f"The API server evicts no pod that several disruption budgets select: narrow a selector of {both} first"
        return Removal("evict", (), note, ())
    guards = {name: each[0] for name, each in of_pods.items()}
    evictable = tuple(_evictable(names, guards))
    distinct = {budget.metadata.name: budget for budget in guards.values()}
    unmet = len(evictable) < len(names)
    note = ". ".join(capitalized(_allowance(distinct[name], unmet=unmet)) for name in sorted(distinct))
    return Removal("evict", evictable, note, tuple(evict(namespace, name) for name in evictable))


def _evictable(names: Sequence[str], guards: Mapping[str, PodDisruptionBudget]) -> Iterator[str]:
    """Yield the pods that can be evicted one after another before their replacements are ready."""
    evicted: Counter[str] = Counter()
    for name in names:
        budget = guards.get(name)
        if budget is not None and budget.current is not None:
            if evicted[budget.metadata.name] >= budget.current.disruptions_allowed:
                continue
            evicted[budget.metadata.name] += 1
        yield name


def _allowance(budget: PodDisruptionBudget, *, unmet: bool) -> str:
    """Return how many disruptions a budget allows now and, if these are too few, what would allow more."""
    name, status = f"disruption budget {budget.metadata.name}", budget.current
    if status is None:
        return f"{name} decides about the eviction: the disruption controller has not written its status yet"
    if status.disruptions_allowed > 0:
        text = f"{name} allows {plural(status.disruptions_allowed, 'disruption')} now"
        return f"{text}, and more when replacements are ready" if unmet else text
    needs = f"{name} allows no disruption now: it needs {plural(status.desired_healthy, 'healthy pod')}"
    if status.expected_pods > status.desired_healthy:
        missing = max(1, status.desired_healthy + 1 - status.current_healthy)
        more = f"{plural(missing, 'more pod')} {'is' if missing == 1 else 'are'} ready"
        return f"{needs} and has {status.current_healthy}. It allows one when {more}"
    by_number = budget.spec.max_unavailable is None
    change = "one more replica or a smaller minAvailable" if by_number else "a larger maxUnavailable"
    return f"{needs} and has {plural(status.expected_pods, 'pod')}. Only {change} lets it allow one"


def unreplaced(these: str, can_go: Removable) -> str:
    """Return that pods have to stay because no node takes a replacement."""
    return f"keep {these} for now: no node would take a replacement ({can_go.why})"


def one_by_one(can_go: Removable) -> str:
    """Return why only one of several pods is to be removed at a time."""
    return f"not all replacements are sure to find nodes at once ({can_go.why})"


def uncordon(nodes: Sequence[str]) -> tuple[CommandLine, ...]:
    """Return the command that lets nodes take pods again; none for names that no API server accepts."""
    return (CommandLine(("kubectl", "uncordon", *nodes)),) if all(map(is_object_name, nodes)) else ()


def patched(workload: ObjectRef, operations: Sequence[Operation]) -> CommandLine:
    """Return the command that applies a JSON patch to a workload."""
    name, text = named(workload.kind, workload.name), msgspec.json.encode(operations).decode()
    return CommandLine(("kubectl", "patch", name, "-n", workload.namespace, "--type=json", "-p", text))


def replacement(pods: Sequence[str], rule_input: PodsInput) -> Remedy:
    """Return how to replace some pods of the workload, and how many other pods that restarts.

    The text is not a template.
    """
    pods_by_name = {pod.name: pod for pod in rule_input.pods}
    staying = [name for name in pods if name in pods_by_name and not pods_by_name[name].terminating]
    if rule_input.manifest is not None:
        return Remedy("correct the manifest before the pod is created")
    if pods and not staying:
        return Remedy("wait until they are gone: they are terminating")
    if any(base_kind(pod.pod_class.kind) == "Job" for pod in rule_input.pods):
        return Remedy("wait until the pods end: a Job counts a deleted pod as failed")
    workload = rule_input.workload
    others = sum(not pod.terminating for pod in pods_by_name.values()) - len(staying)
    remedy = _restart(rule_input, staying, len(staying) + others)
    if workload.kind != "Pod" and others and 0 < len(staying) <= _FEW:
        remedy = _of_some([pods_by_name[name] for name in staying], remedy, rule_input)
    if any(command.words[1:3] == ("rollout", "restart") for command in remedy.commands):
        afterwards = _afterwards((), _rollout(rule_input, ()).trial, rule_input)
        return msgspec.structs.replace(remedy, text=f"{remedy.text}{afterwards}")
    return remedy


def _of_some(pods: Sequence[PodRecord], restart_all: Remedy, rule_input: PodsInput) -> Remedy:
    """Return how to replace a few pods of a workload with others, as far as nodes and disruption budgets allow it.

    ``restart_all`` is the way to replace all of its pods; it has no commands where there is none.
    """
    these, whose = ("the pod", "its owner replaces it") if len(pods) == 1 else ("the pods", "their owner replaces them")
    can_go = removable(pods, rule_input)
    if not can_go.pods:
        if not restart_all.commands:
            return Remedy(unreplaced(these, can_go))
        why = f"because no node would take a replacement of {these} alone ({can_go.why})"
        return msgspec.structs.replace(restart_all, text=f"{restart_all.text}, {why}")
    chosen = removal(can_go.pods, rule_input.audit)
    if not chosen.pods and restart_all.commands:
        return msgspec.structs.replace(restart_all, text=f"{restart_all.text}. {chosen.note}")
    if not chosen.pods:
        return Remedy(f"{these} cannot be evicted now. {chosen.note}")
    text = f"{chosen.verb} {these} ({whose})"
    if can_go.why:
        text = f"{chosen.verb} {chosen.pods[0]} (its owner replaces it) and look again: {one_by_one(can_go)}"
    if restart_all.commands:
        text += f", or {restart_all.text}"
    if chosen.note:
        text = f"{text}. {chosen.note}"
    # Without the template, new pods are taken to be like one of those that are replaced.
    template = rule_input.audit.template_of(rule_input.workload)
    effects = () if template is None else _effects(can_go.trial, rule_input)
    return Remedy(f"{text}{_sentence(effects, can_go.trial.waiting)}", chosen.commands)


def _restart(rule_input: PodsInput, pods: Sequence[str], number: int) -> Remedy:
    """Return the safe way to replace pods: by their workload, by eviction, or by hand for a bare pod."""
    workload = rule_input.workload
    if workload.kind in _RESTARTABLE:
        tried = _rollout(rule_input, ())
        if tried.shortfall is not None and not tried.first:
            return Remedy(f"wait with the restart: {_stuck(tried.shortfall)}")
        whom = f"all {number} pods of the workload" if number > 1 else "the pod"
        words = ("kubectl", "rollout", "restart", named(workload.kind, workload.name), "-n", workload.namespace)
        command = CommandLine(words)
        waiting = _waiting_pods(rule_input)
        text = f"restart {whom}, and delete those that are pending, for which a StatefulSet waits"
        if not waiting:
            made_room = f"{_MAKE_ROOM}, and then " if tried.first else ""
            return Remedy(f"{made_room}restart {whom}", (*tried.first, command))
        return Remedy(text, (*tried.first, command, delete_pending(workload.namespace, waiting)))
    if workload.kind != "Pod":
        return Remedy("evict the pods: their owner replaces them, and disruption budgets are respected")
    if any(Verdict.DUPLICATE in row.verdicts for row in rule_input.rows):
        return Remedy("save the manifest, correct the selector in it, delete the pod and create it again")
    text = (
        "save the manifest, run it through kubectl spread unmerge, and replace the pod, whose node the scheduler "
        "chooses again"
    )
    if not pods:
        return Remedy(text)
    records = [pod for pod in rule_input.pods if pod.name in pods][:1]
    can_go = removable(records, rule_input)
    if not can_go.pods:
        return Remedy(unreplaced("the pod", can_go))
    chosen = removal(records, rule_input.audit)
    if not chosen.pods:
        return Remedy(f"the pod cannot be replaced now. {chosen.note}")
    guarded = f". {chosen.note}, and kubectl replace ignores it" if chosen.verb == "evict" else ""
    return Remedy(text + guarded, _created_again(workload))


def saved_unmerged(pod: ObjectRef) -> CommandLine:
    """Return the command that saves the manifest of a pod in a form that can be created again."""
    read = ("kubectl", "get", "pod", pod.name, "-n", pod.namespace, "-o", "yaml")
    return CommandLine((*read, "|", "kubectl", "spread", "unmerge", "-f", "-", ">", f"{pod.name}.yaml"))


def _created_again(pod: ObjectRef) -> tuple[CommandLine, ...]:
    """Return the commands that create a bare pod again from its saved manifest.

    The pod is deleted only if the API would accept its successor, which has no node, so that its constraints decide.
    """
    saved, unmerged = f"{pod.name}.yaml", f"{pod.name}-unmerged.yaml"
    without_node = ("--type=merge", "-p", '{"spec":{"nodeName":null}}', "-o", "yaml")
    changed = ("kubectl", "patch", "--local", "-f", "-", *without_node, ">", unmerged)
    replaced = ("kubectl", "replace", "--force", "-f", unmerged)
    return (
        CommandLine(("kubectl", "get", "pod", pod.name, "-n", pod.namespace, "-o", "yaml", ">", saved)),
        CommandLine(("kubectl", "spread", "unmerge", "-f", saved, "|", *changed)),
        CommandLine(("kubectl", "spread", "merge", "-f", unmerged, ">", "/dev/null", "&&", *replaced)),
    )


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
    commands = tuple(
        CommandLine(("kubectl", "label", "node", *names, f"{key}={value}")) for value, names in nodes_by_value.items()
    )
    source = "their names" if key == HOSTNAME else "the values of their deprecated label"
    return Remedy(literal(f"label the nodes with {source}, or use a topology key that they have"), commands)


def _known_value(node: str, key: str, labels: Mapping[str, str]) -> str:
    """Return the value that a node should have for a key; "" where only its operator knows."""
    if key == HOSTNAME:
        return node
    return next((labels.get(old, "") for old, (_, current) in CURRENT_KEYS.items() if current == key), "")
