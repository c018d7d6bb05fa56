"""Search: the smallest change after which a workload survives all events, and harms no other workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from kubectl_spread.engine.controllers import SimulatedEvent
from kubectl_spread.engine.events import Apply, Restart
from kubectl_spread.engine.world import World
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.recommend.candidates import EVICTIONS, Proposal, Proposals
from kubectl_spread.recommend.trials import ROLLOUT, Hazard, Setting, Trials, WorstCase, harmed, worst_of

_BEST: Final = 3
"""The proposals of which the best one is taken where none is good."""


class Tried(msgspec.Struct, frozen=True):
    """A proposal that was not good: with which event, and what is left then.

    Attributes:
        proposal: The proposal.
        hazard: The first event that it does not survive.
        case: What is left.
        harm: What it makes worse for another workload; "" where that is not why.
    """

    proposal: Proposal
    hazard: Hazard
    case: WorstCase
    harm: str = ""


class Recommendation(msgspec.Struct, frozen=True):
    """The answer for one workload.

    Attributes:
        hazards: The events.
        now: What each of them leaves now.
        chosen: The change; None where none is needed, or none helps.
        patched: What each event leaves with the change; that of today where there is none.
        tried: The proposals that were not good, in their order.
        runs: The number of runs of each event.
        complete: Whether all proposals before the chosen one were tried.
    """

    hazards: Sequence[Hazard]
    now: Sequence[WorstCase]
    chosen: Proposal | None
    patched: Sequence[WorstCase]
    tried: Sequence[Tried]
    runs: int
    complete: bool

    def unmet(self) -> Iterator[tuple[Hazard, WorstCase]]:
        """Yield the events that are not survived with the change as wanted, and what they leave."""
        for hazard, case in zip(self.hazards, self.patched, strict=True):
            if case.shortfall(hazard) or hazard.goal < hazard.keep:
                yield hazard, case


class Search:
    """The search for one workload."""

    def __init__(
        self,
        world: World,
        workload: ObjectRef,
        first: Sequence[SimulatedEvent],
        trials: Trials,
        *,
        runs: Callable[[], int],
        proceed: Callable[[], bool],
    ) -> None:
        """Prepare the search.

        Args:
            world: The cluster.
            workload: The workload.
            first: What happens before each event without a change: the rollout of a new workload.
            trials: Tries events.
            runs: Returns the number of runs of each event, after the first one of each.
            proceed: Tells whether there is time for another proposal.
        """
        self._world, self._workload, self._trials = world, workload, trials
        self._runs, self._proceed = runs, proceed
        self._today = Setting(world, tuple(first))

    def best(self, hazards: Sequence[Hazard], proposals: Proposals) -> Recommendation:
        """Return the first proposal that survives all events; the one that misses least where there is none.

        Raises:
            SpreadError: The workload cannot be rolled out.
        """
        every = (ROLLOUT, *hazards)
        before = [self._trials.worst(hazard, self._today, (0,)) for hazard in every]
        numbers = range(1, self._runs())
        before = [self._more(hazard, self._today, case, numbers) for hazard, case in zip(every, before, strict=True)]
        now = before[1:]
        failing = {
            hazard.text: case.domain for hazard, case in zip(hazards, now, strict=True) if case.shortfall(hazard)
        }
        if not failing:
            return Recommendation(hazards, now, None, now, (), self._runs(), complete=True)
        first = [hazard for hazard in hazards if hazard.text in failing]
        first.sort(key=lambda hazard: -now[hazards.index(hazard)].shortfall(hazard))
        stopping = next((case.budgets[0] for case in now if case.budgets), "")
        tried: list[Tried] = []
        complete = True
        for proposal in proposals.ordered(_families(hazards, now), stopping):
            complete = self._proceed()
            if not complete:
                break
            setting = self._setting(proposal)
            cases: Sequence[WorstCase] = ()
            rejected = self._rejected(proposal, setting, first, failing)
            if rejected is None:
                cases, rejected = self._judged(proposal, setting, every, before)
            if rejected is None:
                return Recommendation(hazards, now, proposal, cases[1:], tried, self._runs(), complete=True)
            tried.append(rejected)
        chosen, patched = self._least_bad(every, before, tried)
        return Recommendation(hazards, now, chosen, patched[1:], tried, self._runs(), complete=complete)

    def with_new_nodes(self, result: Recommendation) -> Iterator[tuple[Hazard, int]]:
        """Yield each event after which pods wait with the change, and how many wait if nodes are made, in one run."""
        setting = self._today if result.chosen is None else self._setting(result.chosen)
        for hazard, case in zip(result.hazards, result.patched, strict=True):
            if case.pending:
                yield hazard, self._trials.worst(hazard, replace(setting, provisions=True), (0,)).pending

    def _rejected(
        self, proposal: Proposal, setting: Setting, first: list[Hazard], domains: dict[str, str]
    ) -> Tried | None:
        """Return the first of some events that a proposal does not survive in one run; None where it survives all.

        Args:
            proposal: The proposal.
            setting: The cluster with it.
            first: The events. One that rejects a proposal becomes the first: it is likely to reject the next one too.
            domains: The domain of each event that is tried first.
        """
        for hazard in first:
            case = self._trials.failing(hazard, setting, domains[hazard.text])
            if case is not None:
                domains[hazard.text] = case.domain
                first.remove(hazard)
                first.insert(0, hazard)
                return Tried(proposal, hazard, case)
        return None

    def _more(self, hazard: Hazard, setting: Setting, case: WorstCase, numbers: Sequence[int]) -> WorstCase:
        """Return the worst of a case and of further runs."""
        return worst_of([case, self._trials.worst(hazard, setting, numbers)], hazard) if numbers else case

    def _judged(
        self, proposal: Proposal, setting: Setting, hazards: Sequence[Hazard], before: Sequence[WorstCase]
    ) -> tuple[Sequence[WorstCase], Tried | None]:
        """Return what is left after each event, and why a proposal is not good; only some events where it is not."""
        cases: list[WorstCase] = []
        for hazard, today in zip(hazards, before, strict=True):
            case = self._trials.worst(hazard, setting, range(self._runs()))
            cases.append(case)
            harm = harmed(case, today)
            if case.shortfall(hazard) or harm:
                return cases, Tried(proposal, hazard, case, harm if not case.shortfall(hazard) else "")
        return cases, None

    def _setting(self, proposal: Proposal) -> Setting:
        budget = proposal.draft.budget
        world = self._world if budget is None else self._world.variant(budget=budget)
        event: SimulatedEvent = Apply(self._workload, proposal.manifest)
        return Setting(world, (Restart(self._workload) if proposal.restarts else event,))

    def _least_bad(
        self, hazards: Sequence[Hazard], before: Sequence[WorstCase], tried: Sequence[Tried]
    ) -> tuple[Proposal | None, Sequence[WorstCase]]:
        """Return the proposal that misses the goals least, with what is left; None where none is better than today."""
        best: Proposal | None = None
        patched, fewest = before, _missing(hazards, before)
        harmless = [each for each in tried if not each.harm and each.hazard is not ROLLOUT]
        compared = 0
        for each in self._ranked(hazards, harmless):
            if compared == _BEST or (compared and not self._proceed()):
                break
            cases = self._harmless(self._setting(each.proposal), hazards, before)
            compared += cases is not None
            if cases is not None and _missing(hazards, cases) < fewest:
                best, patched, fewest = each.proposal, cases, _missing(hazards, cases)
        return best, patched

    def _harmless(
        self, setting: Setting, hazards: Sequence[Hazard], before: Sequence[WorstCase]
    ) -> Sequence[WorstCase] | None:
        """Return what is left after each event; None where another workload is worse off than today."""
        cases: list[WorstCase] = []
        for hazard, today in zip(hazards, before, strict=True):
            cases.append(self._trials.worst(hazard, setting, range(self._runs())))
            if harmed(cases[-1], today):
                return None
        return cases

    def _ranked(self, hazards: Sequence[Hazard], tried: Sequence[Tried]) -> list[Tried]:
        """Return rejected proposals, those first that miss least in one run, as far as there is time to try that."""
        ranks: list[tuple[tuple[int, int], Tried]] = []
        for each in tried:
            if not self._proceed():
                break
            setting = self._setting(each.proposal)
            others = [(hazard, self._trials.failing(hazard, setting, "")) for hazard in hazards]
            shortfalls = [case.shortfall(hazard) for hazard, case in others if case is not None]
            ranks.append(((len(shortfalls), sum(shortfalls)), each))
        if not ranks:
            return sorted(tried, key=lambda each: each.case.shortfall(each.hazard))
        return [each for _, each in sorted(ranks, key=lambda rank: rank[0])]


def _families(hazards: Sequence[Hazard], cases: Sequence[WorstCase]) -> Iterator[str]:
    """Yield the words of the events that are not survived."""
    for hazard, case in zip(hazards, cases, strict=True):
        if case.shortfall(hazard):
            yield hazard.family
            if hazard.family == "drain" and (case.budgets or case.least < hazard.goal):
                yield EVICTIONS


def _missing(hazards: Sequence[Hazard], cases: Sequence[WorstCase]) -> tuple[int, int]:
    """Return how many events are not survived, and by how many pods in all."""
    shortfalls = [case.shortfall(hazard) for hazard, case in zip(hazards, cases, strict=True)]
    return sum(map(bool, shortfalls)), sum(shortfalls)
