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


def _text(*names: str, metavar: str, about: str, complete: values.Completer | None = None) -> Decorator:
    """Return an option with a text, which is "" by default."""
    return click.option(*names, default="", metavar=metavar, shell_complete=complete, help=about)


def _texts(
    *names: str, metavar: str, about: str, complete: values.Completer | None = None, required: bool = False
) -> Decorator:
    """Return an option that may be repeated, each time with a text."""
    return click.option(*names, multiple=True, required=required, metavar=metavar, shell_complete=complete, help=about)


def _flag(*names: str, about: str) -> Decorator:
    return click.option(*names, is_flag=True, help=about)


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


_CONNECTION: Final = (
    _text("--kubeconfig", metavar="FILE", complete=values.files, about="Path to the kubeconfig file to use."),
    _text("--context", metavar="NAME", complete=values.contexts, about="The kubeconfig context to use."),
    _text("--cluster", metavar="NAME", complete=values.clusters, about="The kubeconfig cluster to use."),
    _text("--user", metavar="NAME", complete=values.users, about="The kubeconfig user to use."),
    _text("-s", "--server", metavar="URL", about="Address of the apiserver."),
    _text("--token", metavar="TOKEN", about="Bearer token for the apiserver."),
    _text("--username", metavar="NAME", about="Username for basic authentication."),
    _text("--password", metavar="PASSWORD", about="Password for basic authentication."),
    _text("--as", "as_user", metavar="USER", about="User to impersonate."),
    _texts("--as-group", "as_groups", metavar="GROUP", about="Group to impersonate; repeatable."),
    _text("--as-uid", metavar="UID", about="UID to impersonate."),
    _texts(
        "--as-user-extra", metavar="KEY=VALUE", about="Extra of the user to impersonate; repeatable, also for one key."
    ),
    _text(
        "--certificate-authority",
        metavar="FILE",
        complete=values.files,
        about="Certificate of the authority to trust.",
    ),
    _text("--client-certificate", metavar="FILE", complete=values.files, about="Client certificate for TLS."),
    _text("--client-key", metavar="FILE", complete=values.files, about="Client key for TLS."),
    _flag("--insecure-skip-tls-verify", about="Do not check the apiserver's certificate."),
    _text("--tls-server-name", metavar="NAME", about="Name to expect in the certificate."),
    _text("--proxy-url", metavar="URL", about="Proxy on the way to the apiserver."),
    _flag("--disable-compression", about="Do not ask the apiserver for compressed answers."),
    _text(
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

_RECURSIVE: Final = _flag("-R", "--recursive", about="Read directories inside directories too.")
_VERSION: Final = (
    _text(
        "--server-version",
        metavar="1.N",
        complete=values.minors,
        about="Evaluate as this Kubernetes minor. [default: the server's; with -f the newest known release]",
    ),
    _text("--feature-gates", metavar="A=BOOL,…", about="Feature gates that differ from what is read or assumed."),
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

_INPUT: Final = (
    _text("-n", "--namespace", metavar="NAME", complete=values.namespaces, about="The namespace to check."),
    _texts(
        "-f",
        "--filename",
        metavar="FILE",
        complete=values.files,
        about="Read manifests or captured objects instead of a cluster: a file, a directory, or - for standard "
        "input; repeatable.",
    ),
    _RECURSIVE,
    _text(
        "--cluster-name",
        metavar="NAME",
        about="Name of the cluster to show in the report. [default: its name in the kubeconfig]",
    ),
    *_VERSION,
    _text("--merge-since", metavar="TIME", about="Since when every apiserver merges spread selectors."),
    _flag("--recreate", about="Ask too whether the API would take the stored pods if they were created again."),
    _text(
        "--from",
        "from_version",
        metavar="1.N",
        complete=values.minors,
        about="Evaluate as this Kubernetes minor, like --server-version.",
    ),
    _text(
        "--to",
        "to_version",
        metavar="1.N",
        complete=values.minors,
        about="Show too what another Kubernetes minor would do differently.",
    ),
    _flag("--defaults", about="Give pods without constraints those that kube-scheduler has by default."),
    _text(
        "--scheduler-config",
        metavar="FILE",
        complete=values.files,
        about="The configuration of kube-scheduler: its profiles place pods, and their default constraints count.",
    ),
    _MEMORY,
)

_MANIFESTS: Final = (
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

_SCOPE: Final = (
    _flag("-A", "--all-namespaces", about="Check the pods of all namespaces."),
    _texts(
        "--exclude-namespace",
        metavar="NAME,…",
        complete=values.several_namespaces,
        about="Namespaces that are not checked; repeatable.",
    ),
    _text("-l", "--selector", metavar="SELECTOR", about="Check pods with these labels."),
    _text("--field-selector", metavar="SELECTOR", complete=values.fields, about="Check pods with these fields."),
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


def _all(options: tuple[Decorator, ...]) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command, in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


connection: Final = _all(_CONNECTION)
"""Adds kubectl's flags for choosing a cluster and a user."""
reading: Final = _all(_INPUT)
"""Adds the flags that choose the input and the Kubernetes to evaluate it as."""
manifests: Final = _all(_MANIFESTS)
"""Adds the flags of a filter, which choose manifests and the Kubernetes to evaluate them as."""
scope: Final = _all(_SCOPE)
"""Adds the flags that choose pods and rules."""
color: Final = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="When to use colour; NO_COLOR turns auto into never.",
)
