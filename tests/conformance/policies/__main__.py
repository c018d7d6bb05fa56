"""Compare the policies of real API servers with ``check -f``: ``python -m tests.conformance.policies --cases N``."""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

from ruamel.yaml import YAML

from tests.builders import Json
from tests.conformance.policies.compare import KINDS, Disagreement, Tally, compare, differs
from tests.conformance.policies.servers import VERSIONS, Server, server
from tests.conformance.shrink import shrink

_Difference: TypeAlias = tuple[frozenset[str], frozenset[str], bool]
_PRINTED: Final = 3
"""The most disagreements that are printed for each API server."""


def main() -> int:
    """Print the numbers of each API server and its first disagreements; return 1 if there is a disagreement."""
    options = _parse(sys.argv[1:])
    minors = [int(minor.removeprefix("1.")) for minor in options.minors.split(",")]
    kinds = options.kinds.split(",")
    print(f"{'minor':<6}{'kind':<14}{'compared':>9}{'clean':>8}{'refused':>9}{'disagreements':>15}{'seconds':>9}")
    agrees = True
    for minor in minors:
        with tempfile.TemporaryDirectory() as directory, server(Path(directory), minor) as started:
            for kind in kinds:
                began = time.monotonic()
                tally = compare(started, minor, kind, options.seed, range(options.cases))
                _print_row(minor, kind, tally, time.monotonic() - began)
                _print_disagreements(started, minor, tally)
                agrees = agrees and not tally.disagreements
    return 0 if agrees else 1


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.policies", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="of each kind for each minor")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minors", default=",".join(f"1.{minor}" for minor in VERSIONS))
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    return parser.parse_args(arguments)


def _print_row(minor: int, kind: str, tally: Tally, seconds: float) -> None:
    line = f"{f'1.{minor}':<6}{kind:<14}{tally.compared:>9}{tally.clean:>8}{tally.refused:>9}"
    print(f"{line}{len(tally.disagreements):>15}{seconds:>9.1f}", flush=True)
    print(f"      {_numbers(tally.kinds)}\n      {_numbers(tally.hits)}", flush=True)


def _numbers(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))


def _print_disagreements(started: Server, minor: int, tally: Tally) -> None:
    """Print the first disagreement of each difference, as a small manifest, with both answers."""
    printed: dict[_Difference, None] = {}
    for disagreement in tally.disagreements:
        difference = _difference(disagreement)
        if difference not in printed and len(printed) < _PRINTED:
            printed[difference] = None
            created = disagreement.request.keys() == {"object"}
            smallest = _smallest(started, minor, disagreement) if created else disagreement
            _show(f"1.{minor}", smallest)


def _difference(disagreement: Disagreement) -> _Difference:
    """Return the codes of the server alone, those of ``check`` alone, and whether no policy was asked."""
    server_codes, codes = frozenset(disagreement.server["messages"]), frozenset(disagreement.check)
    return server_codes - codes, codes - server_codes, bool(disagreement.server["invalid"])


def _smallest(started: Server, minor: int, disagreement: Disagreement) -> Disagreement:
    difference = _difference(disagreement)

    def differing(request: Json) -> list[Disagreement]:
        smaller = differs(started, minor, request["object"])
        return [candidate for candidate in smaller if _difference(candidate) == difference]

    smallest = shrink(disagreement.request, lambda request: bool(differing(request)))
    return differing(smallest)[0]


def _show(title: str, disagreement: Disagreement) -> None:
    print(f"\n--- {title}")
    stream = io.StringIO()
    writer = YAML(typ="safe")
    writer.default_flow_style = False
    answers = {"server": disagreement.server, "check": disagreement.check}
    writer.dump({"request": disagreement.request, **answers}, stream)
    print(stream.getvalue(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
