"""``kubectl spread policy``: print admission policies."""

from __future__ import annotations

import click

from kubectl_spread.cli import options, output, values
from kubectl_spread.cli.commandline import EVALUATE, OUTPUT
from kubectl_spread.errors import UsageError


@options.command(
    examples={
        "kubectl spread policy | kubectl apply -f -": "Warn of faults when objects are created or changed",
        "kubectl spread policy --action audit > policy.yaml": "Write them to the audit log first",
        "kubectl spread policy --action deny --exclude-namespace kube-system,istio-system": "Refuse them elsewhere",
    }
)
@options.option(
    "--action",
    type=click.Choice(["deny", "warn", "audit"]),
    default="warn",
    show_default=True,
    help="Refuse a request that violates a rule, warn its sender, or write it to the audit log.",
    group=OUTPUT,
)
@options.option(
    "--for",
    "for_version",
    metavar="1.N",
    shell_complete=values.minors,
    help="Print policies for this Kubernetes minor. [default: the newest known release]",
    group=EVALUATE,
)
@options.option(
    "--exclude-namespace",
    multiple=True,
    metavar="NAME,…",
    shell_complete=values.several_namespaces,
    help="Skip these namespaces; repeatable. [default: kube-system]",
    group=EVALUATE,
)
def policy(action: str, for_version: str, exclude_namespace: tuple[str, ...]) -> None:
    """Print admission policies that warn of what the rules find, or refuse it.

    The policies are YAML with CEL expressions, which you can read and change. They need no webhook. Nothing is sent to
    a cluster: kubectl apply installs them.
    """
    from kubectl_spread import policy as policies  # noqa: PLC0415 - completion of flags does not need it
    from kubectl_spread.kube.api import content  # noqa: PLC0415 - likewise
    from kubectl_spread.kube.features import NEWEST_RELEASED_MINOR  # noqa: PLC0415 - likewise
    from kubectl_spread.run.options import (  # noqa: PLC0415 - likewise
        confirm_supported,
        minor_of,
        pre_release_warnings,
        split,
    )

    minor = minor_of("--for", for_version)
    if minor is None:
        minor = NEWEST_RELEASED_MINOR
    confirm_supported("--for", minor)
    if minor < policies.OLDEST_MINOR:
        oldest = f"1.{policies.OLDEST_MINOR} and newer have it"
        raise UsageError(f"--for: Kubernetes 1.{minor} has no ValidatingAdmissionPolicy ({oldest})")
    excluded = split(exclude_namespace) if exclude_namespace else ("kube-system",)
    for name in excluded:
        if any(content.dns_label_problems(name)):
            raise UsageError(f'--exclude-namespace: "{name}" is not the name of a namespace')
    for note in pre_release_warnings([minor]):
        output.note(note)
    output.data(policies.text(policies.Action(action), excluded, minor))
