"""``kubectl spread merge`` and ``unmerge``: filters that write manifests with and without the merge."""

from __future__ import annotations

from typing import Final

import click

from kubectl_spread.cli import options, output

_REFUSED: Final = 1
_UNANSWERED: Final = 2

_form: Final = click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["json", "yaml"]),
    help="Print a report; the default is the manifests.",
)


@click.command()
@options.manifests
@_form
@click.pass_context
def merge(context: click.Context, /, form: str | None, **parameters: object) -> None:
    """Write manifests as kube-apiserver would store their selectors.

    Comments, order and quoting stay as they are. What the API would refuse is left out, and its own errors
    go to standard error.

    Exit status: 0, 1 if the API would refuse anything, 2 if not everything could be read.
    """
    from kubectl_spread.app.filtering import FilterRun  # noqa: PLC0415 - likewise
    from kubectl_spread.audit.merge.merging import merge_pod  # noqa: PLC0415 - completion of flags does not need it

    run = FilterRun(output, merge_pod, form, leaves_out=True)
    run.read(parameters)
    if run.failed:
        context.exit(_UNANSWERED)
    if run.refused:
        context.exit(_REFUSED)


@click.command()
@options.manifests
@_form
@click.pass_context
def unmerge(context: click.Context, /, form: str | None, **parameters: object) -> None:
    """Write stored pods without what the merge put into their selectors, so that they can be created again.

    What may be the author's stays, and standard error says so.

    Exit status: 0, or 2 if not everything could be read.
    """
    from kubectl_spread.app.filtering import FilterRun  # noqa: PLC0415 - likewise
    from kubectl_spread.audit.merge.merging import unmerge_pod  # noqa: PLC0415 - completion of flags does not need it

    run = FilterRun(output, unmerge_pod, form, leaves_out=False)
    run.read(parameters)
    if run.failed:
        context.exit(_UNANSWERED)
