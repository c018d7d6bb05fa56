"""kubectl's flags for choosing a cluster and a user."""

from __future__ import annotations

from typing import Final

import click

from kubectl_spread.cli import options, values
from kubectl_spread.cli.help import CONNECTION


def _connecting(*names: str, metavar: str, about: str, complete: values.Completer | None = None) -> options.Decorator:
    return options.text(*names, metavar=metavar, about=about, complete=complete, group=CONNECTION)


def _impersonating(*names: str, metavar: str, about: str) -> options.Decorator:
    return options.texts(*names, metavar=metavar, about=about, group=CONNECTION)


flags: Final = options.together(
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
    options.flag(
        "--insecure-skip-tls-verify",
        about="Trust any certificate of the API server, which lets others read and change what is sent.",
        group=CONNECTION,
    ),
    _connecting("--tls-server-name", metavar="NAME", about="Expect this name in the API server's certificate."),
    _connecting("--proxy-url", metavar="URL", about="Connect through this proxy."),
    options.flag("--disable-compression", about="Request responses without compression.", group=CONNECTION),
    options.option(
        "--request-timeout",
        default="0",
        metavar="TIME",
        show_default=True,
        help="Give up a request after this time, with a unit (1s, 2m, 3h); 0 means never.",
        group=CONNECTION,
    ),
    options.option(
        "--chunk-size",
        type=click.IntRange(min=0),
        default=500,
        show_default=True,
        help="Request lists in pages of this many objects; 0 requests all at once.",
        group=CONNECTION,
    ),
)
"""Adds kubectl's flags for choosing a cluster and a user."""
