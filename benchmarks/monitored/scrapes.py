"""Scrape metrics again and again, and print the cost of each scrape as a line of JSON.

This is a process of its own, so that nothing else that a benchmark does is in the time of a scrape. Plain scrapes and
scrapes in gzip take turns.
"""

from __future__ import annotations

import gzip
import http.client
import itertools
import json
import re
import sys
import time
from collections.abc import Iterator
from typing import Final

_FAMILY: Final = b"# TYPE kube_spread_constraint_pods gauge\n"
_MARK: Final = re.compile(rb'\{namespace="marks",workload="([^"]+)"[^}]*zone"\} (\d+)')
_ACCEPT: Final = "text/plain;version=0.0.4"
_PIECE: Final = 1 << 20


def scrape(connection: http.client.HTTPConnection, coding: str) -> Iterator[bytes]:
    """Yield the body of one scrape in pieces; nothing where there are no metrics."""
    connection.request("GET", "/metrics", headers={"Accept": _ACCEPT, "Accept-Encoding": coding})
    response = connection.getresponse()
    while piece := response.read(_PIECE):
        if response.status == http.client.OK:
            yield piece


def marks(metrics: bytes) -> dict[str, int]:
    """Return the pods of each workload in the namespace ``marks``."""
    start = metrics.find(_FAMILY)
    end = metrics.find(b"# HELP", start)
    return {name.decode(): int(number) for name, number in _MARK.findall(metrics, start, end)} if start >= 0 else {}


def main() -> None:
    """Scrape a port of the loopback interface every so many seconds, until the process is ended.

    With a third argument the pieces are only counted: the metrics of kube-state-metrics may not fit the memory.
    """
    port, interval, only_count = int(sys.argv[1]), float(sys.argv[2]), len(sys.argv) > 3  # noqa: PLR2004 - three
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    due = time.monotonic()
    for number in itertools.count():
        time.sleep(max(0.0, due - time.monotonic()))
        coding = "gzip" if number % 2 and not only_count else "identity"
        size, lines, body = 0, 0, bytearray()
        began = time.monotonic()
        for piece in scrape(connection, coding):
            size += len(piece)
            if only_count:
                lines += piece.count(b"\n")
            else:
                body += piece
        ended = time.monotonic()
        line = {"coding": coding, "began": began, "ended": ended, "size": size, "series": lines, "marks": {}}
        if body:
            metrics = gzip.decompress(body) if coding == "gzip" else bytes(body)
            line["marks"] = marks(metrics)
            # The first line is a comment.
            line["series"] = metrics.count(b"\n") - metrics.count(b"\n#") - 1
        print(json.dumps(line), flush=True)
        due = max(due + interval, ended)


if __name__ == "__main__":
    main()
