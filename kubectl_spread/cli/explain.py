"""``kubectl spread explain``: print all details of one pod, one workload or one rule."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import click

from kubectl_spread import phrases
from kubectl_spread.cli import ending, formats, options, output, values
from kubectl_spread.cli.commandline import EVALUATE
from kubectl_spread.cli.formats import Printer
from kubectl_spread.errors import Faults, NotFoundError, UsageError
from kubectl_spread.kube.api.quantity import whole_number

if TYPE_CHECKING:
    from kubectl_spread.audit.snapshot.scope import Target
    from kubectl_spread.rules.model import Rule
    from kubectl_spread.run.run import CheckRun

_MOST_REPLICAS: Final = 1000
_MISSPELT: Final = 0.85
"""The similarity to the name of a rule from which a word is not the name of an object."""
_CODE: Final = re.compile(r"(?i:SPR)\d+|SPR[0-9A-Z]+")


def _number_of_replicas(_context: click.Context, _option: click.Parameter, text: str) -> int:
    """Return the number of further pods from ``+3`` or ``3``."""
    number = whole_number(text.removeprefix("+") or "0", _MOST_REPLICAS)
    if number is None:
        raise click.BadParameter(f'"{text}" is not a valid pod count (write +3; at most {_MOST_REPLICAS})')
    return number


@options.command(
    examples={
        "kubectl spread explain deploy/web": "Explain one workload",
        "kubectl spread explain web-7d4b9c-x2x7p -n shop": "Explain one pod, for example a pending one",
        "kubectl spread explain deploy/web --replicas +3": "Show where three more pods may go",
        "kubectl spread explain SPR301": "Explain one rule, by its code or name",
    },
    statuses={0: "The object or rule was explained.", 2: "It could not be explained, or not completely."},
)
@click.argument(
    "arguments",
    nargs=-1,
    required=True,
    metavar="NAME | TYPE/NAME | TYPE NAME | CODE",
    shell_complete=values.objects_or_rules,
)
@options.reading
@options.option(
    "--replicas",
    callback=_number_of_replicas,
    metavar="+N",
    help="Show where this many more pods may go, one after another.",
    group=EVALUATE,
)
@options.outputs("explain", default=formats.TEXT)
@options.color
@options.connection
@click.pass_context
def explain(
    context: click.Context,
    /,
    arguments: tuple[str, ...],
    replicas: int,
    **parameters: object,
) -> None:
    """Explain how one pod or workload is spread and where its next pod may go, or explain one rule."""
    from kubectl_spread.explain.explanation import explain as explain_audit  # noqa: PLC0415 - completion of flags
    from kubectl_spread.kube.api.objects import ObjectRef  # noqa: PLC0415 - and help do not need it
    from kubectl_spread.render import explanation as explanations  # noqa: PLC0415 - likewise
    from kubectl_spread.run.collect import collect  # noqa: PLC0415 - likewise

    printer = Printer(context, formats.TEXT)
    if rule := _rule(arguments):
        if replicas:
            raise UsageError(f"--replicas is about the pods of a workload, and {arguments[0]} is a rule")
        _explain_rule(rule, printer)
        return
    run = collect({**parameters, "arguments": arguments, "explaining": True}, output)
    targets = run.scope.targets
    if len(targets) != 1 or not targets[0].name:
        raise UsageError("explain takes exactly one pod, workload or rule code")
    report = run.report()
    if not all(formats.FORMATS[destination.form].document for destination in printer.outputs):
        report = run.located(report)
    output.messages(run, header=printer.prints_header)
    namespaces = sorted(run.namespaces)
    if not namespaces:
        printer.end(run.problems)
        raise NotFoundError(f"{targets[0].kind or 'Pod'} {targets[0].name} has no pods to explain")
    _confirm_one(targets[0], namespaces, run)
    ref = ObjectRef(namespaces[0], targets[0].kind, targets[0].name)
    faults = Faults()
    explanation = explain_audit(run.audit, report, ref, run.engine, replicas=replicas, faults=faults)
    ending.trace(*(fault.error for fault in (*run.faults, *faults)))
    output.result((), map(str, faults))
    printer.answer(
        explanation,
        lambda _: explanations.document(explanation, run.options.inputs),
        problems=[*run.problems, *map(str, faults)],
    )


def _confirm_one(target: Target, namespaces: list[str], run: CheckRun) -> None:
    """Raise where several objects, in several namespaces or manifests, have the target's name.

    Raises:
        UsageError: Several objects have the name.
    """
    if len(namespaces) > 1:
        raise UsageError(f"{target.name} is in several namespaces ({', '.join(namespaces)}): choose one with -n")
    if positions := run.positions(namespaces[0], target):
        raise UsageError(f"{target.name} is written in {' and in '.join(positions)}: give one of them")


def _rule(arguments: tuple[str, ...]) -> Rule | None:
    """Return the rule that a single argument names by its code or name, in any case.

    Raises:
        NotFoundError: The argument looks like a code or a misspelt name of a rule. No cluster is contacted then.
    """
    from kubectl_spread.rules import RULES  # noqa: PLC0415 - completion of flags does not need the rules
    from kubectl_spread.rules.model import unknown  # noqa: PLC0415 - likewise

    if len(arguments) != 1:
        return None
    (argument,) = arguments
    rule = next((rule for rule in RULES if argument.lower() in (rule.code.lower(), rule.name)), None)
    misspelt = "/" not in argument and (
        phrases.nearest(argument, (rule.name for rule in RULES), close=_MISSPELT)
        or phrases.nearest(argument, (rule.code for rule in RULES), close=1)
    )
    if rule is None and (misspelt or _CODE.fullmatch(argument)):
        raise NotFoundError(f"{unknown(argument, RULES)} (a pod of that name: pod/{argument})")
    return rule


def _explain_rule(rule: Rule, printer: Printer) -> None:
    """Print a rule, and end the command."""
    from kubectl_spread.cli.guide import examples  # noqa: PLC0415 - only pages of rules need them
    from kubectl_spread.render import catalogue  # noqa: PLC0415 - likewise
    from kubectl_spread.rules.model import listing  # noqa: PLC0415 - completion of flags does not need the rules

    printer.answer(listing([rule]), lambda _: catalogue.document(rule, examples()[rule.code]))
