"""``kubectl spread explain``: everything about one pod, one workload or one rule."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import click

from kubectl_spread.app import output
from kubectl_spread.cli import leaving, options, values
from kubectl_spread.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from kubectl_spread.app.checkrun import CheckRun
    from kubectl_spread.audit.snapshot.scope import Target
    from kubectl_spread.rules.model import Rule

_UNANSWERED: Final = 2
_MOST_REPLICAS: Final = 1000
_DIGITS: Final = re.compile("[0-9]{1,9}")
_CODE: Final = re.compile(r"SPR\d+", re.IGNORECASE)


def _number_of_replicas(_context: click.Context, _option: click.Parameter, text: str) -> int:
    """Return a number of further pods, which is written ``+3`` or ``3``."""
    digits = text.removeprefix("+") or "0"
    if not (_DIGITS.fullmatch(digits) and int(digits) <= _MOST_REPLICAS):
        raise click.BadParameter(f'"{text}" is no number of pods (write +3; at most {_MOST_REPLICAS})')
    return int(digits)


@click.command()
@click.argument(
    "arguments",
    nargs=-1,
    required=True,
    metavar="NAME | TYPE/NAME | TYPE NAME | CODE",
    shell_complete=values.objects_or_rules,
)
@options.reading
@click.option(
    "--replicas",
    callback=_number_of_replicas,
    default="",
    metavar="+N",
    help="Show where N more such pods may go, one after another, by spread alone.",
)
@click.option("-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="How to print; the default is text.")
@options.color
@options.connection
@click.pass_context
def explain(
    context: click.Context, /, arguments: tuple[str, ...], replicas: int, form: str | None, color: str, **asked: object
) -> None:
    """Explain one pod or workload, or one rule by its code or name.

    Shows the selectors and their diff, who changed a label, the domains, and where the next pod may go.

    Exit status: 0, or 2 if it could not be answered.
    """
    from kubectl_spread.app.collect import collect  # noqa: PLC0415 - likewise
    from kubectl_spread.explain.explanation import explain as explain_audit  # noqa: PLC0415 - completion spares it
    from kubectl_spread.kube.api.objects import ObjectRef  # noqa: PLC0415 - likewise
    from kubectl_spread.render import explanation, structured  # noqa: PLC0415 - rich is only for people

    if rule := _rule(arguments):
        _print_rule(rule, form)
        return
    question, gathered = collect({**asked, "arguments": arguments, "explaining": True})
    targets = gathered.scope.targets
    if len(targets) != 1 or not targets[0].name:
        raise UsageError("explain takes exactly one pod, workload or rule code")
    report = gathered.completed(question)
    leaving.keep(gathered, report)
    if form:
        report = gathered.located(report)
    gathered.say()
    namespaces = sorted(gathered.namespaces)
    if not namespaces:
        if gathered.problems:
            context.exit(_UNANSWERED)
        raise NotFoundError(f"{targets[0].kind} {targets[0].name} has no pods to explain")
    _confirm_one(targets[0], namespaces, gathered)
    ref = ObjectRef(namespaces[0], targets[0].kind, targets[0].name)
    found = explain_audit(gathered.audit, report, ref, replicas=replicas)
    match form:
        case "json":
            output.data(structured.json(found))
        case "yaml":
            output.data(structured.yaml(found))
        case _:
            output.data(explanation.explain(found, output.terminal(color)))
    if gathered.problems:
        context.exit(_UNANSWERED)


def _confirm_one(target: Target, namespaces: list[str], gathered: CheckRun) -> None:
    """Do nothing if only one object is named.

    Raises:
        UsageError: There are several, in several namespaces or manifests.
    """
    if len(namespaces) > 1:
        raise UsageError(f"{target.name} is in several namespaces ({', '.join(namespaces)}): choose one with -n")
    if places := gathered.places(namespaces[0], target):
        raise UsageError(f"{target.name} is written in {' and in '.join(places)}: give one of them")


def _rule(arguments: tuple[str, ...]) -> Rule | None:
    """Return the rule that a single argument names by its code or name, in any case.

    Raises:
        NotFoundError: the argument is like a code, but no rule has it.
    """
    from kubectl_spread.rules import RULES  # noqa: PLC0415 - completion of flags does not wait for the rules

    if len(arguments) != 1:
        return None
    (argument,) = arguments
    found = next((rule for rule in RULES if argument.lower() in (rule.code.lower(), rule.name)), None)
    if found is None and _CODE.fullmatch(argument):
        raise NotFoundError(
            f'no rule has the code "{argument}": kubectl spread rules lists them (a pod of that name: pod/{argument})'
        )
    return found


def _print_rule(rule: Rule, form: str | None) -> None:
    from kubectl_spread.render import catalogue, structured  # noqa: PLC0415 - rich is only for people
    from kubectl_spread.rules.listing import listing  # noqa: PLC0415 - as above

    match form:
        case "json":
            output.data(structured.json(listing([rule])))
        case "yaml":
            output.data(structured.yaml(listing([rule])))
        case _:
            output.data(catalogue.rule(rule))
