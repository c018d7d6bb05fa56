"""What ``recommend`` says about a workload of a small cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from click.testing import Result

from tests import contract
from tests.builders import HOSTNAME, ZONE, Json, constraint, selector
from tests.cli.test_check import run
from tests.simulate.clusters import nodes

NINE: Final = nodes(*(f"{zone}{number}" for zone in "abc" for number in "123"))
SPREAD: Final = ("a1", "b1", "c1", "a2", "b2", "c2")
"""Six nodes of three zones."""
RUNS: Final = ("--runs", "3")


def spread(key: str = ZONE, *, hard: bool = True, hashed: bool = False, honor: bool = False, **fields: Any) -> Json:
    """Return a constraint of the pods of ``web``."""
    match = ("pod-template-hash",) if hashed else ()
    fields |= {"nodeTaintsPolicy": "Honor"} if honor else {}
    return constraint(key=key, hard=hard, match=match, selects=selector({"app": "web"}), **fields)


def host(**fields: Any) -> Json:
    """Return a soft constraint on the hostname."""
    return spread(HOSTNAME, hard=False, **fields)


def command(objects: Sequence[Json], *arguments: str) -> Result:
    """Run ``recommend`` on objects."""
    return run("recommend", *arguments, "-f", "-", stdin="\n".join(map(json.dumps, objects)))


def recommended(objects: Sequence[Json], *arguments: str) -> Any:
    """Return the report of ``recommend -o json``, which the schema allows."""
    answer = command(objects, *RUNS, *(arguments or ("deploy/web",)), "-o", "json")
    assert answer.stdout, answer.stderr
    return contract.loaded(answer.stdout)


def changes(report: Any) -> list[str]:
    """Return the changes in words; none where there is no change."""
    found: list[str] = report.get("change", {}).get("changes", [])
    return found


def failing(report: Any, when: str = "now") -> list[str]:
    """Return the events that the workload does not survive, now or after the change (``patched``)."""
    return [event["event"] for event in report["events"] if not event.get(when, event["now"])["survived"]]
