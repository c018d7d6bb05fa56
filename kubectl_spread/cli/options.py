"""The options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import click

from kubectl_spread.cli import formats, values
from kubectl_spread.cli.commandline import ADVANCED, CONNECTION, EVALUATE, OUTPUT, READ, Command, Option
from kubectl_spread.phrases import did_you_mean
from kubectl_spread.report.model import SEVEREST_FIRST, Severity

Function = TypeVar("Function", bound=Callable[..., object])
Decorator: TypeAlias = Callable[[Any], Any]
option: Final = partial(click.option, cls=Option)
"""Adds an option with a heading of the help, ``group``."""
SEVERITIES: Final = [severity.value for severity in SEVEREST_FIRST]
command: Final = partial(click.command, cls=Command)
"""Makes a command with examples and exit statuses in its help."""


class Choice(click.Choice[str]):
    """A value of a few; an error suggests the nearest."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:  # noqa: ARG002 - click's form
        """Return the error about another value."""
        return f'"{value}" is not one of {", ".join(self.choices)}{did_you_mean(str(value), self.choices)}'

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:  # noqa: ARG002 - click's form
        """Return nothing to add to an error about a missing value, because the name of an argument lists the values.

        The list of click has line breaks.
        """
        return ""


def text(
    *names: str, metavar: str, about: str, complete: values.Completer | None = None, group: str = READ
) -> Decorator:
    """Return an option with a text, which is "" by default."""
    return option(*names, default="", metavar=metavar, shell_complete=complete, help=about, group=group)


def file(name: str, about: str, group: str = READ) -> Decorator:
    """Return an option with the name of a file; it is "" where the option is not given."""
    return option(name, default="", metavar="FILE", shell_complete=values.files, help=about, group=group)


def texts(
    *names: str,
    metavar: str,
    about: str,
    complete: values.Completer | None = None,
    group: str = READ,
) -> Decorator:
    """Return an option that may be repeated, each time with a text."""
    return option(*names, multiple=True, metavar=metavar, shell_complete=complete, help=about, group=group)


def flag(*names: str, about: str, group: str = READ) -> Decorator:
    """Return an option without a value."""
    return option(*names, is_flag=True, help=about, group=group)


def number(
    name: str, *, about: str, least: int = 0, most: int | None = None, default: int | None = None, group: str = EVALUATE
) -> Decorator:
    """Return an option with a number, whose help names the default."""
    numbers, has_default = click.IntRange(min=least, max=most), default is not None
    return option(
        name, type=numbers, default=default, show_default=has_default, metavar="NUMBER", help=about, group=group
    )


def preset(
    name: str, default: str, *, metavar: str, about: str, group: str, complete: values.Completer | None = None
) -> Decorator:
    """Return an option with a text, whose help names the default."""
    return option(
        name,
        default=default,
        show_default=True,
        metavar=metavar,
        help=about,
        group=group,
        shell_complete=complete,
    )


def together(*options: Decorator) -> Callable[[Function], Function]:
    """Return a decorator that adds options to a command, in this order."""

    def add(function: Function) -> Function:
        for decorate in reversed(options):
            function = decorate(function)
        return function

    return add


def rules(*, select: str, ignore: str) -> Decorator:
    """Return the options that choose rules, with the beginning of the help of each."""

    def words(name: str, about: str) -> Decorator:
        about = f"{about}, by code, prefix or name."
        return texts(name, metavar="CODE,…", complete=values.several_rules, about=about, group=EVALUATE)

    return together(words("--select", select), words("--ignore", ignore))


def _version(default: str) -> Decorator:
    about = f"Evaluate as this Kubernetes minor. [default: {default}]"
    return text("--server-version", metavar="1.N", complete=values.minors, about=about, group=EVALUATE)


def _selector(about: str) -> Decorator:
    return text("-l", "--selector", metavar="SELECTOR", about=about)


def _filename(about: str) -> Decorator:
    about = f"{about}: a file, a directory, or - for standard input; repeatable."
    return texts("-f", "--filename", metavar="FILE", complete=values.files, about=about)


_FLAGS: Final = {
    "all-namespaces": flag("-A", "--all-namespaces", about="Read the pods of all namespaces."),
    "exclude-namespace": texts(
        "--exclude-namespace",
        metavar="NAME,…",
        complete=values.several_namespaces,
        about="Skip these namespaces; repeatable.",
    ),
    "namespace": text(
        "-n", "--namespace", metavar="NAME", complete=values.namespaces, about="Read the pods of this namespace."
    ),
    "selector": _selector("Check only pods with these labels."),
    "selector of counted pods": _selector("Count only pods with these labels."),
    "field-selector": text(
        "--field-selector",
        metavar="SELECTOR",
        complete=values.fields,
        about="Check only pods with these fields.",
        group=ADVANCED,
    ),
    "filename": _filename("Read manifests or captured objects instead of a cluster"),
    "filename of manifests": _filename("Read manifests"),
    "kustomize": text(
        "-k",
        "--kustomize",
        metavar="DIRECTORY",
        complete=values.directories,
        about="Read the manifests that kubectl kustomize renders from this directory.",
    ),
    "recursive": flag("-R", "--recursive", about="Read subdirectories as well."),
    "cluster-name": text(
        "--cluster-name",
        metavar="NAME",
        about="Show this name of the cluster in the report. [default: its name in the kubeconfig]",
        group=ADVANCED,
    ),
    "version": _version("the API server's; with -f the newest known release"),
    "version of files": _version("the newest known release"),
    "version of a cluster": _version("the API server's"),
    "feature-gates": text(
        "--feature-gates",
        metavar="A=BOOL,…",
        about="Set feature gates that differ from the defaults of the Kubernetes minor or from the API server's.",
        group=ADVANCED,
    ),
    "merge-since": text(
        "--merge-since",
        metavar="TIME",
        about="Expect merged selectors in pods that were created after this time, when every API server merged.",
        group=ADVANCED,
    ),
    "recreate": flag(
        "--recreate",
        about="Report pods that the API server would refuse if they were created again.",
        group=ADVANCED,
    ),
    "to": text(
        "--to",
        "to_version",
        metavar="1.N",
        complete=values.minors,
        about="Show what this Kubernetes minor would do differently, for example before an upgrade to it.",
        group=EVALUATE,
    ),
    "defaults": flag(
        "--defaults",
        about="Evaluate pods without constraints by the default constraints of kube-scheduler.",
        group=EVALUATE,
    ),
    "scheduler-config": file(
        "--scheduler-config",
        about="Evaluate by the profiles and default constraints in this configuration of kube-scheduler.",
        group=ADVANCED,
    ),
    "seed": number("--seed", default=0, about="Use other random numbers.", group=ADVANCED),
    "expect-domains": texts(
        "--expect-domains",
        metavar="KEY=NUMBER,…",
        complete=values.domains,
        about="Report a topology key with fewer domains than this (zone=3). Use it to find domains without nodes.",
        group=EVALUATE,
    ),
    "by": texts(
        "--by",
        metavar="KEY,…",
        complete=values.several_keys,
        about="Report workloads that a single domain of these node labels could stop, instead of a single node or "
        "zone (region, rack); repeatable.",
        group=EVALUATE,
    ),
    "rules": rules(select="Run only these rules", ignore="Hide the findings of these rules"),
}
"""The flags that several commands have, by name; those with other words for some commands have a name for each."""
_NAMESPACES: Final = ("all-namespaces", "exclude-namespace")
_SCOPE: Final = ("namespace", "filename", "recursive", "cluster-name")
_EVALUATION: Final = ("feature-gates", "merge-since", "recreate", "to", "defaults", "scheduler-config")
_CHECKS: Final = ("expect-domains", "by", "rules")


def _flags(*names: str) -> Callable[[Function], Function]:
    return together(*map(_FLAGS.__getitem__, names))


reading: Final = _flags("namespace", "filename", "kustomize", "recursive", "cluster-name", "version", *_EVALUATION)
"""Adds the flags that choose the input and the Kubernetes to evaluate it as."""
manifests: Final = _flags("filename of manifests", "kustomize", "recursive", "version of files", "feature-gates")
"""Adds the flags of a filter, which choose manifests and the Kubernetes to evaluate them as."""
counting: Final = _flags(*_NAMESPACES, "selector of counted pods", *_SCOPE)
"""Adds the flags that choose the pods to count."""
counting_scope: Final = _flags(*_NAMESPACES, *_SCOPE)
"""Adds the flags that choose the input and the namespaces that are reported."""
simulated: Final = _flags("scheduler-config", "seed")
"""Adds the flags of each simulation."""
evaluated_as: Final = _flags("version", "feature-gates")
"""Adds the flags that choose the Kubernetes to evaluate the input as."""
scope: Final = _flags(*_NAMESPACES, "selector", "field-selector", *_CHECKS)
"""Adds the flags that choose pods and rules."""
following: Final = _flags(
    *_NAMESPACES,
    "namespace",
    "selector",
    "field-selector",
    "cluster-name",
    "version of a cluster",
    *_EVALUATION,
    *_CHECKS,
)
"""Adds the flags that choose the pods, the rules and the Kubernetes of a cluster that is followed."""


color: Final = option(
    "--color",
    type=Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Print in colour always, never, or on a terminal unless NO_COLOR is set.",
    group=OUTPUT,
)


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


def severity(about: str, group: str) -> Decorator:
    """Return the option ``--severity``, with its help."""
    return option("--severity", type=Choice(SEVERITIES), help=about, group=group)


def fail_on(default: Severity, about: str = "") -> Decorator:
    """Return the option ``--fail-on``; ``about`` continues its help."""
    return option(
        "--fail-on",
        type=Choice([*SEVERITIES, "never"]),
        default=default.value,
        show_default=True,
        help=f"Exit with status 1 if there are findings of this severity or higher.{about}",
        group=OUTPUT,
    )


no_headers: Final = flag("--no-headers", about="Print the table without headers.", group=OUTPUT)


def form(*names: str, about: str) -> Decorator:
    """Return the option ``-o`` of a command with few formats."""
    return option("-o", "--output", "form", type=Choice(names), help=about, group=OUTPUT)


def _connecting(*names: str, metavar: str, about: str, complete: values.Completer | None = None) -> Decorator:
    return text(*names, metavar=metavar, about=about, complete=complete, group=CONNECTION)


def _impersonating(*names: str, metavar: str, about: str) -> Decorator:
    return texts(*names, metavar=metavar, about=about, group=CONNECTION)


connection: Final = together(
    _connecting("--kubeconfig", metavar="FILE", complete=values.files, about="Use this kubeconfig file."),
    _connecting("--context", metavar="NAME", complete=values.contexts, about="Use this context of the kubeconfig."),
    _connecting("--cluster", metavar="NAME", complete=values.clusters, about="Use this cluster of the kubeconfig."),
    _connecting("--user", metavar="NAME", complete=values.users, about="Use this user of the kubeconfig."),
    _connecting("-s", "--server", metavar="URL", about="Connect to the API server at this address."),
    _connecting("--token", metavar="TOKEN", about="Authenticate with this bearer token."),
    _connecting("--username", metavar="NAME", about="Authenticate with this name and --password."),
    _connecting("--password", metavar="PASSWORD", about="Authenticate with this password and --username."),
    _connecting("--as", "as_user", metavar="USER", about="Impersonate this user."),
    _impersonating("--as-group", "as_groups", metavar="GROUP", about="Impersonate this group; repeatable."),
    _connecting("--as-uid", metavar="UID", about="Impersonate this UID."),
    _impersonating(
        "--as-user-extra",
        metavar="KEY=VALUE",
        about="Impersonate a user with this extra value; repeatable, also for one key.",
    ),
    _connecting(
        "--certificate-authority",
        metavar="FILE",
        complete=values.files,
        about="Trust API servers with a certificate from this authority.",
    ),
    _connecting(
        "--client-certificate", metavar="FILE", complete=values.files, about="Authenticate with this TLS certificate."
    ),
    _connecting("--client-key", metavar="FILE", complete=values.files, about="Use this key of --client-certificate."),
    flag(
        "--insecure-skip-tls-verify",
        about="Trust any certificate of the API server, which lets others read and change what is sent.",
        group=CONNECTION,
    ),
    _connecting("--tls-server-name", metavar="NAME", about="Expect this name in the API server's certificate."),
    _connecting("--proxy-url", metavar="URL", about="Connect through this proxy."),
    flag("--disable-compression", about="Request responses without compression.", group=CONNECTION),
    preset(
        "--request-timeout",
        "0",
        metavar="TIME",
        about="Give up a request after this time, with a unit (1s, 2m, 3h); 0 means never.",
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
