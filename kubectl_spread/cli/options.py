"""The options that several commands have, and kubectl's connection flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import click

from kubectl_spread.cli import sizes, values

Command = TypeVar("Command", bound=Callable[..., object])

_CONNECTION: Final = (
    click.option(
        "--kubeconfig",
        default="",
        metavar="FILE",
        shell_complete=values.files,
        help="Path to the kubeconfig file to use.",
    ),
    click.option(
        "--context", default="", metavar="NAME", shell_complete=values.contexts, help="The kubeconfig context to use."
    ),
    click.option(
        "--cluster", default="", metavar="NAME", shell_complete=values.clusters, help="The kubeconfig cluster to use."
    ),
    click.option("--user", default="", metavar="NAME", shell_complete=values.users, help="The kubeconfig user to use."),
    click.option("-s", "--server", default="", metavar="URL", help="Address of the apiserver."),
    click.option("--token", default="", metavar="TOKEN", help="Bearer token for the apiserver."),
    click.option("--username", default="", metavar="NAME", help="Username for basic authentication."),
    click.option("--password", default="", metavar="PASSWORD", help="Password for basic authentication."),
    click.option("--as", "as_user", default="", metavar="USER", help="User to impersonate."),
    click.option("--as-group", "as_groups", multiple=True, metavar="GROUP", help="Group to impersonate; repeatable."),
    click.option("--as-uid", default="", metavar="UID", help="UID to impersonate."),
    click.option(
        "--as-user-extra",
        multiple=True,
        metavar="KEY=VALUE",
        help="Extra of the user to impersonate; repeatable, also for one key.",
    ),
    click.option(
        "--certificate-authority",
        default="",
        metavar="FILE",
        shell_complete=values.files,
        help="Certificate of the authority to trust.",
    ),
    click.option(
        "--client-certificate",
        default="",
        metavar="FILE",
        shell_complete=values.files,
        help="Client certificate for TLS.",
    ),
    click.option("--client-key", default="", metavar="FILE", shell_complete=values.files, help="Client key for TLS."),
    click.option("--insecure-skip-tls-verify", is_flag=True, help="Do not check the apiserver's certificate."),
    click.option("--tls-server-name", default="", metavar="NAME", help="Name to expect in the certificate."),
    click.option("--proxy-url", default="", metavar="URL", help="Proxy on the way to the apiserver."),
    click.option("--disable-compression", is_flag=True, help="Do not ask the apiserver for compressed answers."),
    click.option(
        "--cache-dir",
        metavar="DIRECTORY",
        shell_complete=values.directories,
        help="Taken as kubectl takes it; nothing is cached.",
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

_RECURSIVE: Final = click.option("-R", "--recursive", is_flag=True, help="Read directories inside directories too.")
_VERSION: Final = (
    click.option(
        "--server-version",
        default="",
        metavar="1.N",
        shell_complete=values.minors,
        help="Evaluate as this Kubernetes minor. [default: the server's; with -f the newest known release]",
    ),
    click.option(
        "--feature-gates",
        default="",
        metavar="A=BOOL,…",
        help="Feature gates that differ from what is read or assumed.",
    ),
)

_MEMORY: Final = click.option(
    "--max-memory",
    default="1Gi",
    show_default=True,
    metavar="SIZE",
    expose_value=False,
    callback=lambda _context, _parameter, size: sizes.allow(size),
    help="How much memory input may take while it is read; what is counted and dropped takes none.",
)

_EXTRA_CHECKS: Final = (
    click.option(
        "--recreate",
        is_flag=True,
        help="Ask too whether the API would take the stored pods if they were created again.",
    ),
    click.option(
        "--from",
        "from_version",
        default="",
        metavar="1.N",
        shell_complete=values.minors,
        help="Evaluate as this Kubernetes minor, like --server-version.",
    ),
    click.option(
        "--to",
        "to_version",
        default="",
        metavar="1.N",
        shell_complete=values.minors,
        help="Show too what another Kubernetes minor would do differently.",
    ),
    click.option(
        "--defaults",
        is_flag=True,
        help="Give pods without constraints those that kube-scheduler has by default.",
    ),
    click.option(
        "--scheduler-config",
        default="",
        metavar="FILE",
        shell_complete=values.files,
        help="The configuration of kube-scheduler: its profiles place pods, and their default constraints count.",
    ),
)

_INPUT: Final = (
    click.option(
        "-n",
        "--namespace",
        default="",
        metavar="NAME",
        shell_complete=values.namespaces,
        help="The namespace to check.",
    ),
    click.option(
        "-f",
        "--filename",
        multiple=True,
        metavar="FILE",
        shell_complete=values.files,
        help="Read manifests or captured objects instead of a cluster: a file, a directory, or - for standard "
        "input; repeatable.",
    ),
    _RECURSIVE,
    click.option(
        "--cluster-name",
        default="",
        metavar="NAME",
        help="Name of the cluster to show in the report. [default: its name in the kubeconfig]",
    ),
    *_VERSION,
    click.option(
        "--merge-since",
        default="",
        metavar="TIME",
        help="Since when every apiserver merges spread selectors.",
    ),
    *_EXTRA_CHECKS,
    _MEMORY,
)

_MANIFESTS: Final = (
    click.option(
        "-f",
        "--filename",
        multiple=True,
        required=True,
        metavar="FILE",
        shell_complete=values.files,
        help="Read manifests: a file, a directory, or - for standard input; repeatable.",
    ),
    _RECURSIVE,
    *_VERSION,
    _MEMORY,
)

_SCOPE: Final = (
    click.option("-A", "--all-namespaces", is_flag=True, help="Check the pods of all namespaces."),
    click.option(
        "--exclude-namespace",
        multiple=True,
        metavar="NAME,…",
        shell_complete=values.several_namespaces,
        help="Namespaces that are not checked; repeatable.",
    ),
    click.option("-l", "--selector", default="", metavar="SELECTOR", help="Check pods with these labels."),
    click.option(
        "--field-selector",
        default="",
        metavar="SELECTOR",
        shell_complete=values.fields,
        help="Check pods with these fields.",
    ),
    click.option(
        "--expect-domains",
        multiple=True,
        metavar="KEY=NUMBER,…",
        shell_complete=values.domains,
        help="How many domains of a key there should be (zone=3); without it, domains without nodes are invisible.",
    ),
    click.option(
        "--select",
        multiple=True,
        metavar="CODE,…",
        shell_complete=values.several_rules,
        help="Run only these rules, by code, prefix or name.",
    ),
    click.option(
        "--ignore",
        multiple=True,
        metavar="CODE,…",
        shell_complete=values.several_rules,
        help="Silence these rules, by code, prefix or name.",
    ),
)

color: Final = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="When to use colour; NO_COLOR turns auto into never.",
)


def connection(command: Command) -> Command:
    """Add kubectl's flags for choosing a cluster and a user."""
    return _add(command, _CONNECTION)


def reading(command: Command) -> Command:
    """Add the flags that choose the input and the Kubernetes to evaluate it as."""
    return _add(command, _INPUT)


def manifests(command: Command) -> Command:
    """Add the flags of a filter, which choose manifests and the Kubernetes to evaluate them as."""
    return _add(command, _MANIFESTS)


def scope(command: Command) -> Command:
    """Add the flags that choose pods and rules."""
    return _add(command, _SCOPE)


def _add(command: Command, options: tuple[Callable[[Command], Command], ...]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
