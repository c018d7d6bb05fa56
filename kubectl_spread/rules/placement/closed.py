"""Domains that take no pod or do not count: which obstacles close them, how to open them or to leave them out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

import msgspec

from kubectl_spread.audit.evaluation import obstacles
from kubectl_spread.audit.evaluation.evaluate import Audit
from kubectl_spread.audit.evaluation.evaluators import ClassEvaluation
from kubectl_spread.audit.evaluation.obstacles import FILTERS, Obstacle, ObstacleKind, only_pinned
from kubectl_spread.audit.snapshot.records import PodClass
from kubectl_spread.audit.snapshot.terms import TopologyTerm
from kubectl_spread.engine.node_answers import NodeAnswers, as_obstacle
from kubectl_spread.kube.api.field import POD_SPEC
from kubectl_spread.kube.api.labels import ZONE
from kubectl_spread.kube.api.types import NodeInclusionPolicy
from kubectl_spread.kube.scheduler.podtopologyspread.spread import Spread
from kubectl_spread.memoization import memoized
from kubectl_spread.phrases import capitalized, domains, listed, plural, sentence, value
from kubectl_spread.report.model import CORDONED, ClosedDomains, Operation
from kubectl_spread.rules import patches
from kubectl_spread.rules.inputs import PodsInput
from kubectl_spread.rules.model import Remedy
from kubectl_spread.rules.remedy import changed, literal, still_waiting, uncordon

_POLICIES: Final = {"nodeAffinityPolicy": "node_affinity_policy", "nodeTaintsPolicy": "node_taints_policy"}
"""Maps the fields of a constraint that leave out nodes to their names in our types."""
_TAINTS: Final = (ObstacleKind.CORDONED, ObstacleKind.TAINTED, ObstacleKind.UNHEALTHY)
"""The causes that end with a taint."""
_PASSING: Final = (ObstacleKind.CORDONED, ObstacleKind.UNHEALTHY)
"""The causes that usually end."""


UNPIN: Final = "let nodeSelector or node affinity in the pod template match nodes of more domains, or remove it"


class Closed(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Domains at the global minimum, the obstacles of a pod on each of their nodes, and all answers about that pod."""

    spread: Spread
    answers: NodeAnswers
    values: tuple[str, ...]
    refusals: tuple[Obstacle, ...]

    @property
    def causes(self) -> frozenset[ObstacleKind]:
        """The kinds of the obstacles."""
        return frozenset(obstacle.cause for obstacle in self.refusals)

    @property
    def names(self) -> str:
        """The domains in words: ``zones b and c``."""
        return domains(self.spread.constraint.topology_key, self.values)

    @property
    def sentence(self) -> str:
        """What the domains do, without the full stop."""
        hold, take = ("holds", "takes") if len(self.values) == 1 else ("hold", "take")
        minimum = f"the global minimum at {self.spread.match_num.least}"
        return f"{capitalized(self.names)} {hold} {minimum} but {take} no pod ({obstacles.summary(self.refusals)})"

    @cached_property
    def refusals_when_open(self) -> Sequence[Obstacle]:
        """What else refuses each of the nodes that are closed by cordons and taints; () if one would take the pod."""
        refusals: list[Obstacle] = []
        for node in lowest(self.spread) if self.causes <= {*_TAINTS} else ():
            refusal = self.answers.refusal_when_open(node)
            if refusal is None:
                return ()
            refusals.append(as_obstacle(refusal))
        return refusals


def lowest(spread: Spread) -> Iterator[str]:
    """Yield the nodes of the domains at the global minimum."""
    least = spread.match_num.least
    return (node for node, domain in spread.domains.value_of.items() if spread.match_num[domain] == least)


def closed(spread: Spread, answers: NodeAnswers, refusals: Iterable[Obstacle]) -> Closed:
    """Return the domains at the minimum with the refusals of all their nodes."""
    least = spread.match_num.least
    values = tuple(sorted(domain for domain, number in spread.match_num.items() if number == least))
    return Closed(spread, answers, values, tuple(refusals))


def opening(shut: Closed, evaluation: ClassEvaluation, rule_input: PodsInput, *, blocked: bool) -> Remedy:
    """Return how to open domains, or to leave them out by a policy if that lets pods go elsewhere.

    Args:
        shut: The domains.
        evaluation: The evaluation of the pods.
        rule_input: The workload and the path of the constraint.
        blocked: Whether no node takes the pods now, so that a policy has to change that.
    """
    names, causes, for_all = literal(shut.names), shut.causes, closed_domains(shut)
    if ObstacleKind.FULL in causes:
        return Remedy(f"make room in {names}, or lower the resource requests in the pod template")
    needed = (ObstacleKind.EXCLUDED in causes, not causes.isdisjoint(_TAINTS))
    fields = [name for name, is_wanted in zip(_POLICIES, needed, strict=True) if is_wanted]
    terms = _terms_to_change(shut, fields, evaluation, rule_input, blocked=blocked)
    others = shut.refusals_when_open
    if not terms and others:
        kinds = dict.fromkeys(other.cause for other in others)
        ways = listed([FILTERS[kind].remedy.format(nodes="nodes") for kind in kinds], len(kinds))
        still = f"the pods would still be refused there ({obstacles.summary(others)})"
        return Remedy(literal(f"open {shut.names}, but not only that: {still}. For these, {ways}"))
    if not terms and for_all is not None:
        return Remedy(literal(for_all.fix), uncordon(for_all.nodes) if for_all.state == CORDONED else ())
    by_hand = _by_hand(causes)
    if not terms:
        return Remedy(f"open {names}: {by_hand or 'let node affinity or nodeSelector match its nodes'}")
    settings = " and ".join(f"{field}: Honor" for field in fields)
    where = "the constraint" if len(terms) == 1 else "each constraint"
    single = len(shut.values) == 1
    effect = f"{names} no longer {'counts' if single else 'count'}"
    if by_hand:
        effect = f"{names} {'counts' if single else 'count'} only when {'it is' if single else 'they are'} open again"
    text = f"set {settings} in {where} of the pod template, so that {effect}"
    if by_hand and for_all is None and not others:
        text += f", or {by_hand}"
    return changed(text, _operations(terms, fields, rule_input), rule_input)


def once_open(for_all: ClosedDomains | None, rule_input: PodsInput) -> str:
    """Return which pods of the workload wait once cordoned domains are open, as a further sentence; "" for none."""
    if for_all is None or for_all.state != CORDONED:
        return ""
    left = rule_input.engine.waiting_when_open(for_all.nodes, rule_input.workload)
    are = "it is" if len(for_all.domains) == 1 else "they are"
    return "" if left is None else f". Once {are} open, {still_waiting(left)}"


def _by_hand(causes: Collection[ObstacleKind]) -> str:
    """Return the actions that remove the taints of nodes, in words; "" for none."""
    return " and ".join(FILTERS[cause].remedy.format(nodes="its nodes") for cause in _TAINTS if cause in causes)


def closed_domains(shut: Closed) -> ClosedDomains | None:
    """Return domains that are closed by cordons and taints alone, which may be the same for many workloads.

    Nodes that are whole zones stand for these, whatever the topology key is. None where anything else closes a domain.
    """
    if not shut.causes <= {*_TAINTS} or shut.refusals_when_open:
        return None
    key, nodes = shut.spread.constraint.topology_key, sorted(lowest(shut.spread))
    return _by_zones(nodes, shut.answers) or _in_words(key, shut.values, nodes, shut.refusals)


def left_out(spread: Spread, answers: NodeAnswers) -> ClosedDomains | None:
    """Return closed domains that a policy leaves out, if only without these there are fewer domains than minDomains.

    None where a taint that is usually meant to stay closes any of them: the policy is then meant to leave it out.
    """
    constraint = spread.constraint
    nodes, refusals = _outside(spread, answers.audit), obstacles_outside(spread, answers)
    shut = [
        domain
        for domain, obstacles_of_nodes in refusals.items()
        if len(obstacles_of_nodes) == len(nodes[domain])
        and all(obstacle.cause in _PASSING for obstacle in obstacles_of_nodes)
    ]
    if not shut or len(spread.match_num) + len(shut) < constraint.min_domains:
        return None
    names = sorted(name for domain in shut for name in nodes[domain])
    causes = [obstacle for domain in shut for obstacle in refusals[domain]]
    return _by_zones(names, answers) or _in_words(constraint.topology_key, sorted(shut), names, causes)


def fewer_domains(spread: Spread, answers: NodeAnswers, rule_input: PodsInput) -> Remedy:
    """Return the two ways to have enough domains: more nodes, or the patch that lowers minDomains to what there is."""
    number, minimum = len(spread.match_num), spread.constraint.min_domains
    pinned = sum(map(only_pinned, obstacles_outside(spread, answers).values()))
    more = plural(minimum - number, "more domain")
    ways = f"let nodeSelector or node affinity match {more}" if pinned >= minimum - number else f"add nodes in {more}"
    text = f"{ways}, or lower minDomains in the pod template"
    if not number or rule_input.has_defaults:
        return Remedy(text)
    field = rule_input.term_path / "minDomains"
    test = patches.test(rule_input.term_path / "topologyKey", spread.constraint.topology_key)
    return changed(f"{text} to {number}", (test, *patches.replaced(field, minimum, number)), rule_input)


def shortage(spread: Spread, answers: NodeAnswers) -> str:
    """Return which domains there are, which minDomains asks for, and the effect, as sentences."""
    constraint, number = spread.constraint, len(spread.match_num)
    verb = "is" if number == 1 else "are"
    most = plural(constraint.limit(0), "matching pod")
    outside = left_out_in_words(spread, answers)
    return (
        f"Only {plural(number, 'domain')} of {constraint.topology_key} {verb} eligible, and minDomains is "
        f"{constraint.min_domains}, so each may have at most {most}.{f' Left out: {outside}.' if outside else ''}"
    )


def left_out_in_words(spread: Spread, answers: NodeAnswers) -> str:
    """Return the domains whose nodes the constraint's policies leave out, each with the reasons."""
    obstacles_by_domain = obstacles_outside(spread, answers)
    texts = [
        f"{value(domain)} ({obstacles.summary(obstacles_by_domain[domain])})" for domain in sorted(obstacles_by_domain)
    ]
    return ", ".join(texts)


def obstacles_outside(spread: Spread, answers: NodeAnswers) -> dict[str, list[Obstacle]]:
    """Return the obstacles on the nodes of each domain that does not count, if there are any."""
    outside = _outside(spread, answers.audit)
    obstacles_by_domain = {domain: answers.obstacles(nodes) for domain, nodes in outside.items()}
    return {domain: of_domain for domain, of_domain in obstacles_by_domain.items() if of_domain}


def _outside(spread: Spread, audit: Audit) -> dict[str, list[str]]:
    """Return the nodes of each domain that does not count."""
    nodes: dict[str, list[str]] = {}
    for node in audit.nodes.nodes:
        domain = node.metadata.labels.get(spread.constraint.topology_key)
        if domain is not None and domain not in spread.match_num:
            nodes.setdefault(domain, []).append(node.metadata.name)
    return nodes


def _by_zones(nodes: Sequence[str], answers: NodeAnswers) -> ClosedDomains | None:
    """Return the zones of closed nodes; None where a node is in no zone, or another node of the zones is not closed."""
    zones = {answers.audit.nodes.by_name[node].metadata.labels.get(ZONE) for node in nodes}
    values = tuple(sorted(zone for zone in zones if zone is not None))
    return None if None in zones else _closed_zones(answers.audit, values, answers.pod_class)


@memoized
def _closed_zones(audit: Audit, zones: tuple[str, ...], pod_class: PodClass) -> ClosedDomains | None:
    """Return zones whose nodes are all closed to pods by cordons and taints; None where one is not."""
    nodes = sorted(node.metadata.name for node in audit.nodes.nodes if node.metadata.labels.get(ZONE) in zones)
    obstacles_on_nodes = (audit.obstacles.of(pod_class, node) for node in nodes)
    closing = [each for each in obstacles_on_nodes if each is not None and each.cause in _TAINTS]
    return _in_words(ZONE, zones, nodes, closing) if len(closing) == len(nodes) else None


def _in_words(key: str, values: Sequence[str], nodes: Sequence[str], refusals: Collection[Obstacle]) -> ClosedDomains:
    causes = {refusal.cause for refusal in refusals}
    untolerated = {refusal.taint for refusal in refusals if refusal.cause is not ObstacleKind.CORDONED}
    states = [f"tainted with {listed(sorted(untolerated))}"] if untolerated else []
    if ObstacleKind.CORDONED in causes:
        states.insert(0, CORDONED)
    state = " and ".join(f"partly {each}" for each in states) if len(states) > 1 else states[0]
    fix = sentence(f"open {domains(key, values)}: {_by_hand(causes)}")
    return ClosedDomains(
        topology_key=key,
        domains=list(values),
        nodes=list(nodes),
        state=state,
        lasting=ObstacleKind.TAINTED in causes,
        fix=fix,
    )


def _terms_to_change(
    shut: Closed, fields: Sequence[str], evaluation: ClassEvaluation, rule_input: PodsInput, *, blocked: bool
) -> Sequence[TopologyTerm]:
    """Return the constraints that need the policies: only this one, or else all of the pods; () if neither helps."""
    terms = [term for term in evaluation.pod_class.terms if term.spread and not term.default]
    own = [term for term in terms if term.path == rule_input.pod_path]
    if not (own and rule_input.behaviour.node_inclusion_policies and fields):
        return ()
    for candidates in (own, terms):
        if _helps(candidates, shut, fields, evaluation, blocked=blocked):
            return candidates
    return ()


def _helps(
    terms: Sequence[TopologyTerm],
    shut: Closed,
    fields: Sequence[str],
    evaluation: ClassEvaluation,
    *,
    blocked: bool,
) -> bool:
    """Tell whether policies leave out the closed domains and no pod, and let a pod in if pods are ``blocked``."""
    pod_class, audit = evaluation.pod_class, shut.answers.audit
    before = [spread for spread in evaluation.spreads if spread is not None]
    if len(before) != sum(term.spread for term in pod_class.terms):
        return False
    policies = dict.fromkeys((_POLICIES[field] for field in fields), NodeInclusionPolicy.HONOR)
    constraints = [
        msgspec.structs.replace(spread.constraint, **policies) if term in terms else spread.constraint
        for term, spread in zip(pod_class.terms, before, strict=False)
    ]
    census = audit.evaluator.census
    after = census.spreads(pod_class.namespace, pod_class.labels, constraints, pod_class.placement)
    if any(
        new.short_of_domains or not new.match_num or new.match_num.total != old.match_num.total
        for old, new in zip(before, after, strict=True)
    ):
        return False
    (own,) = [new for old, new in zip(before, after, strict=True) if old is shut.spread]
    if not own.match_num.keys().isdisjoint(shut.values):
        return False
    hard = [spread for spread in after if spread.constraint.hard]
    return not blocked or any(msgspec.structs.replace(shut.answers, hard=hard).free())


def _operations(terms: Iterable[TopologyTerm], fields: Iterable[str], rule_input: PodsInput) -> tuple[Operation, ...]:
    operations: list[Operation] = []
    for term in terms:
        path = term.path.moved(POD_SPEC, rule_input.pod_spec)
        operations.append(patches.test(path / "topologyKey", term.topology_key))
        operations += (Operation(op="add", path=(path / field).pointer, value="Honor") for field in fields)
    return tuple(operations)
