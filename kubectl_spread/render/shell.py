"""What the POSIX shell scripts of ``plan`` and ``simulate`` have in common."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from typing import Final

from kubectl_spread.render import words
from kubectl_spread.report.model import Cluster

_UNKNOWN_CLUSTER: Final = '"${CLUSTER_UID:-}"'


def title(*sentences: str) -> Iterator[str]:
    """Yield the first lines of a script: its interpreter, and sentences as comments."""
    yield "#!/bin/sh"
    yield from map(comment, sentences)


def _kubectl(cluster: Cluster, flags: Sequence[str]) -> str:
    """Return the function that runs kubectl."""
    context = cluster.context
    pinned = [*flags, *(["--context", context] if isinstance(context, str) and "--context" not in flags else [])]
    return f'k() {{ {shlex.join(["kubectl", *pinned])} "$@"; }}'


def program(
    cluster: Cluster, flags: Sequence[str], functions: str, planned: int, lines: Iterable[str]
) -> Iterator[str]:
    """Yield what follows the title: functions, and the lines of the script in one that is called last.

    Args:
        cluster: The cluster.
        flags: kubectl's flags for it, where it is not the current one.
        functions: The file with what the script does, as comments, and its functions, among them ``progress``.
        planned: The number of things that it is to do.
        lines: Its lines.
    """
    yield _source(functions)
    yield _kubectl(cluster, flags)
    yield f"planned={planned}\n"
    yield _source("common.sh")
    yield from (f"    {line}" if line else "" for line in lines)
    yield "} </dev/null  # kubectl does not read a script that comes from a pipe"
    yield "\nmain"


def _source(name: str) -> str:
    return (resources.files("kubectl_spread.render") / "scripts" / name).read_text(encoding="utf-8").rstrip("\n")


def same_cluster(cluster: Cluster, what: str) -> Iterator[str]:
    """Yield the comparison of the cluster with the one that was read for ``what``, if anything is known to compare."""
    if isinstance(cluster.uid, str):
        yield shlex.join(["same_cluster", cluster.uid, what])
    elif isinstance(cluster.read_at, str):
        yield "# The namespace kube-system could not be read: it is not known whether this is the cluster."
    else:
        yield f"same_cluster {_UNKNOWN_CLUSTER} {what}"
    yield ""


def say(text: str) -> str:
    """Return the line that prints a text."""
    return shlex.join(["say", text])


def comment(text: str) -> str:
    """Return a text as one line that does nothing."""
    return f"# {' '.join(words.safe(text).split())}"
