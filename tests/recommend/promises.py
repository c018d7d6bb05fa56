"""Recommendations for random clusters, and whether other random numbers keep what they promise.

``python -m tests.recommend.promises --clusters 200`` asks about many.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from kubectl_spread.cli import output
from kubectl_spread.engine.events import Apply, Restart
from kubectl_spread.recommend import trials
from kubectl_spread.recommend.trials import Demand, Setting, Trials
from kubectl_spread.report.recommendation import EventLoss, RecommendedEvent
from kubectl_spread.run import recommend
from kubectl_spread.run.recommend import Answer, RecommendOptions
from kubectl_spread.run.simulate import SimulateRun, collect
from tests.builders import Json
from tests.plan.small import cluster_of

_OTHER_SEED: Final = 77
_RUNS: Final = 10
_SECONDS: Final = 60.0


class Broken(NamedTuple):
    """A promise that other random numbers do not keep."""

    cluster: int
    workload: str
    event: str
    changes: Sequence[str]


def workloads(objects: Sequence[Json]) -> list[str]:
    """Return the names of the Deployments and StatefulSets."""
    kinds = {"Deployment": "deploy", "StatefulSet": "sts"}
    found = [each for each in objects if each["kind"] in kinds]
    return sorted(f"{kinds[each['kind']]}/{each['metadata']['name']}" for each in found)


def broken(cluster: int) -> Iterator[tuple[int, list[Broken]]]:
    """Yield, for each workload of a cluster, the number of promises and those that are not kept."""
    objects = cluster_of(f"recommend/{cluster}", varied=True)
    with TemporaryDirectory() as directory:
        path = Path(directory, "cluster.json")
        path.write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
        for name in workloads(objects):
            run = collect({"filename": (str(path),), "arguments": (name,)}, output, [])
            options = RecommendOptions(demand=Demand(), runs=_RUNS, seconds=_SECONDS, seed=0)
            answer = recommend.answer(run, recommend.subject(run, []), options, output)
            events = [each for each in answer.report.events if _promised(each)]
            yield (
                len(events),
                [
                    Broken(cluster, name, event, answer.chosen.texts if answer.chosen else ())
                    for event in _failing(run, answer)
                    if event in {each.event for each in events}
                ],
            )


def _promised(event: RecommendedEvent) -> bool:
    patched = event.patched
    return (event.now if not isinstance(patched, EventLoss) else patched).survived


def _failing(run: SimulateRun, answer: Answer) -> Iterator[str]:
    """Yield the events that are not survived with the change, by other random numbers."""
    ref, manifest, chosen = answer.subject.ref, answer.subject.manifest, answer.chosen
    world = run.world()
    setting = Setting(world)
    if chosen is not None:
        budget = chosen.draft.budget
        changed = world if budget is None else world.variant(budget=budget)
        setting = Setting(changed, (Restart(ref) if chosen.restarts else Apply(ref, chosen.manifest),))
    tests = Trials(ref, manifest.template.metadata.labels, _OTHER_SEED)
    for hazard in trials.hazards(ref, manifest, trials.places(world, trials.kind_of(world, ref, manifest)), Demand()):
        if tests.worst(hazard, setting, range(_RUNS)).shortfall(hazard):
            yield hazard.text


def main() -> None:
    """Print each promise that is not kept, and their number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    promises, failures = 0, 0
    for cluster in range(options.first, options.first + options.clusters):
        for number, those in broken(cluster):
            promises += number
            failures += len(those)
            for each in those:
                print(each)
    print(f"{promises} promises, {failures} not kept")


if __name__ == "__main__":
    main()
