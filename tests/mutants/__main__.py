"""Run the tests of each mutant on a copy of the checkout, and print whether they find it (``make mutants``).

The arguments name the areas or files to run; without any, all mutants run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.copies import copied
from tests.generated import ROOT
from tests.mutants.mutants import MUTANTS, Mutant

_COPIES: Final = 2
_PASSED: Final = 0
_FAILED: Final = 1
"""The exit statuses of pytest if all tests pass, and if tests fail; others mean that it could not run them."""


def main(words: Sequence[str]) -> None:
    """Run the mutants that the words choose; exit with status 1 if one survives."""
    mutants = [mutant for mutant in MUTANTS if not words or mutant.area in words or mutant.module in words]
    if not mutants:
        sys.exit("no mutant has this area or module")
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(_COPIES) as pool:
        checkouts: SimpleQueue[Path] = SimpleQueue()
        for number in range(_COPIES):
            checkouts.put(copied(Path(directory, str(number))))
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        checkout = checkouts.get()
        if _run_tests(checkout, tests) != _PASSED:
            sys.exit("the tests do not pass without a mutant")
        checkouts.put(checkout)
        killed = all(list(pool.map(lambda mutant: _is_killed(mutant, checkouts), mutants)))
    sys.exit(None if killed else "a mutant survived")


def _is_killed(mutant: Mutant, checkouts: SimpleQueue[Path]) -> bool:
    """Run the tests of a mutant in one of the checkouts, print the result, and tell whether one failed."""
    checkout = checkouts.get()
    began = time.monotonic()
    (checkout / mutant.file).write_text(mutant.applied((ROOT / mutant.file).read_text("utf-8")), "utf-8")
    status = _run_tests(checkout, mutant.tests)
    # The copy has the time of the file too, by which Python tells that the compiled mutant is not this file.
    shutil.copy2(ROOT / mutant.file, checkout / mutant.file)
    checkouts.put(checkout)
    result = {_PASSED: "SURVIVED", _FAILED: "killed"}.get(status, f"NOT RUN ({status})")
    print(f"{result:10}  {time.monotonic() - began:4.0f} s  {mutant.area:11}  {mutant.name}", flush=True)
    return status == _FAILED


def _run_tests(checkout: Path, tests: Iterable[str]) -> int:
    command = [sys.executable, "-m", "pytest", "--quiet", "--exitfirst", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    finished = subprocess.run(
        command, cwd=checkout, env=environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if finished.returncode not in (_PASSED, _FAILED):
        print(finished.stdout.decode(errors="replace"), file=sys.stderr)
    return finished.returncode


if __name__ == "__main__":
    main(sys.argv[1:])
