"""The certificate authorities of the system, which kubectl trusts where a kubeconfig names none.

Source: go1.25 crypto/x509/root_linux.go.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Gentoo
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/pki/tls/cacert.pem",  # OpenELEC
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # CentOS, RHEL
    "/etc/ssl/cert.pem",  # Alpine, macOS
)


def trust_system(context: ssl.SSLContext, bundles: Sequence[str] = _BUNDLES) -> None:
    """Trust the authorities of the system, or those of SSL_CERT_FILE and SSL_CERT_DIR.

    The OpenSSL of the archive looks for them where the system that it was built on has them; where there are none,
    those of ``bundles`` are trusted.
    """
    context.load_default_certs()
    paths = ssl.get_default_verify_paths()
    if paths.cafile or paths.capath or context.cert_store_stats()["x509_ca"]:
        return
    if bundle := next((bundle for bundle in bundles if Path(bundle).is_file()), ""):
        context.load_verify_locations(bundle)
