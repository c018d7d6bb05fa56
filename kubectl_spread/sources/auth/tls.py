"""The TLS context of a connection; certificates and keys that a kubeconfig embeds do not stay in the file system.

OpenSSL reads private keys from files only. On Linux the file is in memory and has no name; elsewhere it exists while
OpenSSL reads it, and only this user may read it.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from urllib3.util.ssl_ import ALPN_PROTOCOLS, create_urllib3_context

from kubectl_spread.errors import SourceError
from kubectl_spread.sources.auth.kubeconfig import Section

_DESCRIPTORS: Final = Path("/proc/self/fd")


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
            for section, name in (
                (cluster, "certificate-authority"),
                (user, "client-certificate"),
                (user, "client-key"),
            )
        )
        if authority:
            tls_context.load_verify_locations(authority)
        else:
            tls_context.load_default_certs()
        if certificate:
            tls_context.load_cert_chain(certificate, key)
    # urllib3 sets the protocols again for each connection, and OpenSSL frees those that it copies for a connection of
    # another thread: a few of a million handshakes offered random bytes, which servers refuse.
    tls_context.set_alpn_protocols(ALPN_PROTOCOLS)
    tls_context.set_alpn_protocols = lambda alpn_protocols: None  # type: ignore[method-assign]  # noqa: ARG005
    return tls_context


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
    in_memory = hasattr(os, "memfd_create") and _DESCRIPTORS.exists()
    descriptor, path = (os.memfd_create("kubectl-spread"), "") if in_memory else tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
            file.flush()
            yield path or str(_DESCRIPTORS / str(descriptor))
    finally:
        if path:
            Path(path).unlink()
