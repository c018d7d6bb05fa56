"""``kubectl spread merge`` and ``unmerge``: filters that write manifests with and without the merge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from kubectl_spread.cli import options
from kubectl_spread.cli.formats import UNANSWERED

if TYPE_CHECKING:
    from kubectl_spread.cli.filtering import Treatment

_REFUSED: Final = 1
_form: Final = options.form("json", "yaml", about="Print a report in this format instead of the manifests.")
_UNREAD: Final = "Not everything could be read, or the command line is wrong."


@options.command(
    examples={
        "kubectl spread merge -f pod.yaml": "Print a manifest as the API server would store it",
        "kubectl spread merge -f manifests/ -o json": "Print a report of the selectors that would change",
    },
    statuses={0: "The manifests were printed.", 1: "The API server would refuse a manifest.", 2: _UNREAD},
)
@options.manifests
@_form
@click.pass_context
def merge(context: click.Context, /, form: str | None, **parameters: object) -> None:
    """Print manifests with the selectors that the API server would store.

    Comments, order and quoting do not change. Objects that the API server would refuse are left out, and its errors are
    printed to standard error.
    """
    from kubectl_spread.audit.merge.merging import merge_pod  # noqa: PLC0415 - completion of flags does not need it

    _filter(context, merge_pod, form, parameters, leaves_out=True)


@options.command(
    examples={
        "kubectl spread unmerge -f backup.yaml": "Print stored pods that can be created again",
        "kubectl spread unmerge -f pod.yaml | kubectl create -f -": "Create a saved pod again",
    },
    statuses={0: "The manifests were printed.", 2: _UNREAD},
)
@options.manifests
@_form
@click.pass_context
def unmerge(context: click.Context, /, form: str | None, **parameters: object) -> None:
    """Print stored pods without the selectors that the merge added, so that they can be created again.

    Selectors that the author may have written do not change, and standard error names them.
    """
    from kubectl_spread.audit.merge.merging import unmerge_pod  # noqa: PLC0415 - completion of flags does not need it

    _filter(context, unmerge_pod, form, parameters, leaves_out=False)


def _filter(
    context: click.Context, treat: Treatment, form: str | None, parameters: dict[str, object], *, leaves_out: bool
) -> None:
    from kubectl_spread.cli.filtering import FilterRun  # noqa: PLC0415 - completion of flags does not need it

    run = FilterRun(treat, form, leaves_out=leaves_out)
    run.read(parameters)
    if run.failed:
        context.exit(UNANSWERED)
    if run.refused and leaves_out:
        context.exit(_REFUSED)
