"""The options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import click

from kubectl_spread.cli import formats, values
from kubectl_spread.cli.commandline import ADVANCED, CONNECTION, EVALUATE, OUTPUT, Command, Option
from kubectl_spread.report.model import SEVEREST_FIRST, Severity

Function = TypeVar("Function", bound=Callable[..., object])
Decorator: TypeAlias = Callable[[Any], Any]
option: Final = partial(click.option, cls=Option)
"""Adds an option with a heading of the help, ``group``."""
flag: Final = partial(option, is_flag=True)
"""Adds an option without a value."""
command: Final = partial(click.command, cls=Command)
"""Makes a command with examples and exit statuses in its help."""
_SEVERITIES: Final = [severity.value for severity in SEVEREST_FIRST]
_REPEATABLE: Final = ("--as-group", "--as-user-extra")


def number(name: str, about: str, *, least: int, most: int | None = None, default: int | None = None) -> Decorator:
    """Return an option with a number, whose help names the default."""
    numbers, has_default = click.IntRange(min=least, max=most), default is not None
    return option(
        name, type=numbers, default=default, show_default=has_default, metavar="NUMBER", help=about, group=EVALUATE
    )


def together(*options: Decorator) -> Callable[[Function], Function]:
    """Return a decorator that adds options to a command, in this order."""

    def add(function: Function) -> Function:
        for decorate in reversed(options):
            function = decorate(function)
        return function

    return add


def _rules(name: str, about: str) -> Decorator:
    about = f"{about}, by code, prefix or name."
    complete = values.several_rules
    return option(name, multiple=True, metavar="CODE,…", shell_complete=complete, help=about, group=EVALUATE)


def _version(default: str) -> Decorator:
    about = f"Evaluate as this Kubernetes minor. [default: {default}]"
    return option("--server-version", metavar="1.N", shell_complete=values.minors, help=about, group=EVALUATE)


def selector(about: str) -> Decorator:
    """Return the option ``--selector``, with its help."""
    return option("-l", "--selector", metavar="SELECTOR", help=about)


def _filename(about: str) -> Decorator:
    about = f"{about}: a file, a directory, or - for standard input; repeatable."
    return option("-f", "--filename", multiple=True, metavar="FILE", shell_complete=values.files, help=about)


_NAMESPACES: Final = (
    flag("-A", "--all-namespaces", help="Read the pods of all namespaces."),
    option(
        "--exclude-namespace",
        multiple=True,
        metavar="NAME,…",
        shell_complete=values.several_namespaces,
        help="Skip these namespaces; repeatable.",
    ),
)
_NAMESPACE: Final = option(
    "-n", "--namespace", metavar="NAME", shell_complete=values.namespaces, help="Read the pods of this namespace."
)
_SELECTOR: Final = selector("Check only pods with these labels.")
_FIELDS: Final = option(
    "--field-selector",
    metavar="SELECTOR",
    shell_complete=values.fields,
    help="Check only pods with these fields.",
    group=ADVANCED,
)
_FILES: Final = _filename("Read manifests or captured objects instead of a cluster")
_KUSTOMIZE: Final = option(
    "-k",
    "--kustomize",
    metavar="DIRECTORY",
    shell_complete=values.directories,
    help="Read the manifests that kubectl kustomize renders from this directory.",
)
_RECURSIVE: Final = flag("-R", "--recursive", help="Read subdirectories as well.")
_CLUSTER_NAME: Final = option(
    "--cluster-name",
    metavar="NAME",
    help="Show this name of the cluster in the report. [default: its name in the kubeconfig]",
    group=ADVANCED,
)
_VERSION: Final = _version("the API server's; with -f the newest known release")
_GATES: Final = option(
    "--feature-gates",
    metavar="A=BOOL,…",
    help="Set feature gates that differ from the defaults of the Kubernetes minor or from the API server's.",
    group=ADVANCED,
)
_SCHEDULERS: Final = option(
    "--scheduler-config",
    metavar="FILE",
    shell_complete=values.files,
    help="Evaluate by the profiles and default constraints in this configuration of kube-scheduler.",
    group=ADVANCED,
)
_EVALUATION: Final = (
    _GATES,
    option(
        "--merge-since",
        metavar="TIME",
        help="Expect merged selectors in pods that were created after this time, when every API server merged.",
        group=ADVANCED,
    ),
    flag("--recreate", help="Report pods that the API server would refuse if they were created again.", group=ADVANCED),
    option(
        "--to",
        "to_version",
        metavar="1.N",
        shell_complete=values.minors,
        help="Show what this Kubernetes minor would do differently, for example before an upgrade to it.",
        group=EVALUATE,
    ),
    flag(
        "--defaults",
        help="Evaluate pods without constraints by the default constraints of kube-scheduler.",
        group=EVALUATE,
    ),
    _SCHEDULERS,
)
_CHECKS: Final = (
    option(
        "--expect-domains",
        multiple=True,
        metavar="KEY=NUMBER,…",
        shell_complete=values.domains,
        help="Report a topology key with fewer domains than this (zone=3). Use it to find domains without nodes.",
        group=EVALUATE,
    ),
    option(
        "--by",
        multiple=True,
        metavar="KEY,…",
        shell_complete=values.several_keys,
        help="Report workloads that a single domain of these node labels could stop, instead of a single node or "
        "zone (region, rack); repeatable.",
        group=EVALUATE,
    ),
    _rules("--select", "Run only these rules"),
    _rules("--ignore", "Hide the findings of these rules"),
)
_INPUT: Final = (_NAMESPACE, _FILES, _RECURSIVE, _CLUSTER_NAME)

reading: Final = together(_NAMESPACE, _FILES, _KUSTOMIZE, _RECURSIVE, _CLUSTER_NAME, _VERSION, *_EVALUATION)
"""Adds the flags that choose the input and the Kubernetes to evaluate it as."""
manifests: Final = together(
    _filename("Read manifests"), _KUSTOMIZE, _RECURSIVE, _version("the newest known release"), _GATES
)
"""Adds the flags of a filter, which choose manifests and the Kubernetes to evaluate them as."""
counting_scope: Final = together(*_NAMESPACES, *_INPUT)
"""Adds the flags that choose the input and the namespaces that are reported."""
counting: Final = together(*_NAMESPACES, selector("Count only pods with these labels."), *_INPUT)
"""Adds the flags that choose the pods to count."""
simulated: Final = together(
    _SCHEDULERS,
    option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        metavar="NUMBER",
        help="Use other random numbers.",
        group=ADVANCED,
    ),
)
"""Adds the flags of each simulation."""
evaluated_as: Final = together(_VERSION, _GATES)
"""Adds the flags that choose the Kubernetes to evaluate the input as."""
scope: Final = together(*_NAMESPACES, _SELECTOR, _FIELDS, *_CHECKS)
"""Adds the flags that choose pods and rules."""
following: Final = together(
    *(*_NAMESPACES, _NAMESPACE, _SELECTOR, _FIELDS, _CLUSTER_NAME),
    *(_version("the API server's"), *_EVALUATION, *_CHECKS),
)
"""Adds the flags that choose the pods, the rules and the Kubernetes of a cluster that is followed."""


color: Final = option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Print in colour always, never, or on a terminal unless NO_COLOR is set.",
    group=OUTPUT,
)
no_headers: Final = flag("--no-headers", help="Print the table without headers.", group=OUTPUT)


def outputs(command: str, default: str = formats.TABLE) -> Decorator:
    """Return the option ``-o`` of a command whose formats may be written to files."""
    names = formats.names(command)
    return option(
        "-o",
        "--output",
        "forms",
        callback=lambda _context, _option, texts: [formats.parsed(text, names) for text in texts],
        multiple=True,
        metavar="FORMAT[=FILE]",
        shell_complete=values.formats(names),
        help=f"Print in this format, or write it to a file; repeatable. One of {', '.join(names)}. "
        f"[default: {default}]",
        group=OUTPUT,
    )


def form(*names: str, about: str) -> Decorator:
    """Return the option ``-o`` of a command with few formats."""
    return option("-o", "--output", "form", type=click.Choice(names), help=about, group=OUTPUT)


def severity(about: str, group: str) -> Decorator:
    """Return the option ``--severity``, with its help."""
    return option("--severity", type=click.Choice(_SEVERITIES), help=about, group=group)


def fail_on(default: Severity, about: str = "") -> Decorator:
    """Return the option ``--fail-on``; ``about`` continues its help."""
    return option(
        "--fail-on",
        type=click.Choice([*_SEVERITIES, "never"]),
        default=default.value,
        show_default=True,
        help=f"Exit with status 1 if there are findings of this severity or higher.{about}",
        group=OUTPUT,
    )


_CONNECTION: Final = {
    "--kubeconfig": ("FILE", "Use this kubeconfig file.", values.files),
    "--context": ("NAME", "Use this context of the kubeconfig.", values.contexts),
    "--cluster": ("NAME", "Use this cluster of the kubeconfig.", values.clusters),
    "--user": ("NAME", "Use this user of the kubeconfig.", values.users),
    "-s --server": ("URL", "Connect to the API server at this address.", None),
    "--token": ("TOKEN", "Authenticate with this bearer token.", None),
    "--username": ("NAME", "Authenticate with this name and --password.", None),
    "--password": ("PASSWORD", "Authenticate with this password and --username.", None),
    "--as as_user": ("USER", "Impersonate this user.", None),
    "--as-group as_groups": ("GROUP", "Impersonate this group; repeatable.", None),
    "--as-uid": ("UID", "Impersonate this UID.", None),
    "--as-user-extra": (
        "KEY=VALUE",
        "Impersonate a user with this extra value; repeatable, also for one key.",
        None,
    ),
    "--certificate-authority": (
        "FILE",
        "Trust API servers with a certificate from this authority.",
        values.files,
    ),
    "--client-certificate": ("FILE", "Authenticate with this TLS certificate.", values.files),
    "--client-key": ("FILE", "Use this key of --client-certificate.", values.files),
    "--insecure-skip-tls-verify": (
        "",
        "Trust any certificate of the API server, which lets others read and change what is sent.",
        None,
    ),
    "--tls-server-name": ("NAME", "Expect this name in the API server's certificate.", None),
    "--proxy-url": ("URL", "Connect through this proxy.", None),
    "--disable-compression": ("", "Request responses without compression.", None),
}
"""Maps the names of an option to its metavar ("" for a flag), its help and its completion."""


def _connecting(names: str, metavar: str, about: str, complete: values.Completer | None) -> Decorator:
    if not metavar:
        return flag(names, help=about, group=CONNECTION)
    first, *others = names.split()
    return option(
        first,
        *others,
        multiple=first in _REPEATABLE,
        metavar=metavar,
        help=about,
        shell_complete=complete,
        group=CONNECTION,
    )


connection: Final = together(
    *(_connecting(names, *described) for names, described in _CONNECTION.items()),
    option(
        "--request-timeout",
        default="0",
        show_default=True,
        metavar="TIME",
        help="Give up a request after this time, with a unit (1s, 2m, 3h); 0 means never.",
        group=CONNECTION,
    ),
    option(
        "--chunk-size",
        type=click.IntRange(min=0),
        default=500,
        show_default=True,
        help="Request lists in pages of this many objects; 0 requests all at once.",
        group=CONNECTION,
    ),
)
"""Adds kubectl's flags for choosing a cluster and a user."""
