"""``--contexts`` of ``check`` and ``simulate``: one run for each context, and one report of all.

The clusters are read at once, in threads; reports and tables are made one after another.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kubectl_spread import phrases
from kubectl_spread.cli import ending, formats, options, output, values
from kubectl_spread.cli.commandline import option_of
from kubectl_spread.cli.formats import Output, Printer
from kubectl_spread.errors import SourceError, SpreadError, UsageError

if TYPE_CHECKING:
    from kubectl_spread.report.fleet import FleetCluster
    from kubectl_spread.report.model import Report
    from kubectl_spread.report.simulation import SpreadSimulation

_ALL: Final = "all"
_OF_ONE_CLUSTER: Final = (
    *("context", "cluster", "server", "cluster_name", "filename", "kustomize", "baseline", "watch"),
    *("user", "token", "username", "password", "client_certificate", "client_key"),
    *("certificate_authority", "tls_server_name"),
)
"""Options that say which cluster is meant, or that are about one cluster, to which no other one gets credentials."""
_AT_ONCE: Final = 8
"""The most clusters that are being read, or wait in memory until those before them are reported."""
option: Final = options.option(
    "--contexts",
    metavar="NAME,…",
    shell_complete=values.several_contexts,
    help="Read the clusters of these contexts of the kubeconfig, or of all, and print one report.",
)


class ClusterAnswer(NamedTuple):
    """The answer of one cluster: its report, messages, and the text of an output that is a table."""

    report: Report | SpreadSimulation
    notes: Sequence[str]
    problems: Sequence[str]
    text: Callable[[Output], str]


class ClusterConsole(NamedTuple):
    """Prints the messages of one cluster after its context."""

    context: str

    def note(self, text: str) -> None:
        """Print a message on a line of its own."""
        output.note(f"{self.context}: {text}")

    def error(self, text: str) -> None:
        """Print an error on a line of its own."""
        output.error(f"{self.context}: {text}")

    def progress(self, text: str) -> None:
        """Show the progress of the run until other text is printed."""
        output.progress(f"{self.context}: {text}")


Answer: TypeAlias = Callable[[], ClusterAnswer]
"""Makes the report of a cluster that was read."""
Ask: TypeAlias = Callable[[Mapping[str, Any], ClusterConsole], Answer]
"""Reads one cluster, with the values of the command's options. Several threads call it at once."""


def _contexts(chosen: str, parameters: Mapping[str, object], printer: Printer) -> list[str]:
    """Return the names of the contexts that ``--contexts`` chooses, each once; nothing is sent."""
    from kubectl_spread.sources.auth import kubeconfig  # noqa: PLC0415 - completion of flags does not need it

    allowed = [name for name, each in formats.FORMATS.items() if each.of_several]
    for destination in printer.outputs:
        if destination.form not in allowed:
            raise UsageError(f"--contexts prints one of {', '.join(allowed)}, not {destination.form}")
    for name in _OF_ONE_CLUSTER:
        if parameters.get(name):
            contradicts = f"--contexts and {option_of(printer.context, name)} contradict each other"
            raise UsageError(f"{contradicts}: every context names its own cluster")
    available = kubeconfig.load(str(parameters.get("kubeconfig") or ""), os.environ).contexts
    names = sorted(available) if chosen == _ALL else list(dict.fromkeys(filter(None, chosen.split(","))))
    if not names:
        raise UsageError("--contexts names no context" if chosen != _ALL else "the kubeconfig has no contexts")
    for name in names:
        if name not in available:
            raise SourceError(f'context "{name}" does not exist{phrases.did_you_mean(name, available)}')
    return names


def run(chosen: str, parameters: Mapping[str, Any], ask: Ask, printer: Printer) -> None:
    """Ask the clusters that ``--contexts`` chooses, print one report, and end the command.

    A cluster that fails is a row of the report.

    Raises:
        UsageError: An option contradicts ``--contexts``, or no context is named.
        SourceError: The kubeconfig has no such context, or cannot be read.
    """
    from kubectl_spread.report import fleet  # noqa: PLC0415 - completion of flags does not need it

    names = _contexts(chosen, parameters, printer)
    texts: dict[Output, list[str]] = {each: [] for each in printer.outputs if each.form in formats.TABLES}
    readings = _readings([partial(ask, {**parameters, "context": name}, ClusterConsole(name)) for name in names])
    clusters = [_asked(name, reading, texts) for name, reading in zip(names, readings, strict=True)]
    for same in fleet.same_clusters(clusters):
        output.note(f"warning: these contexts lead to one cluster, which is counted for each: {', '.join(same)}")
    report = fleet.fleet(clusters)

    def table(destination: Output) -> str:
        from kubectl_spread.render import fleet, screen  # noqa: PLC0415 - only tables need it

        return "".join(texts[destination]) + screen.text(fleet.document(report), printer.terminal(destination))

    printer.answer(
        report,
        others=dict.fromkeys(formats.TABLES, table),
        problems=[error for cluster in clusters for error in cluster.errors],
        severities=fleet.severities(clusters),
    )


def _readings(asks: Sequence[Callable[[], Answer]]) -> Iterator[Future[Answer]]:
    """Yield the reading of each cluster in order; as each is taken, the next ones have begun."""
    from kubectl_spread.sources.apiserver.paging import background  # noqa: PLC0415 - completion does not need it

    begun: deque[Future[Answer]] = deque()
    for ask in asks:
        if len(begun) == _AT_ONCE:
            yield begun.popleft()
        begun.append(background(ask))
    while begun:
        yield begun.popleft()


def _asked(name: str, reading: Future[Answer], texts: Mapping[Output, list[str]]) -> FleetCluster:
    """Return the answer of one cluster, whose messages are printed after its context."""
    from kubectl_spread.render.fleet import heading  # noqa: PLC0415 - only tables need it
    from kubectl_spread.report import fleet  # noqa: PLC0415 - completion of flags does not need it

    console = ClusterConsole(name)
    try:
        answer = reading.result()()
        cluster = fleet.answered(name, answer.report, answer.problems)
        for destination, parts in texts.items():
            parts.append(f"{heading(cluster)}\n{answer.text(destination)}\n")
        for note in answer.notes:
            console.note(note)
    except SpreadError as error:
        cluster = fleet.failed(name, error.messages)
    except Exception as error:  # noqa: BLE001 - a bug that one cluster shows must not cost the answers of the others
        cluster = fleet.failed(name, [ending.text(error)])
    for problem in cluster.errors:
        console.error(problem)
    return cluster
