"""What each memoized method saves: the processor time of a command without its memo, as a multiple of that with it.

Run as ``python -m benchmarks.memos``. For each input it counts how often a method is called and computed; each memo is
then switched off where it saves the most calls. No cluster is needed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.growth import SHAPES
from benchmarks.sidebyside import run
from kubectl_spread import memoization

_SIMULATED: Final = {
    "simulate": ("simulate", "--drain", "zone=zone-0", "--runs", "10"),
    "plan": ("plan", "--runs", "10"),
}
_OF_SIMULATIONS: Final = "uneven-hosts"
"""The input of commands that simulate, at a size of its own: these compute each pod by itself."""
_SIMULATED_SIZE: Final = 60
_LEAST_CALLS: Final = 100
"""A memo that saves fewer calls of any input is not measured."""
_NONE: Final = "none"
_COMMON: Final = ("-A", "-o", "json", "--server-version", "1.37", "-f")


def _name(method: Callable[..., Any]) -> str:
    return f"{method.__module__.removeprefix('kubectl_spread.')}.{method.__qualname__}"


def _counting(original: Callable[..., Any], calls: Counter[str], computed: Counter[str]) -> Callable[..., Any]:
    """Return a decorator that memoizes and counts."""

    def decorator(method: Callable[..., Any]) -> Callable[..., Any]:
        name = _name(method)

        @wraps(method)
        def counted(*arguments: Any, **keywords: Any) -> Any:
            computed[name] += 1
            return method(*arguments, **keywords)

        memoized = original(counted)

        @wraps(method)
        def called(*arguments: Any, **keywords: Any) -> Any:
            calls[name] += 1
            return memoized(*arguments, **keywords)

        return called

    return decorator


def _child(without: str, counts: str, arguments: list[str]) -> None:
    """Run the plugin, without one memo if it is named; write the numbers of calls to a file if that is named."""
    original = memoization.memoized
    calls, computed = Counter[str](), Counter[str]()

    def decorator(method: Callable[..., Any]) -> Callable[..., Any]:
        return method if _name(method) == without else original(method)

    memoization.memoized = _counting(decorator, calls, computed) if counts else decorator
    from kubectl_spread.cli import cli  # noqa: PLC0415 - with the decorator of this process

    try:
        cli(arguments)
    finally:
        if counts:
            Path(counts).write_text(json.dumps({name: (calls[name], computed[name]) for name in calls}))


def _inputs(directory: Path) -> Mapping[str, list[str]]:
    """Write each input, and return the arguments that read it."""
    inputs = {}
    for name, shape in SHAPES.items():
        file = _written(directory / f"{name}.json", name, shape.sizes[0])
        inputs[name] = ["check", *shape.flags, *_COMMON, file]
    file = _written(directory / "simulated.json", _OF_SIMULATIONS, _SIMULATED_SIZE)
    return {**inputs, **{name: [*command, *_COMMON, file] for name, command in _SIMULATED.items()}}


def _written(path: Path, shape: str, size: int) -> str:
    items = list(SHAPES[shape].objects(size))
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


def main() -> None:
    """Measure every memo, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", default="", help=argparse.SUPPRESS)
    parser.add_argument("--counts", default="", help=argparse.SUPPRESS)
    options, others = parser.parse_known_args()
    if others:
        _child(options.without, options.counts, others)
        return
    own = [sys.executable, "-m", "benchmarks.memos"]
    print("| method | input | calls | computed | processor time without it |", "|---|---|---|---|---|", sep="\n")
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        best: dict[str, tuple[int, int, str]] = {}
        inputs = _inputs(directory)
        for name, command in inputs.items():
            run([*own, "--counts", str(directory / "counts"), *command], os.environ)
            for memo, (calls, computed) in json.loads((directory / "counts").read_text()).items():
                best[memo] = max(best.get(memo, (0, 0, "")), (calls - computed, calls, name))
        for memo, (saved, calls, name) in sorted(best.items()):
            ratio = "not measured"
            if saved >= _LEAST_CALLS:
                times = [
                    [run([*own, "--without", each, *inputs[name]], os.environ).processor for each in (memo, _NONE)]
                    for _ in range(options.rounds)
                ]
                without, usual = (sorted(column)[len(times) // 2] for column in zip(*times, strict=True))
                ratio = f"{without / usual:.2f}"
            print(f"| `{memo}` | {name} | {calls:,} | {calls - saved:,} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
