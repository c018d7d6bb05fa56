"""``--defaults`` and ``--scheduler-config``: the profiles of the schedulers, and their default constraints."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from kubectl_spread.audit.snapshot.default_constraints import API_VERSIONS
from kubectl_spread.audit.snapshot.snapshot import Snapshot
from kubectl_spread.errors import UsageError
from kubectl_spread.kube.scheduler.configuration import SYSTEM, WITHOUT_DEFAULTS, Profile
from kubectl_spread.phrases import some
from kubectl_spread.run.options import CheckOptions
from kubectl_spread.sources.files import inputs

OWNER_KINDS: Final = frozenset(API_VERSIONS)


def profiles(options: CheckOptions) -> Mapping[str, Profile]:
    """Return the profiles of the schedulers, by scheduler name.

    Raises:
        UsageError: Options contradict each other.
        CombinedError: The configuration file has errors.
    """
    path = options.scheduler_config
    if options.defaults and path:
        raise UsageError("--defaults and --scheduler-config name two schedulers: give one or the other")
    if not path:
        return SYSTEM if options.defaults else WITHOUT_DEFAULTS
    if path == inputs.STDIN and inputs.STDIN in options.filename:
        raise UsageError("--scheduler-config and --filename cannot both be standard input")
    from kubectl_spread.sources.files import schedulerconfig  # noqa: PLC0415 - only --scheduler-config needs it

    return schedulerconfig.read(path)


def apply(snapshot: Snapshot, unread: Collection[str]) -> list[str]:
    """Add the default constraints of its scheduler to each pod without constraints of its own, and return errors.

    Args:
        snapshot: A complete snapshot.
        unread: The kinds of owners that were not all read.
    """
    snapshot.pods, owners = snapshot.default_selectors.applied_to(snapshot.pods, unread)
    missing = [f"{owner.kind}/{owner.name}" for owner in owners]
    if not missing:
        return []
    return [f"default constraints are not known of the pods of {some(missing)}: their selectors could not be read"]
