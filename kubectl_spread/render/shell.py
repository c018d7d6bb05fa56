"""What the POSIX shell scripts of ``plan`` and ``simulate`` have in common."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kubectl_spread.render import words
from kubectl_spread.report.model import Cluster

_UNKNOWN_CLUSTER: Final = '"${CLUSTER_UID:-}"'
_FUNCTIONS: Final = r"""
say() { printf '%s\n' "$*"; }
stop() { printf 'stopped: %s\n%s\n' "$*" "$(progress)" >&2; exit 1; }

# same_cluster UID WHAT: stop unless this is the UID of the namespace kube-system, which no two clusters share.
same_cluster() {
    uid=$(k get namespace kube-system -o go-template='{{.metadata.uid}}') ||
        stop "the namespace kube-system cannot be read, so this may be another cluster than that of the $2"
    [ -n "$1" ] || stop "the files of the $2 do not say which cluster they are from. kubectl uses the cluster whose" \
        "namespace kube-system has the UID $uid. If the $2 is for it, set CLUSTER_UID=$uid and run this again"
    [ "$1" = "$uid" ] || stop "this is not the cluster of the $2: namespace kube-system has the UID $uid, and not $1"
}

# main does all of it; it is called in the last line, so that a part of this script does nothing.
main() {"""


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
    cluster: Cluster, flags: Sequence[str], *, head: str, planned: int, functions: str, lines: Iterable[str]
) -> Iterator[str]:
    """Yield what follows the title: functions, and the lines of the script in one that is called last.

    Args:
        cluster: The cluster.
        flags: kubectl's flags for it, where it is not the current one.
        head: What the script does, as comments.
        planned: The number of things that it is to do.
        functions: Its own functions, among them ``progress``.
        lines: Its lines.
    """
    yield head
    yield _kubectl(cluster, flags)
    yield f"planned={planned}"
    yield functions.rstrip("\n")
    yield _FUNCTIONS
    yield from (f"    {line}" if line else "" for line in lines)
    yield "} </dev/null  # kubectl does not read a script that comes from a pipe"
    yield "\nmain"


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
