"""The mutants: each is one fault in the core that makes a wrong answer look right, with the tests that find it.

All of them are found by the hermetic tests, which are a stage of CI.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

AREAS: Final = (
    "merge",
    "verdicts",
    "count",
    "filter",
    "refusal",
    "report",
    "exit status",
    "paging",
    "watch",
    "policy",
    "simulate",
    "plan",
)
"""The areas of the core; each has several mutants."""
_PACKAGE: Final = Path("kubectl_spread")
_TESTS: Final = Path("tests")


class Mutant(NamedTuple):
    """A fault in one module.

    Attributes:
        name: The wrong behaviour.
        area: One of ``AREAS``.
        module: The module, below the package.
        old: The text that is replaced; it occurs once in the module.
        new: The text of the fault.
        killed_by: The tests that fail with it: paths below ``tests``, which may name one function after ``::``.
    """

    name: str
    area: str
    module: str
    old: str
    new: str
    killed_by: tuple[str, ...]

    @property
    def file(self) -> Path:
        """The module, below the checkout."""
        return _PACKAGE / self.module

    @property
    def tests(self) -> tuple[str, ...]:
        """The arguments of pytest."""
        return tuple(str(_TESTS / test) for test in self.killed_by)

    def applied(self, text: str) -> str:
        """Return the text of the module with the fault."""
        return text.replace(self.old, self.new)


MUTANTS: Final = (
    Mutant(
        "mismatchLabelKeys are merged as In",
        "merge",
        "kube/apiserver.py",
        "*_requirements(labels, mismatch_label_keys, Operator.NOT_IN),",
        "*_requirements(labels, mismatch_label_keys, Operator.IN),",
        ("kube/test_podstrategy.py",),
    ),
    Mutant(
        "preferred affinity terms are not merged",
        "merge",
        "kube/apiserver.py",
        "msgspec.structs.replace(weighted, pod_affinity_term=term(weighted.pod_affinity_term))",
        "weighted",
        ("kube/test_podstrategy.py",),
    ),
    Mutant(
        "the scheduler does not add the values of matchLabelKeys",
        "merge",
        "kube/scheduler/podtopologyspread/constraints.py",
        "dict.fromkeys((*selector.match_expressions, *added))",
        "dict.fromkeys(selector.match_expressions)",
        ("kube/test_podtopologyspread.py",),
    ),
    Mutant(
        "unmerge leaves a stale requirement in the selector",
        "merge",
        "audit/merge/merging.py",
        "frozenset({Verdict.MERGED, Verdict.STALE_LABEL})",
        "frozenset({Verdict.MERGED})",
        ("merge/test_outcomes.py",),
    ),
    Mutant(
        "a label that changed after creation has the verdict merged",
        "verdicts",
        "audit/merge/verdicts.py",
        "if self.labels[name] == stored:",
        "if self.labels[name]:",
        ("audit/test_verdicts.py",),
    ),
    Mutant(
        "a removed label has the verdict merged",
        "verdicts",
        "audit/merge/verdicts.py",
        "return Verdict.REMOVED_LABEL, Confidence.LIKELY, (_REMOVED_OR_AUTHORED,)",
        "return Verdict.MERGED, Confidence.LIKELY, (_REMOVED_OR_AUTHORED,)",
        ("audit/test_verdicts.py",),
    ),
    Mutant(
        "a key that is in the selector twice has no verdict",
        "verdicts",
        "audit/merge/verdicts.py",
        "if operator is Operator.IN and mentions > 1:",
        "if operator is Operator.IN and mentions > 2:",
        ("audit/test_verdicts.py",),
    ),
    Mutant(
        "the best verdict of the keys decides, not the worst",
        "verdicts",
        "audit/merge/verdicts.py",
        "return min(verdicts, key=SEVEREST.__getitem__, default=None)",
        "return max(verdicts, key=SEVEREST.__getitem__, default=None)",
        ("audit/test_verdicts.py",),
    ),
    Mutant(
        "domains without pods are left out of the global minimum",
        "count",
        "kube/scheduler/podtopologyspread/spread.py",
        "return {*self._occupied.values(), *((0,) if self.empty else ())}",
        "return set(self._occupied.values())",
        ("kube/test_podtopologyspread.py",),
    ),
    Mutant(
        "minDomains is ignored",
        "count",
        "kube/scheduler/podtopologyspread/constraints.py",
        "return least if domains >= self.min_domains else 0",
        "return least if domains else 0",
        ("kube/test_podtopologyspread.py",),
    ),
    Mutant(
        "nodeTaintsPolicy Honor is skipped",
        "count",
        "kube/scheduler/podtopologyspread/domains.py",
        "eligible &= usable.tolerated",
        "eligible &= carrying",
        ("audit/test_counting.py",),
    ),
    Mutant(
        "memoized methods forget their arguments",
        "count",
        "memoization.py",
        "if keywords else arguments",
        "if keywords else ()",
        ("audit/test_counting.py",),
    ),
    Mutant(
        "a terminating pod counts as running if a running pod is like it",
        "count",
        "audit/snapshot/snapshot.py",
        "key = (kind, terminating)",
        "key = (kind, False)",
        ("audit/test_counting.py",),
    ),
    Mutant(
        "half of the replicas in one domain is not half",
        "count",
        "audit/evaluation/domains.py",
        "domain.half_here += 2 * here >= running",
        "domain.half_here += 2 * here > running",
        ("cli/test_domains.py",),
    ),
    Mutant(
        "the pod itself is not in the skew that the Filter allows",
        "filter",
        "kube/scheduler/podtopologyspread/spread.py",
        "return self.constraint.max_skew - self.self_match_num + self.min_match_num",
        "return self.constraint.max_skew + self.min_match_num",
        ("kube/test_podtopologyspread.py",),
    ),
    Mutant(
        "a skew of one above maxSkew is within it",
        "filter",
        "kube/scheduler/podtopologyspread/spread.py",
        "return self.skew > self.constraint.max_skew",
        "return self.skew > self.constraint.max_skew + 1",
        ("audit/test_diagnosis.py", "rules/test_rules.py::test_bad_cases_fire_their_rule_and_no_other_error"),
    ),
    Mutant(
        "a node without the topology key passes",
        "filter",
        "kube/scheduler/podtopologyspread/spread.py",
        "labelled = left & nodes.carrying([key])",
        "labelled = left",
        ("kube/test_podtopologyspread.py",),
    ),
    Mutant(
        "a node that one constraint refuses passes by the next one",
        "filter",
        "kube/scheduler/podtopologyspread/spread.py",
        "left = passing",
        "left = labelled",
        ("kube/test_podtopologyspread.py",),
    ),
    Mutant(
        "NoExecute taints keep no pod away",
        "filter",
        "kube/scheduler/taints.py",
        'frozenset({"NoSchedule", "NoExecute"})',
        'frozenset({"NoSchedule"})',
        ("kube/test_taints.py",),
    ),
    Mutant(
        "a key that two requirements name is accepted",
        "refusal",
        "kube/apiserver.py",
        "if requirement.key in seen and requirement.key in last_index:",
        "if requirement.key in selector.match_labels and requirement.key in last_index:",
        ("kube/test_validation.py",),
    ),
    Mutant(
        "minDomains 0 is accepted",
        "refusal",
        "kube/apiserver.py",
        "if min_domains <= 0:",
        "if min_domains < 0:",
        ("kube/test_validation.py",),
    ),
    Mutant(
        "two adjacent constraints with the same key and action are accepted",
        "refusal",
        "kube/apiserver.py",
        "repeated = last_index[_pair(constraint)] > index",
        "repeated = last_index[_pair(constraint)] > index + 1",
        ("kube/test_validation.py",),
    ),
    Mutant(
        "an owner that is not the controller is the workload",
        "report",
        "audit/snapshot/podclasses.py",
        "next((owner for owner in metadata.owner_references if owner.controller), None)",
        "next(iter(metadata.owner_references), None)",
        ("audit/test_report.py",),
    ),
    Mutant(
        "the owner of the owner is lost",
        "report",
        "audit/snapshot/podclasses.py",
        "if record.owner is None:\n                return",
        "if record.owner is None or walked:\n                return",
        ("audit/test_report.py",),
    ),
    Mutant(
        "a row with a skew of one above maxSkew has no problem",
        "report",
        "report/model.py",
        "return self.excess is not None and self.excess > 0",
        "return self.excess is not None and self.excess > 1",
        ("render/test_markdown.py",),
    ),
    Mutant(
        "a baseline hides a finding that became more severe",
        "report",
        "rules/engine.py",
        "return any(severity >= finding.severity for severity in self.findings.get(key_of(finding), ()))",
        "return key_of(finding) in self.findings",
        ("cli/test_baseline.py",),
    ),
    Mutant(
        "a silenced finding hides the findings that it covers",
        "report",
        "rules/engine.py",
        "for result, silent in zip(results, silenced, strict=True) if not silent)",
        "for result, _ in zip(results, silenced, strict=True))",
        ("rules/test_rules.py::test_a_fact_is_one_finding_and_another_rule_has_it_if_its_rule_is_silenced",),
    ),
    Mutant(
        "errors leave exit status 0 where --fail-on is error",
        "exit status",
        "cli/formats.py",
        "each >= Severity(least)",
        "each > Severity(least)",
        ("cli/test_check.py",),
    ),
    Mutant(
        "objects that could not be read do not change the exit status if others could",
        "exit status",
        "cli/check.py",
        "problems=run.problems,",
        "problems=run.problems if run.empty else [],",
        ("cli/test_check.py", "cli/test_unchecked.py"),
    ),
    Mutant(
        "merge succeeds for a workload whose pods would all be refused",
        "exit status",
        "cli/filtering.py",
        "self.refused = self.refused or bool(outcome.errors or pod_errors)",
        "self.refused = self.refused or bool(outcome.errors)",
        ("merge/test_commands.py",),
    ),
    Mutant(
        "nodes that the user may not list are only a note",
        "exit status",
        "run/live.py",
        'self._problems.append(f"{error}: {so}")',
        'self._notes.append(f"{error}: {so}")',
        ("cli/test_requests.py",),
    ),
    Mutant(
        "the last page of a list is dropped",
        "paging",
        "sources/apiserver/paging.py",
        "if not token:\n            yield page\n            return",
        "if not token:\n            return",
        ("sources/test_paging.py",),
    ),
    Mutant(
        "pages of two states of the cluster are one list",
        "paging",
        "sources/apiserver/paging.py",
        "revision = revision or page.resource_version",
        "revision = page.resource_version",
        ("sources/test_paging.py",),
    ),
    Mutant(
        "a list that lacks one object is complete",
        "paging",
        "sources/apiserver/cluster.py",
        "if number < promised:",
        "if number < promised - 1:",
        ("sources/test_lists.py",),
    ),
    Mutant(
        "deleted objects stay in a watched list",
        "watch",
        "sources/apiserver/watch_list.py",
        "self.records.pop(key, None) if event.type == DELETED else self.records.get(key)",
        "self.records.get(key)",
        ("sources/test_watch_list.py",),
    ),
    Mutant(
        "resourceVersions are compared as texts",
        "watch",
        "sources/apiserver/watch_list.py",
        "return (len(version), version) > (len(than), than)",
        "return version > than",
        ("sources/test_watch_list.py",),
    ),
    Mutant(
        "a watch that fails is not reported as lost",
        "watch",
        "sources/apiserver/watch_list.py",
        "self._expired = True\n            self.lost = self.lost or str(error)",
        "self._expired = True",
        ("sources/test_watch_list.py",),
    ),
    Mutant(
        "an error that ends a watch is ignored",
        "watch",
        "sources/apiserver/watch.py",
        "if self._signals.failure is not None:",
        "if self._signals.failure is not None and not self._signals.failure:",
        ("sources/test_watched_cluster.py",),
    ),
    Mutant(
        "each policy only warns",
        "policy",
        "policy/__init__.py",
        '"action": action.capitalize(),',
        '"action": Action.WARN.capitalize(),',
        ("policy/test_policies.py",),
    ),
    Mutant(
        "a namespace with a number as its name is not excluded",
        "policy",
        "policy/__init__.py",
        "json.dumps([*excluded])",
        "f\"[{', '.join(excluded)}]\"",
        ("policy/test_policies.py",),
    ),
    Mutant(
        "a simulated rollout that has begun does not go on",
        "simulate",
        "engine/controllers.py",
        "    return rollouts\n",
        "    return {}\n",
        ("simulate/test_simulate.py",),
    ),
    Mutant(
        "a simulated rollout goes on although it is paused",
        "simulate",
        "engine/controllers.py",
        " and not stored.spec.paused:",
        ":",
        ("simulate/test_simulate.py",),
    ),
    Mutant(
        "no pod is placed while a drain cordons nodes",
        "simulate",
        "engine/events.py",
        "_PLACED_BETWEEN: Final = 0.5",
        "_PLACED_BETWEEN: Final = 0.0",
        ("simulate/test_simulate.py",),
    ),
    Mutant(
        "a simulated scale during a rollout changes the newest pods only",
        "simulate",
        "engine/events.py",
        "    if len(active) <= 1:\n        return dict.fromkeys(active, replicas)",
        "    if True:\n        return dict.fromkeys(active[-1:], replicas)",
        ("simulate/test_simulate.py",),
    ),
    Mutant(
        "only rollouts of the last simulated event go on",
        "simulate",
        "engine/runs.py",
        "            rollouts |= begun.rollouts\n",
        "            rollouts = begun.rollouts\n",
        ("simulate/test_simulate.py",),
    ),
    Mutant(
        "a simulated StatefulSet replaces pods that are terminating on a lost node",
        "simulate",
        "engine/controllers.py",
        "for pod in (*cluster.of(owner), *cluster.terminating_of(owner))}",
        "for pod in cluster.of(owner)}",
        ("simulate/test_outages.py",),
    ),
    Mutant(
        "a simulated constraint counts pods that are terminating on a lost node",
        "simulate",
        "engine/cluster.py",
        "        pod.kind = self.world.kinds.of(pod.kind.pod_class, terminating=True)",
        "        pod.kind = self.world.kinds.of(pod.kind.pod_class)",
        ("simulate/test_outages.py",),
    ),
    Mutant(
        "deleted pods give up their room before their replacements are placed",
        "simulate",
        "engine/cluster.py",
        "                self._leave(pod)\n",
        "                pass\n",
        ("recommend/test_recommend.py",),
    ),
    Mutant(
        "pods are evicted although most of a small zone is lost",
        "simulate",
        "kube/nodelifecycle.py",
        "return _SLOW_INTERVAL if self.nodes > LARGE else None",
        "return _SLOW_INTERVAL",
        ("simulate/test_outages.py",),
    ),
    Mutant(
        "pods that have waited before a simulated event are taken for new ones",
        "simulate",
        "engine/runs.py",
        "        is_new = not left[pod.workload]\n",
        "        is_new = True\n",
        ("simulate/test_outages.py",),
    ),
    Mutant(
        "the fewest ready pods of a simulation are those before the events",
        "simulate",
        "engine/cluster.py",
        "if pods < 0 and self._ready[workload] < ",
        "if pods > 0 and self._ready[workload] < ",
        ("simulate/test_outages.py",),
    ),
    Mutant(
        "required affinity keeps no simulated pod away",
        "simulate",
        "engine/placing.py",
        "        return self.nodes.everything & ~attracting",
        "        return 0",
        ("simulate/test_affinity.py",),
    ),
    Mutant(
        "the first pod of a group with affinity waits for itself",
        "simulate",
        "engine/placing.py",
        "        for key, tally in () if starts_group else zip(",
        "        for key, tally in zip(",
        ("simulate/test_affinity.py",),
    ),
    Mutant(
        "preferred affinity of simulated pods is ignored",
        "simulate",
        "engine/placing.py",
        "tallies = [each for each in tallies if each[0].counts]",
        "tallies = [each for each in tallies if not each[0].counts]",
        ("simulate/test_affinity.py",),
    ),
    Mutant(
        "a node for pods that repel each other closes no zone while it may be in several",
        "simulate",
        "engine/topologygroups.py",
        "        self._add(node.listed or ())",
        "        super().record(node)",
        ("simulate/test_new_nodes.py",),
    ),
    Mutant(
        "no node is made for the first of the pods that want to be together",
        "simulate",
        "engine/topologygroups.py",
        "        return self.counts(kind) and not any(",
        "        return not self.counts(kind) and not any(",
        ("simulate/test_new_nodes.py", "engine/test_new_nodes.py"),
    ),
    Mutant(
        "pods that repel those that wait keep Karpenter from no zone",
        "simulate",
        "engine/topologygroups.py",
        "lambda kind: held in kinds.acting_on(kind)",
        "lambda kind: held not in kinds.acting_on(kind)",
        ("simulate/test_new_nodes.py",),
    ),
    Mutant(
        "a manifest whose selector does not select its pods is simulated",
        "simulate",
        "kube/apps.py",
        "if not invalid and not labelselectors.matches(selector, labels):",
        "if not invalid and selector is None:",
        ("simulate/test_applied.py",),
    ),
    Mutant(
        "a manifest whose pods the API server would refuse is simulated",
        "simulate",
        "run/simulate.py",
        "            for message in refusal.messages:\n",
        "            for message in ():\n",
        ("simulate/test_applied.py",),
    ),
    Mutant(
        "a manifest without the API server's defaults is rolled out",
        "simulate",
        "kube/api/workloads.py",
        'restart_policy=spec.restart_policy or "Always"',
        "restart_policy=spec.restart_policy",
        ("simulate/test_applied.py",),
    ),
    Mutant(
        "a plan tries only the first pod of a skew",
        "plan",
        "engine/planner.py",
        "(*([candidate] for candidate in queue), *self",
        "(*([candidate] for candidate in queue[:1]), *self",
        ("plan/test_tries.py",),
    ),
    Mutant(
        "a plan looks at the fullest domain only",
        "plan",
        "engine/planner.py",
        "        uneven = target.uneven(first)\n        ranked",
        "        uneven = {value: pods for value, pods in target.uneven(first).items() if pods > 1}\n        ranked",
        ("plan/test_tries.py",),
    ),
    Mutant(
        "an eviction of a plan is tried in one run only",
        "plan",
        "engine/planner.py",
        "for number, cluster in enumerate(self._runs):\n            # Equal",
        "for number, cluster in enumerate(self._runs[:1]):\n            # Equal",
        ("plan/test_tries.py",),
    ),
    Mutant(
        "a plan names the destinations of one run",
        "plan",
        "engine/planner.py",
        "            self._to[candidate] |= to\n",
        "            self._to[candidate] |= to if number == 0 else set()\n",
        ("plan/test_tries.py",),
    ),
    Mutant(
        "a plan ignores budgets",
        "plan",
        "engine/planner.py",
        "            elif budgets := refusing_budgets(cluster, pod):",
        "            elif False and (budgets := refusing_budgets(cluster, pod)):",
        ("plan/test_plan.py::test_what_cannot_be_corrected_has_a_reason",),
    ),
    Mutant(
        "a plan lets another skew grow",
        "plan",
        "engine/planner.py",
        "            if not own:\n",
        "            if False:\n",
        ("plan/test_plan.py::test_a_replacement_must_not_raise_the_skew_of_another_workload",),
    ),
    Mutant(
        "a plan leaves pods pending",
        "plan",
        "engine/planner.py",
        "        return _unplaced(cluster, candidates, explained=explained) or self._not",
        "        return self._not",
        ("plan/test_plan.py::test_what_cannot_be_corrected_has_a_reason",),
    ),
)
"""The mutants by area."""
