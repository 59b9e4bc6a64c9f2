"""Create a certificate authority and certificates in the formats that Kafka's options name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

VALID = timedelta(days=2)


class Authority:
    """A certificate authority; it signs certificates for 127.0.0.1 unless another host is given."""

    def __init__(self, name: str = "the tests' authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        builder = _builder(self._name, self._name, self._key.public_key())
        self.certificate = builder.add_extension(constraints, critical=True).sign(self._key, hashes.SHA256())

    @property
    def pem(self) -> str:
        return _pem(self.certificate)

    def issue(self, name: str, host: str = "127.0.0.1") -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(host)), x509.DNSName("localhost")])
        builder = _builder(_named(name), self._name, key.public_key())
        certificate = builder.add_extension(names, critical=False).sign(self._key, hashes.SHA256())
        return Identity(key, certificate, self.certificate)


class Identity:
    """A private key and its certificate."""

    def __init__(
        self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate, issuer: x509.Certificate
    ) -> None:
        self._key = key
        self._certificate = certificate
        self._issuer = issuer

    @property
    def chain_pem(self) -> str:
        return _pem(self._certificate) + _pem(self._issuer)

    def key_pem(self, password: str | None = None) -> str:
        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, _encryption(password)).decode()

    def write_pem(self, file: Path, password: str | None = None) -> Path:
        file.write_text(self.key_pem(password) + self.chain_pem)
        return file

    def write_pkcs12(self, file: Path, password: str) -> Path:
        content = pkcs12.serialize_key_and_certificates(
            b"own", self._key, self._certificate, [self._issuer], _encryption(password)
        )
        file.write_bytes(content)
        return file


def write_trusted_pkcs12(authority: Authority, file: Path, password: str) -> Path:
    """Write a trust store like those of keytool."""
    entries = [pkcs12.PKCS12Certificate(authority.certificate, b"authority")]
    file.write_bytes(pkcs12.serialize_java_truststore(entries, _encryption(password)))
    return file


def _encryption(password: str | None) -> KeySerializationEncryption:
    return NoEncryption() if password is None else BestAvailableEncryption(password.encode())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID)
        .not_valid_after(now + VALID)
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()
