"""The certificates and the private key that a kubeconfig embeds, loaded without leaving them in the file system.

OpenSSL reads private keys from files only. On Linux the file is in memory and has no name; elsewhere, or without /proc,
it exists while OpenSSL reads it.
"""

from __future__ import annotations

import atexit
import os
import secrets
import ssl
import tempfile
from base64 import b64decode
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from urllib3.util.ssl_ import ALPN_PROTOCOLS, create_urllib3_context

from kubectl_spread.errors import SourceError

Section = dict[str, Any]

_AUTHORITY: Final = "certificate-authority"
_CERTIFICATE: Final = "client-certificate"
_KEY: Final = "client-key"


def embeds(cluster: Section, user: Section) -> bool:
    """Tell whether a kubeconfig holds certificates or keys itself, instead of the names of files."""
    return bool(cluster.get(f"{_AUTHORITY}-data") or user.get(f"{_CERTIFICATE}-data") or user.get(f"{_KEY}-data"))


def context(cluster: Section, user: Section) -> ssl.SSLContext:
    """Return a TLS context with the authority of a cluster and the certificate of a user.

    Raises:
        SourceError: Embedded data is not base64.
        OSError: A file cannot be read, or OpenSSL cannot use it.
    """
    verify = not cluster.get("insecure-skip-tls-verify")
    tls_context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if verify else ssl.CERT_NONE)
    with ExitStack() as stack:
        authority, certificate, key = (
            stack.enter_context(_file(section, name))
            for section, name in ((cluster, _AUTHORITY), (user, _CERTIFICATE), (user, _KEY))
        )
        if authority:
            tls_context.load_verify_locations(authority)
        else:
            tls_context.load_default_certs()
        if certificate:
            tls_context.load_cert_chain(certificate, key)
    _fix_protocols(tls_context)
    return tls_context


def _fix_protocols(tls_context: ssl.SSLContext) -> None:
    """Set the protocols that a context offers, once and for all.

    urllib3 sets them again for each connection, and OpenSSL frees those that it copies for a connection of another
    thread: a few of a million handshakes offered random bytes, which servers refuse.
    """
    tls_context.set_alpn_protocols(ALPN_PROTOCOLS)
    tls_context.set_alpn_protocols = _leave  # type: ignore[method-assign]


def _leave(alpn_protocols: Iterable[str]) -> None:
    """Leave the protocols as they are."""


@contextmanager
def _file(section: Section, name: str) -> Iterator[str | None]:
    """Yield the path of a certificate or key, or None."""
    data = section.get(f"{name}-data")
    if not data:
        yield section.get(name)
        return
    try:
        pem = b64decode(data)
    except ValueError:
        raise SourceError(f"Error in configuration: {name}-data is not base64") from None
    with ExitStack() as stack:
        yield _in_memory(pem, stack) or _temporary(pem, stack)


def _in_memory(pem: bytes, stack: ExitStack) -> str | None:
    """Return the path of a file in memory, which ``stack`` closes; None if this platform has no such files."""
    if not hasattr(os, "memfd_create"):
        return None
    try:
        file = stack.enter_context(os.fdopen(os.memfd_create("kubectl-spread", os.MFD_CLOEXEC), "wb"))
    except OSError:
        return None
    file.write(pem)
    file.flush()
    path = Path(f"/proc/self/fd/{file.fileno()}")
    return str(path) if path.exists() else None


def _temporary(pem: bytes, stack: ExitStack) -> str:
    """Return the path of a file that only this user may read, which ``stack`` removes, or the end of the program."""
    path = Path(tempfile.gettempdir()) / f"kubectl-spread-{secrets.token_hex(16)}"
    # Registered before the file exists, so that no signal can leave it behind; at exit, since the main thread may end
    # first.
    remove = partial(path.unlink, missing_ok=True)
    atexit.register(remove)
    stack.callback(atexit.unregister, remove)
    stack.callback(remove)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(pem)
    return str(path)
