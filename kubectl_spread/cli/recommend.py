"""``kubectl spread recommend``: what to write, so that a workload survives lost zones, drains and rollouts?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from kubectl_spread.cli import options, output, values
from kubectl_spread.cli.commandline import EVALUATE
from kubectl_spread.cli.formats import Printer
from kubectl_spread.errors import UsageError
from kubectl_spread.kube.api.quantity import PERCENT, whole_number
from kubectl_spread.phrases import did_you_mean
from kubectl_spread.report.model import Severity
from kubectl_spread.run.options import split

if TYPE_CHECKING:
    from kubectl_spread.recommend.trials import Demand
    from kubectl_spread.sources.files.manifests import Loaded

_MOST_RUNS: Final = 1_000
_EVENTS: Final = "zone,node,drain,restart"


@options.command(
    examples={
        "kubectl spread recommend deploy/web -n shop": "Ask for a workload of the cluster",
        "kubectl spread recommend -f web.yaml -f cluster.json": "Ask for a service that does not exist yet",
        "kubectl spread recommend -f web.yaml -o yaml": "Print its manifest with the change; the nodes are read live",
        "kubectl spread recommend deploy/web --keep 50%": "Ask for half of the pods only",
        "kubectl spread recommend deploy/web --survive zone,drain": "Ask for some events only",
    },
    statuses={
        0: "The workload survives all events as it is.",
        1: "There is something to change, or an event cannot be survived.",
        2: "Not everything could be read, or the command line is wrong.",
    },
)
@click.argument("arguments", nargs=-1, metavar="[TYPE/NAME]", shell_complete=values.objects)
@options.counting_scope
@options.option(
    "--keep",
    metavar="NUMBER|PERCENT",
    help="Keep this number of pods ready at any moment. [default: all but one domain's share]",
    group=EVALUATE,
)
@options.option(
    "--survive",
    default=_EVENTS,
    show_default=True,
    metavar="EVENT,…",
    help="Survive the loss of a zone or node, a drain of either, or a restart.",
    group=EVALUATE,
    shell_complete=values.several_of(_EVENTS.split(",")),
)
@options.evaluated_as
@options.simulated
@options.number("--runs", "Try each event in exactly this number of simulations.", least=1, most=_MOST_RUNS)
@options.option(
    "--seconds",
    type=click.FloatRange(min=0, max=3600),
    default=10.0,
    show_default=True,
    metavar="NUMBER",
    help="Try no further change after about this long, or twice as long as the first runs of all events took.",
    group=EVALUATE,
)
@options.outputs("recommend")
@options.color
@options.connection
@click.pass_context
def recommend(
    context: click.Context,
    /,
    *,
    keep: str,
    survive: str,
    runs: int | None,
    seconds: float,
    seed: int,
    **parameters: Any,
) -> None:
    """Show what to write, so that losing any zone or node, a drain or a rollout leaves a workload running.

    Each event is simulated now and after the smallest change that helps and harms no other workload. Nothing is
    changed.
    """
    from kubectl_spread.render import recommendation  # noqa: PLC0415 - completion of flags does not need it
    from kubectl_spread.run import recommend as recommending  # noqa: PLC0415 - likewise
    from kubectl_spread.run.simulate import collect  # noqa: PLC0415 - likewise

    printer = Printer(context)
    demand = _demand(keep, survive)
    written: list[Loaded] = []
    run = collect(parameters, output, written)
    subject = recommending.subject(run, written)
    chosen = recommending.RecommendOptions(demand=demand, runs=runs or 0, seconds=seconds, seed=seed)
    answer = recommending.answer(run, subject, chosen, output)
    output.result(run.notes, run.problems)
    printer.answer(
        answer.report,
        lambda _: recommendation.document(answer.report),
        {"yaml": lambda _: recommending.manifest(run, answer)},
        problems=run.problems,
        severities=[Severity.WARNING for event in answer.report.events if not event.now.survived],
    )


def _demand(keep: str, survive: str) -> Demand:
    """Return the events to survive and the number of pods to keep.

    Raises:
        UsageError: A word or the number is wrong.
    """
    from kubectl_spread.recommend.trials import FAMILIES, Demand  # noqa: PLC0415 - as above

    words = split([survive])
    for word in words:
        if word not in FAMILIES:
            raise UsageError(f'--survive: "{word}" is not one of {", ".join(FAMILIES)}{did_you_mean(word, FAMILIES)}')
    if not words:
        raise UsageError("--survive: the value is empty")
    number = whole_number(keep)
    if keep and not number and not (PERCENT.fullmatch(keep) and 0 < int(keep[:-1]) <= 100):  # noqa: PLR2004 - percent
        raise UsageError(f'--keep: "{keep}" is neither a number of pods nor a percentage (write 4 or 50%)')
    return Demand(words, (number or keep) if keep else None)
