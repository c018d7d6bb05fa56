"""Fuzz kubectl_spread: ``python -m tests.fuzz --minutes N``."""

from __future__ import annotations

import argparse
import faulthandler
import resource
import sys
from pathlib import Path

from tests.fuzz.campaign import Campaign
from tests.fuzz.targets import TARGETS
from tests.fuzz.watch import LONGEST


def main() -> int:
    """Run a campaign and print a table; return 1 if there are findings."""
    options = _parse(sys.argv[1:])
    faulthandler.enable()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    targets = [target for target in TARGETS if target.name in options.target]
    campaign = Campaign(targets, options.seed, sys.stdout, options.keep, options.longest)
    print(f"seed {options.seed}, {options.minutes} minutes, targets {' '.join(options.target)}", flush=True)
    campaign.run(minutes=options.minutes)
    print(campaign.summary())
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")
    return int(any(tally.findings for tally in campaign.tallies.values()))


def _parse(arguments: list[str]) -> argparse.Namespace:
    names = [target.name for target in TARGETS]
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long (default 1)")
    parser.add_argument("--seed", type=int, default=1, help="which cases (default 1)")
    parser.add_argument("--target", action="append", choices=names, help="what to try; repeatable (default all)")
    parser.add_argument("--longest", type=float, default=LONGEST, help=f"seconds for one case (default {LONGEST:g})")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="where to save the input of each finding")
    options = parser.parse_args(arguments)
    options.target = options.target or names
    return options


if __name__ == "__main__":
    sys.exit(main())
