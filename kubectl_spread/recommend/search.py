"""Search: the smallest change after which a workload survives all events, and harms no other workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from kubectl_spread.engine.controllers import SimulatedEvent
from kubectl_spread.engine.events import Apply, Restart
from kubectl_spread.engine.world import World
from kubectl_spread.kube.api.objects import ObjectRef
from kubectl_spread.recommend.candidates import EVICTIONS, Proposal, Proposals
from kubectl_spread.recommend.trials import ROLLOUT, Hazard, Setting, Trials, WorstCase, harmed

_BEST: Final = 3
"""The candidates of which the best one is taken where none is good."""


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
        tried: The candidates that were not good, in their order.
        complete: Whether all candidates before the chosen one were tried.
    """

    hazards: Sequence[Hazard]
    now: Sequence[WorstCase]
    chosen: Proposal | None
    patched: Sequence[WorstCase]
    tried: Sequence[Tried]
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
        proceed: Callable[[], bool],
    ) -> None:
        """Prepare the search.

        Args:
            world: The cluster.
            workload: The workload.
            first: What happens before each event without a change: the rollout of a new workload.
            trials: Tries events.
            proceed: Tells whether there is time for another proposal.
        """
        self._world, self._workload, self._trials, self._proceed = world, workload, trials, proceed
        self._today = Setting(world, tuple(first))

    def best(self, hazards: Sequence[Hazard], candidates: Proposals) -> Recommendation:
        """Return the first proposal that survives all events; the one that misses least where there is none.

        Raises:
            SpreadError: The workload cannot be rolled out.
        """
        now = [self._trials.worst(hazard, self._today, self._trials.runs) for hazard in hazards]
        failing = [hazard for hazard, case in zip(hazards, now, strict=True) if case.shortfall(hazard)]
        if not failing:
            return Recommendation(hazards, now, None, now, (), complete=True)
        every = (ROLLOUT, *hazards)
        before = [self._trials.worst(ROLLOUT, self._today, self._trials.runs), *now]
        stopping = next((case.budget for case in now if case.budget), "")
        # The event that rejected the last proposal is likely to reject the next one.
        first = sorted(failing, key=lambda hazard: -now[hazards.index(hazard)].shortfall(hazard))
        tried: list[Tried] = []
        complete = True
        for proposal in candidates.ordered(_families(hazards, now), stopping):
            complete = self._proceed()
            if not complete:
                break
            setting = self._setting(proposal)
            rejected = self._rejected(proposal, setting, first)
            cases = None if rejected else [self._trials.worst(hazard, setting, self._trials.runs) for hazard in every]
            rejected = rejected or self._not_good(proposal, every, cases or (), before)
            if rejected is None and cases is not None:
                return Recommendation(hazards, now, proposal, cases[1:], tried, complete=True)
            if rejected is not None:
                tried.append(rejected)
                if rejected.hazard in first:
                    first.remove(rejected.hazard)
                    first.insert(0, rejected.hazard)
        chosen, patched = self._least_bad(every, before, tried)
        return Recommendation(hazards, now, chosen, patched[1:], tried, complete=complete)

    def _setting(self, proposal: Proposal) -> Setting:
        budget = proposal.draft.budget
        world = self._world if budget is None else self._world.variant(budget=budget)
        event: SimulatedEvent = Apply(self._workload, proposal.manifest)
        return Setting(world, (Restart(self._workload) if proposal.restarts else event,))

    def _rejected(self, proposal: Proposal, setting: Setting, failing: Sequence[Hazard]) -> Tried | None:
        """Return the first of some events that a proposal does not survive in one run."""
        for hazard in failing:
            case = self._trials.worst(hazard, setting, 1)
            if case.shortfall(hazard):
                return Tried(proposal, hazard, case)
        return None

    def _not_good(
        self, proposal: Proposal, hazards: Sequence[Hazard], cases: Sequence[WorstCase], before: Sequence[WorstCase]
    ) -> Tried | None:
        for hazard, case in zip(hazards, cases, strict=False):
            if case.shortfall(hazard):
                return Tried(proposal, hazard, case)
        for hazard, case, today in zip(hazards, cases, before, strict=False):
            if harm := harmed(case, today):
                return Tried(proposal, hazard, case, harm)
        return None

    def _least_bad(
        self, hazards: Sequence[Hazard], before: Sequence[WorstCase], tried: Sequence[Tried]
    ) -> tuple[Proposal | None, Sequence[WorstCase]]:
        """Return the proposal that misses the goals least, with what is left; None where none is better than today."""
        best: Proposal | None = None
        patched, fewest = before, _missing(hazards, before)
        harmless = [each for each in tried if not each.harm and each.hazard is not ROLLOUT]
        for each in sorted(harmless, key=lambda each: each.case.shortfall(each.hazard))[:_BEST]:
            setting = self._setting(each.proposal)
            cases = [self._trials.worst(hazard, setting, self._trials.runs) for hazard in hazards]
            harms = any(harmed(case, today) for case, today in zip(cases, before, strict=True))
            if not harms and _missing(hazards, cases) < fewest:
                best, patched, fewest = each.proposal, cases, _missing(hazards, cases)
        return best, patched


def _families(hazards: Sequence[Hazard], cases: Sequence[WorstCase]) -> Iterator[str]:
    """Yield the words of the events that are not survived."""
    for hazard, case in zip(hazards, cases, strict=True):
        if case.shortfall(hazard):
            yield hazard.family
            if hazard.family == "drain" and (case.budget or case.least < hazard.goal):
                yield EVICTIONS


def _missing(hazards: Sequence[Hazard], cases: Sequence[WorstCase]) -> tuple[int, int]:
    """Return how many events are not survived, and by how many pods in all."""
    shortfalls = [case.shortfall(hazard) for hazard, case in zip(hazards, cases, strict=True)]
    return sum(map(bool, shortfalls)), sum(shortfalls)
