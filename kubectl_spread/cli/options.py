"""The options that several commands have, and kubectl's connection flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

import click

from kubectl_spread.cli import values
from kubectl_spread.errors import UsageError
from kubectl_spread.kube.api.quantity import thousandths
from kubectl_spread.sources import memory

Command = TypeVar("Command", bound=Callable[..., object])
Decorator: TypeAlias = Callable[[Any], Any]


def text(*names: str, metavar: str, about: str, complete: values.Completer | None = None) -> Decorator:
    """Return an option with a text, which is "" by default."""
    return click.option(*names, default="", metavar=metavar, shell_complete=complete, help=about)


def _texts(
    *names: str, metavar: str, about: str, complete: values.Completer | None = None, required: bool = False
) -> Decorator:
    """Return an option that may be repeated, each time with a text."""
    return click.option(*names, multiple=True, required=required, metavar=metavar, shell_complete=complete, help=about)


def flag(*names: str, about: str) -> Decorator:
    """Return an option without a value."""
    return click.option(*names, is_flag=True, help=about)


def _all(*options: Decorator) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command, in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def limit_memory(size: str) -> None:
    """Set how much memory input may take, a quantity of bytes such as ``512Mi``.

    Raises:
        UsageError: The text is not a size.
    """
    try:
        limit = thousandths(size) // 1000
    except ValueError:
        limit = 0
    if limit <= 0:
        raise UsageError(f'invalid size "{size}" of --max-memory: write a number of bytes such as 512Mi or 2Gi')
    memory.RUN.limit = limit


connection: Final = _all(
    text("--kubeconfig", metavar="FILE", complete=values.files, about="Path to the kubeconfig file to use."),
    text("--context", metavar="NAME", complete=values.contexts, about="The kubeconfig context to use."),
    text("--cluster", metavar="NAME", complete=values.clusters, about="The kubeconfig cluster to use."),
    text("--user", metavar="NAME", complete=values.users, about="The kubeconfig user to use."),
    text("-s", "--server", metavar="URL", about="Address of the apiserver."),
    text("--token", metavar="TOKEN", about="Bearer token for the apiserver."),
    text("--username", metavar="NAME", about="Username for basic authentication."),
    text("--password", metavar="PASSWORD", about="Password for basic authentication."),
    text("--as", "as_user", metavar="USER", about="User to impersonate."),
    _texts("--as-group", "as_groups", metavar="GROUP", about="Group to impersonate; repeatable."),
    text("--as-uid", metavar="UID", about="UID to impersonate."),
    _texts(
        "--as-user-extra", metavar="KEY=VALUE", about="Extra of the user to impersonate; repeatable, also for one key."
    ),
    text(
        "--certificate-authority",
        metavar="FILE",
        complete=values.files,
        about="Certificate of the authority to trust.",
    ),
    text("--client-certificate", metavar="FILE", complete=values.files, about="Client certificate for TLS."),
    text("--client-key", metavar="FILE", complete=values.files, about="Client key for TLS."),
    flag("--insecure-skip-tls-verify", about="Do not check the apiserver's certificate."),
    text("--tls-server-name", metavar="NAME", about="Name to expect in the certificate."),
    text("--proxy-url", metavar="URL", about="Proxy on the way to the apiserver."),
    flag("--disable-compression", about="Do not ask the apiserver for compressed answers."),
    text(
        "--cache-dir",
        metavar="DIRECTORY",
        complete=values.directories,
        about="Taken as kubectl takes it; nothing is cached.",
    ),
    click.option(
        "--request-timeout",
        default="0",
        metavar="TIME",
        show_default=True,
        help="How long one request may take, with a unit (1s, 2m, 3h); 0 never gives up.",
    ),
    click.option(
        "--chunk-size",
        type=click.IntRange(min=0),
        default=500,
        show_default=True,
        help="Objects a page; 0 asks for all at once.",
    ),
)
"""Adds kubectl's flags for choosing a cluster and a user."""

_RECURSIVE: Final = flag("-R", "--recursive", about="Read directories inside directories too.")
_VERSION: Final = (
    text(
        "--server-version",
        metavar="1.N",
        complete=values.minors,
        about="Evaluate as this Kubernetes minor. [default: the server's; with -f the newest known release]",
    ),
    text("--feature-gates", metavar="A=BOOL,…", about="Feature gates that differ from what is read or assumed."),
)
_MEMORY: Final = click.option(
    "--max-memory",
    default="1Gi",
    show_default=True,
    metavar="SIZE",
    expose_value=False,
    callback=lambda _context, _parameter, size: limit_memory(size),
    help="How much memory input may take while it is read; what is counted and dropped takes none.",
)

reading: Final = _all(
    text("-n", "--namespace", metavar="NAME", complete=values.namespaces, about="The namespace to check."),
    _texts(
        "-f",
        "--filename",
        metavar="FILE",
        complete=values.files,
        about="Read manifests or captured objects instead of a cluster: a file, a directory, or - for standard "
        "input; repeatable.",
    ),
    _RECURSIVE,
    text(
        "--cluster-name",
        metavar="NAME",
        about="Name of the cluster to show in the report. [default: its name in the kubeconfig]",
    ),
    *_VERSION,
    text("--merge-since", metavar="TIME", about="Since when every apiserver merges spread selectors."),
    flag("--recreate", about="Ask too whether the API would take the stored pods if they were created again."),
    text(
        "--from",
        "from_version",
        metavar="1.N",
        complete=values.minors,
        about="Evaluate as this Kubernetes minor, like --server-version.",
    ),
    text(
        "--to",
        "to_version",
        metavar="1.N",
        complete=values.minors,
        about="Show too what another Kubernetes minor would do differently.",
    ),
    flag("--defaults", about="Give pods without constraints those that kube-scheduler has by default."),
    text(
        "--scheduler-config",
        metavar="FILE",
        complete=values.files,
        about="The configuration of kube-scheduler: its profiles place pods, and their default constraints count.",
    ),
    _MEMORY,
)
"""Adds the flags that choose the input and the Kubernetes to evaluate it as."""

manifests: Final = _all(
    _texts(
        "-f",
        "--filename",
        required=True,
        metavar="FILE",
        complete=values.files,
        about="Read manifests: a file, a directory, or - for standard input; repeatable.",
    ),
    _RECURSIVE,
    *_VERSION,
    _MEMORY,
)
"""Adds the flags of a filter, which choose manifests and the Kubernetes to evaluate them as."""

scope: Final = _all(
    flag("-A", "--all-namespaces", about="Check the pods of all namespaces."),
    _texts(
        "--exclude-namespace",
        metavar="NAME,…",
        complete=values.several_namespaces,
        about="Namespaces that are not checked; repeatable.",
    ),
    text("-l", "--selector", metavar="SELECTOR", about="Check pods with these labels."),
    text("--field-selector", metavar="SELECTOR", complete=values.fields, about="Check pods with these fields."),
    _texts(
        "--expect-domains",
        metavar="KEY=NUMBER,…",
        complete=values.domains,
        about="How many domains of a key there should be (zone=3); without it, domains without nodes are invisible.",
    ),
    _texts(
        "--select",
        metavar="CODE,…",
        complete=values.several_rules,
        about="Run only these rules, by code, prefix or name.",
    ),
    _texts(
        "--ignore",
        metavar="CODE,…",
        complete=values.several_rules,
        about="Silence these rules, by code, prefix or name.",
    ),
)
"""Adds the flags that choose pods and rules."""


color: Final = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="When to use colour; NO_COLOR turns auto into never.",
)
