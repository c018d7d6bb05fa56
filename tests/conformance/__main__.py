"""Compare kubectl_spread with the real Kubernetes code: ``python -m tests.conformance --cases N``."""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ruamel.yaml import YAML

from tests.builders import Json
from tests.conformance import oracles
from tests.conformance.cases import ADVICE_KINDS, KINDS
from tests.conformance.compare import PARTS, Bench, Disagreement, Tally
from tests.conformance.placements import plans
from tests.conformance.placements import run as placements
from tests.conformance.placements.cases import KIND as PLACEMENTS
from tests.conformance.placements.oracles import VERSION as SCHEDULER_VERSION
from tests.conformance.placements.oracles import binary as placements_oracle
from tests.conformance.settings import CI_GATES, CI_MINORS, GATES, Setting, settings
from tests.conformance.shrink import shrink

_CHUNK: Final = 250
_ALONE: Final = (PLACEMENTS, plans.KIND)
"""The kinds that one program answers, for all minors and gates."""
_KINDS: Final = (*KINDS, *ADVICE_KINDS, *_ALONE)
_PLACEMENTS_AT_ONCE: Final = 250
_PLANS_AT_ONCE: Final = 10
_ADVICE_SHARE: Final = 10
_PLANS_SHARE: Final = 50
_CASES: Final = f"per minor, set of gates and kind (default 2000); of {', '.join(ADVICE_KINDS)} one in {_ADVICE_SHARE}"


@dataclass(frozen=True, slots=True)
class Run:
    """The options of the command line."""

    cases: int
    placements: int
    plans: int
    seed: int
    minors: tuple[int, ...]
    kinds: tuple[str, ...]
    gates: tuple[str, ...]
    workers: int

    def size(self, kind: str) -> int:
        """Return the number of cases of a kind for each setting; advice has fewer because it needs explanations."""
        return max(self.cases // _ADVICE_SHARE, _CHUNK // 5) if kind in ADVICE_KINDS else self.cases

    @property
    def kubernetes_kinds(self) -> tuple[str, ...]:
        """The kinds that Kubernetes answers, minor by minor."""
        return tuple(kind for kind in self.kinds if kind not in _ALONE)


def main() -> int:
    """Print a table and the first disagreement of each kind; return 1 if there is a disagreement."""
    run = _parse(sys.argv[1:])
    for minor in run.minors if run.kubernetes_kinds else ():
        oracles.binary(minor)
    print(f"{'minor':<6}{'gates':<12}{'kind':<24}{'cases':>9}{'disagreements':>15}{'seconds':>9}")
    agrees = not _compare_kubernetes(run)
    if PLACEMENTS in run.kinds:
        agrees = not _compare_placements(run) and agrees
    if plans.KIND in run.kinds:
        agrees = not _compare_plans(run) and agrees
    return 0 if agrees else 1


def _compare_kubernetes(run: Run) -> bool:
    """Ask the apiservers and schedulers; return whether there is a disagreement."""
    disagreements: dict[tuple[str, str], tuple[Setting, Disagreement]] = {}
    with multiprocessing.Pool(run.workers, initializer=_start, initargs=(run,)) as pool:
        for kind in run.kubernetes_kinds:
            started = time.monotonic()
            tallies: dict[Setting, Tally] = {}
            for part in pool.imap_unordered(_chunk, _chunks(run, kind)):
                for setting, tally in part.items():
                    tallies.setdefault(setting, Tally()).add(tally)
            _print_rows(kind, tallies, time.monotonic() - started)
            for setting, tally in tallies.items():
                for name, first in tally.first.items():
                    disagreements.setdefault((kind, name), (setting, first))
    for (kind, _), (setting, first) in disagreements.items():
        _print_disagreement(kind, setting, first)
    return bool(disagreements)


def _compare_placements(run: Run) -> bool:
    """Ask the whole kube-scheduler of one minor about placements; return whether there is a disagreement."""
    total = _scheduled(run, PLACEMENTS, placements.run, run.placements, _PLACEMENTS_AT_ONCE)
    for part, first in total.first.items():
        _show(f"{part}, kube-scheduler {SCHEDULER_VERSION}", placements.smallest(first))
    return bool(total.first)


def _compare_plans(run: Run) -> bool:
    """Ask the whole kube-scheduler of one minor about plans; return whether there is a disagreement."""
    total = _scheduled(run, plans.KIND, plans.run, run.plans, _PLANS_AT_ONCE)
    for part, first in total.first.items():
        _show(f"{part}, kube-scheduler {SCHEDULER_VERSION}", first)
    return bool(total.first)


def _scheduled(run: Run, kind: str, ask: Callable[[int, range], Tally], cases: int, at_once: int) -> Tally:
    """Ask the whole kube-scheduler, print the rows of a kind and return its numbers."""
    started = time.monotonic()
    placements_oracle()
    parts = [(run.seed, range(start, min(start + at_once, cases))) for start in range(0, cases, at_once)]
    total = Tally()
    with multiprocessing.Pool(run.workers) as pool:
        for tally in pool.starmap(ask, parts, chunksize=1):
            total.add(tally)
    _print_rows(kind, {SCHEDULER_VERSION: total}, time.monotonic() - started)
    return total


_bench: list[tuple[Run, Bench]] = []
"""The options and the oracles of a worker process."""


def _parse(arguments: Sequence[str]) -> Run:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--cases", type=int, default=2000, help=_CASES)
    parser.add_argument("--placements", type=int, help=f"cases of {PLACEMENTS} (default: as --cases)")
    parser.add_argument("--plans", type=int, help=f"cases of {plans.KIND} (default: one in {_PLANS_SHARE} of --cases)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minors", default=_named(CI_MINORS), help=f"of {_named(oracles.VERSIONS)}, or all")
    parser.add_argument("--kinds", default=",".join(_KINDS), help=f"of {', '.join(_KINDS)}")
    parser.add_argument("--gates", default=",".join(CI_GATES), help=f"of {', '.join(GATES)}, or all")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    return Run(
        cases=options.cases,
        placements=options.cases if options.placements is None else options.placements,
        plans=options.cases // _PLANS_SHARE if options.plans is None else options.plans,
        seed=options.seed,
        minors=tuple(oracles.VERSIONS) if options.minors == "all" else _minors(options.minors),
        kinds=tuple(options.kinds.split(",")),
        gates=GATES if options.gates == "all" else tuple(options.gates.split(",")),
        workers=options.workers,
    )


def _named(minors: Iterable[int]) -> str:
    return ",".join(f"1.{minor}" for minor in minors)


def _minors(names: str) -> tuple[int, ...]:
    return tuple(int(name.removeprefix("1.")) for name in names.split(","))


def _chunks(run: Run, kind: str) -> Iterator[tuple[str, int, int]]:
    size = run.size(kind)
    for start in range(0, size, _CHUNK):
        yield kind, start, min(start + _CHUNK, size)


def _start(run: Run) -> None:
    _bench.append((run, Bench(list(settings(run.minors, run.gates)))))


def _chunk(chunk: tuple[str, int, int]) -> dict[Setting, Tally]:
    (run, bench) = _bench[0]
    kind, start, end = chunk
    return bench.run(kind, run.seed, range(start, end), list(settings(run.minors, run.gates)))


def _print_rows(kind: str, tallies: Mapping[Setting, Tally] | Mapping[str, Tally], seconds: float) -> None:
    """Print a line for each part of the answers; the time of a kind is shared by its settings."""
    share = seconds / max(len(tallies), 1)
    for setting, tally in tallies.items():
        minor, gates = (f"1.{setting.minor}", setting.name) if isinstance(setting, Setting) else ("", setting)
        for part in PARTS[kind]:
            line = f"{minor:<6}{gates:<12}{part:<24}{tally.cases:>9}{tally.disagreements[part]:>15}"
            print(f"{line}{share:>9.1f}", flush=True)


def _print_disagreement(kind: str, setting: Setting, first: Disagreement) -> None:
    """Print the smallest case that shows a disagreement, as a manifest, with both answers."""
    with Bench([setting]) as bench:

        def differing(question: Json) -> list[Disagreement]:
            disagreements = bench.disagreements(setting, question)
            return [disagreement for disagreement in disagreements if disagreement.part == first.part]

        smallest = shrink(first.question, lambda question: bool(differing(question)))
        (disagreement,) = differing(smallest)
    _show(f"{kind}, {first.part}, 1.{setting.minor}, gates {setting.name}", disagreement)


def _show(title: str, disagreement: Disagreement) -> None:
    print(f"\n--- {title}")
    print(
        _yaml({"question": disagreement.question, "kubernetes": disagreement.real, "kubectl-spread": disagreement.ours})
    )


def _yaml(value: Json) -> str:
    stream = io.StringIO()
    writer = YAML(typ="safe")
    writer.default_flow_style = False
    writer.dump(value, stream)
    return stream.getvalue()


if __name__ == "__main__":
    sys.exit(main())
