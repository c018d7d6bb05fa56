"""``kubectl spread explain``: everything about one pod, one workload or one rule."""

from __future__ import annotations

import click

from kubectl_spread.audit.explanation import explain as explain_audit
from kubectl_spread.audit.report import Workload
from kubectl_spread.cli import options, output
from kubectl_spread.cli.gather import gather
from kubectl_spread.errors import NotFoundError, UsageError
from kubectl_spread.render import structured
from kubectl_spread.rules import RULES

_UNANSWERED = 2


@click.command()
@click.argument("arguments", nargs=-1, required=True, metavar="NAME | TYPE/NAME | TYPE NAME | CODE")
@options.reading
@click.option("-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="How to print; the default is text.")
@options.color
@options.connection
@click.pass_context
def explain(context: click.Context, /, form: str | None, color: str, **asked: object) -> None:
    """Explain one pod or workload, or one rule by its code.

    Shows the selectors and their diff, who changed a label, the domains, and where the next pod may go.

    Exit status: 0, or 2 if it could not be answered.
    """
    from kubectl_spread.render import catalogue, explanation  # noqa: PLC0415 - rich is only for people

    arguments = asked["arguments"]
    rule = next((rule for rule in RULES if arguments in ((rule.code,), (rule.name,))), None)
    if rule is not None:
        output.data(catalogue.rule(rule))
        return
    question, gathered = gather(asked)
    targets = gathered.scope.targets
    if len(targets) != 1 or not targets[0].name:
        raise UsageError("explain takes exactly one pod, workload or rule code")
    report = gathered.completed(question)
    gathered.say()
    if not gathered.audit.pods:
        if gathered.problems:
            context.exit(_UNANSWERED)
        raise NotFoundError(f"{targets[0].kind} {targets[0].name} has no pods to explain")
    namespaces = sorted({pod.shape.namespace for pod in gathered.audit.pods})
    if len(namespaces) > 1:
        raise UsageError(f"{targets[0].name} is in several namespaces ({', '.join(namespaces)}): choose one with -n")
    target = Workload(kind=targets[0].kind, name=targets[0].name)
    found = explain_audit(gathered.audit, report, namespaces[0], target)
    match form:
        case "json":
            output.data(structured.json(found))
        case "yaml":
            output.data(structured.yaml(found))
        case _:
            output.data(explanation.explain(found, output.terminal(color)))
    if gathered.problems:
        context.exit(_UNANSWERED)
