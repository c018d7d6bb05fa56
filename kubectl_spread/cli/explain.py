"""``kubectl spread explain``: print all details of one pod, one workload or one rule."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import click

from kubectl_spread.cli import fast_exit, options, output, values
from kubectl_spread.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from kubectl_spread.app.checkrun import CheckRun
    from kubectl_spread.audit.snapshot.scope import Target
    from kubectl_spread.rules.model import Rule

_UNANSWERED: Final = 2
_MOST_REPLICAS: Final = 1000
_DIGITS: Final = re.compile("[0-9]{1,9}")
_CODE: Final = re.compile(r"(?i:SPR)\d+|SPR[0-9A-Z]+")
_ALIKE: Final = 0.85
"""The similarity from which a word counts as the misspelt name of a rule, and not as the name of an object."""


def _number_of_replicas(_context: click.Context, _option: click.Parameter, text: str) -> int:
    """Return the number of further pods from ``+3`` or ``3``."""
    digits = text.removeprefix("+") or "0"
    if not (_DIGITS.fullmatch(digits) and int(digits) <= _MOST_REPLICAS):
        raise click.BadParameter(f'"{text}" is not a valid pod count (write +3; at most {_MOST_REPLICAS})')
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
    context: click.Context,
    /,
    arguments: tuple[str, ...],
    replicas: int,
    form: str | None,
    color: str,
    **parameters: object,
) -> None:
    """Explain one pod or workload, or one rule by its code or name.

    Shows the selectors and their diff, who changed a label, the domains, and where the next pod may go.

    Exit status: 0, or 2 if it could not be answered.
    """
    from kubectl_spread.app.collect import collect  # noqa: PLC0415 - completion of flags does not need it
    from kubectl_spread.explain.explanation import explain as explain_audit  # noqa: PLC0415 - likewise
    from kubectl_spread.kube.api.objects import ObjectRef  # noqa: PLC0415 - completion of flags does not need it
    from kubectl_spread.render import explanation, structured  # noqa: PLC0415 - only text needs rich

    if rule := _rule(arguments):
        _print_rule(rule, form)
        return
    check_options, run = collect({**parameters, "arguments": arguments, "explaining": True}, output)
    targets = run.scope.targets
    if len(targets) != 1 or not targets[0].name:
        raise UsageError("explain takes exactly one pod, workload or rule code")
    report = run.report(check_options)
    fast_exit.keep(run, report)
    if form:
        report = run.located(report)
    output.messages(run, header=not form)
    namespaces = sorted(run.namespaces)
    if not namespaces:
        if run.problems:
            context.exit(_UNANSWERED)
        raise NotFoundError(f"{targets[0].kind or 'Pod'} {targets[0].name} has no pods to explain")
    _confirm_one(targets[0], namespaces, run)
    ref = ObjectRef(namespaces[0], targets[0].kind, targets[0].name)
    document = explain_audit(run.audit, report, ref, replicas=replicas)
    output.data(structured.document(document, form) if form else explanation.explain(document, output.terminal(color)))
    if run.problems:
        context.exit(_UNANSWERED)


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
        NotFoundError: The argument looks like a code or the misspelt name of a rule, but no rule has it.
    """
    from kubectl_spread.rules import RULES  # noqa: PLC0415 - completion of flags does not need the rules
    from kubectl_spread.suggestions import did_you_mean, nearest  # noqa: PLC0415 - likewise

    if len(arguments) != 1:
        return None
    (argument,) = arguments
    rule = next((rule for rule in RULES if argument.lower() in (rule.code.lower(), rule.name)), None)
    if rule is not None:
        return rule
    names = [rule.name for rule in RULES]
    if _CODE.fullmatch(argument):
        problem = f'no rule has the code "{argument}": kubectl spread rules lists them'
    elif nearest(argument, names, close=_ALIKE):
        problem = f'no rule has the name "{argument}"{did_you_mean(argument, names)}'
    else:
        return None
    raise NotFoundError(f"{problem} (a pod of that name: pod/{argument})")


def _print_rule(rule: Rule, form: str | None) -> None:
    from kubectl_spread.render import catalogue, structured  # noqa: PLC0415 - only text needs rich
    from kubectl_spread.rules.listing import listing  # noqa: PLC0415 - completion of flags does not need the rules

    output.data(structured.document(listing([rule]), form) if form else catalogue.rule(rule))
