"""``--defaults`` and ``--scheduler-config``: the schedulers that are known, and their default constraints."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import click

from kubectl_spread.app import output
from kubectl_spread.app.options import CheckOptions
from kubectl_spread.audit.snapshot import default_constraints
from kubectl_spread.audit.snapshot.default_selectors import API_VERSIONS
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.errors import UsageError
from kubectl_spread.kube.scheduler.configuration import SYSTEM, UNASKED, Profile
from kubectl_spread.phrases import some
from kubectl_spread.sources.files import inputs

_FAILED: Final = 2
OWNER_KINDS: Final = frozenset(API_VERSIONS)
_NO_SERVICES: Final = "no Services in what was read: default constraints select by the pods' owners alone"


def known(question: CheckOptions) -> Mapping[str, Profile]:
    """Return what each scheduler that is known makes of spread constraints, by name.

    Everything that is wrong with a configuration file is printed, and ends the command.

    Raises:
        UsageError: options contradict each other.
    """
    path = question.scheduler_config
    if question.defaults and path:
        raise UsageError("--defaults and --scheduler-config name two schedulers: give one or the other")
    if not path:
        return SYSTEM if question.defaults else UNASKED
    if path == inputs.STDIN and inputs.STDIN in question.filename:
        raise UsageError("--scheduler-config and --filename cannot both be standard input")
    from kubectl_spread.sources.files import schedulerconfig  # noqa: PLC0415 - few ask for it

    reading = schedulerconfig.read(path, inputs.standard_input())
    for error in reading.errors:
        output.error(str(error))
    if reading.errors:
        raise click.exceptions.Exit(_FAILED)
    return reading.profiles


def apply(snapshot: Snapshot, unread: Collection[str]) -> list[str]:
    """Give pods their default constraints, where that is asked for; return what cannot be answered.

    Args:
        snapshot: What was read, all of it.
        unread: The kinds of owners of which not all were read.
    """
    missing = [f"{owner.kind}/{owner.name}" for owner in default_constraints.apply(snapshot, unread)]
    if not missing:
        return []
    return [f"default constraints are not known of the pods of {some(missing)}: their selectors could not be read"]


def hints(snapshot: Snapshot) -> list[str]:
    """Return what a capture lacks from which default constraints are deduced."""
    found = snapshot.deduction
    wanted = found.keeps and any(default_constraints.may_have_defaults(pod.shape) for pod in snapshot.pods)
    return [_NO_SERVICES] if wanted and not found.services else []
