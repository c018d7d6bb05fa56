"""A new certificate authority, and the certificates that it signs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

WEEK = timedelta(days=7)


class KeyPair(NamedTuple):
    """The files of a certificate and its private key, both PEM."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority that keeps its files and its certificates in one directory."""

    def __init__(self, directory: Path) -> None:
        """Make a new authority, ``ca.crt`` in ``directory``."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.certificate = directory / "ca.crt"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("kubectl-spread-tests")
        signed = (
            _builder(self._name, self._name, self._key.public_key(), self._key, WEEK)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        _write(self.certificate, signed.public_bytes(serialization.Encoding.PEM))

    def server(self, stem: str, hosts: Sequence[str]) -> KeyPair:
        """Sign a serving certificate for DNS names and IP addresses."""
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        return self._issue(stem, _name(stem), WEEK, ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, stem: str, user: str, groups: Sequence[str] = (), lifetime: timedelta = WEEK) -> KeyPair:
        """Sign a client certificate for a Kubernetes user; with a negative ``lifetime`` it has expired."""
        subject = _name(user, groups)
        return self._issue(stem, subject, lifetime, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(
        self,
        stem: str,
        subject: x509.Name,
        lifetime: timedelta,
        purpose: x509.ObjectIdentifier,
        *extensions: x509.ExtensionType,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self._name, key.public_key(), self._key, lifetime)
        for extension in (x509.ExtendedKeyUsage([purpose]), *extensions):
            builder = builder.add_extension(extension, critical=False)
        builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
        pair = KeyPair(self.directory / f"{stem}.crt", self.directory / f"{stem}.key")
        signed = builder.sign(self._key, hashes.SHA256())
        _write(pair.certificate, signed.public_bytes(serialization.Encoding.PEM))
        _write(pair.key, _private_pem(key))
        return pair


def write_key(path: Path) -> Path:
    """Write a new private key, as the apiserver needs one to sign service-account tokens."""
    return _write(path, _private_pem(ec.generate_private_key(ec.SECP256R1())))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return (
        x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number())
        .not_valid_before(now - WEEK)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(authority, critical=False)
    )


def _name(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    """Return a subject: Kubernetes reads CN as the user and each O as one of the groups."""
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        # The apiserver does not accept PKCS8 as a key for service-account tokens.
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path
