"""Run one command and print its cost as JSON.

This is a separate process, because a child starts with the peak memory of its parent.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main() -> None:
    """Run ``sys.argv[1:]`` with its output thrown away."""
    begin = time.monotonic()
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - begin
    code = os.waitstatus_to_exitcode(status)
    cost = {"wall": wall, "processor": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss / 1024, "code": code}
    print(json.dumps(cost))


if __name__ == "__main__":
    main()
