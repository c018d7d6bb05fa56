"""``kubectl spread policy``: print admission policies."""

from __future__ import annotations

from kubectl_spread.cli import options, output, values
from kubectl_spread.cli.help import EVALUATE, OUTPUT


@options.command(
    examples={
        "kubectl spread policy | kubectl apply -f -": "Warn of faults when objects are created or changed",
        "kubectl spread policy --action audit > policy.yaml": "Write them to the audit log first",
        "kubectl spread policy --action deny --select SPR1": "Refuse labels that do not fit the selectors",
        "kubectl spread policy --for 1.34 --exclude-namespace kube-system,istio-system": "Choose minor and namespaces",
    }
)
@options.option(
    "--action",
    type=options.Choice(["deny", "warn", "audit"]),
    default="warn",
    show_default=True,
    help="Refuse a request that violates a rule, warn its sender, or write it to the audit log.",
    group=OUTPUT,
)
@options.option(
    "--severity",
    type=options.Choice(options.SEVERITIES),
    help="Use rules of this severity or higher. [default: warning, or info with --select]",
    group=EVALUATE,
)
@options.rules(select="Use only these rules", ignore="Leave out these rules")
@options.text(
    "--for",
    "for_version",
    metavar="1.N",
    complete=values.minors,
    about="Print policies for this Kubernetes minor. [default: the newest known release]",
    group=EVALUATE,
)
@options.flag(
    "--mutate",
    about="Print one more policy, which writes pod-template-hash to matchLabelKeys of Deployments without any.",
    group=EVALUATE,
)
@options.text(
    "--namespace-selector",
    metavar="SELECTOR",
    about="Evaluate requests only in namespaces with these labels.",
    group=EVALUATE,
)
@options.texts(
    "--exclude-namespace",
    metavar="NAME,…",
    complete=values.several_namespaces,
    about="Skip these namespaces; repeatable. [default: kube-system]",
    group=EVALUATE,
)
@options.texts(
    "--exempt-user",
    metavar="NAME",
    about="Let this user change all labels of pods, such as the service account of an operator; repeatable.",
    group=EVALUATE,
)
def policy(**parameters: object) -> None:
    """Print admission policies that warn of what the rules find, or refuse it.

    The policies are written in CEL and need no webhook. Nothing is sent to a cluster: kubectl apply installs them.
    """
    import msgspec  # noqa: PLC0415 - completion of flags does not need it

    from kubectl_spread.render import policies  # noqa: PLC0415 - likewise
    from kubectl_spread.run.policies import PolicyOptions  # noqa: PLC0415 - likewise

    choices = msgspec.convert(parameters, PolicyOptions)
    text = policies.text(choices.policies)
    for note in choices.notes:
        output.note(note)
    output.data(text)
