"""Build an ``ssl`` context from the key store and trust store of Kafka clients."""

from __future__ import annotations

import secrets
import ssl
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from kraft_wire.client.security_options import KeyStore, Tls, TrustStore
from kraft_wire.security.errors import BadSetting
from kraft_wire.security.secret import Secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

_WRONG_STORE = "can't be opened: it is not a {type} file, or the password is wrong"


class _Identity(NamedTuple):
    """A key, encrypted or not, and its certificates, in PEM."""

    pem: str
    password: Secret | None


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Return the context. Raises BadSetting, which names the file, for a store that can't be read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # As in Java, every certificate in the trust store is trusted, also one that isn't self-signed. And
    # VERIFY_X509_STRICT stays off: certificates of old authorities may violate RFC 5280.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = tls.checks_host_name
    _trust(context, tls.truststore)
    if tls.keystore is not None:
        _load_identity(context, _identity(tls.keystore))
    return context


def _trust(context: ssl.SSLContext, store: TrustStore | None) -> None:
    if store is None:
        context.load_default_certs()
        return
    if store.type == "PKCS12":
        certificates = _certificates(_pkcs12(store.location, store.password, "truststore"))
    else:
        certificates = store.certificates or _text(store.location, "truststore")
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, ValueError, TypeError):
        where = store.location or "kafka.ssl.truststore.certificates"
        raise BadSetting(f"kafka.ssl.truststore.*: {where} has no certificate that can be read") from None


def _identity(store: KeyStore) -> _Identity:
    if store.type == "PEM":
        own = f"{store.key.reveal()}\n{store.certificate_chain}" if store.key else None
        return _Identity(own or _text(store.location, "keystore"), store.key_password)
    return _from_pkcs12(_pkcs12(store.location, store.password, "keystore"), store.location)


def _from_pkcs12(content: PKCS12KeyAndCertificates, location: str | None) -> _Identity:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
    )

    if content.key is None or content.cert is None:
        raise BadSetting(f"kafka.ssl.keystore.location: {location} has no key with its certificate")
    password = secrets.token_hex()
    key = content.key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode())
    )
    return _Identity(key.decode() + _certificates(content), Secret(password))


def _certificates(content: PKCS12KeyAndCertificates) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    own = [content.cert] if content.cert is not None else []
    all_of_them = [*own, *content.additional_certs]
    return "".join(each.certificate.public_bytes(Encoding.PEM).decode() for each in all_of_them)


def _pkcs12(location: str | None, password: Secret | None, store: str) -> PKCS12KeyAndCertificates:
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    data = _bytes(location, store)
    try:
        return load_pkcs12(data, password.reveal().encode() if password is not None else None)
    except ValueError:
        raise BadSetting(
            f"kafka.ssl.{store}.location: {location} {_WRONG_STORE.format(type='PKCS12')}"
        ) from None


def _load_identity(context: ssl.SSLContext, identity: _Identity) -> None:
    """Load the key through a file, the only way that ``ssl`` has. It is deleted at once."""
    with TemporaryDirectory(prefix="kraft-wire-") as folder:
        file = Path(folder) / "identity.pem"
        file.touch(mode=0o600)
        file.write_text(identity.pem)
        try:
            # Without a password OpenSSL would ask for one at the terminal.
            context.load_cert_chain(
                file, password=lambda: identity.password.reveal() if identity.password else ""
            )
        except (ssl.SSLError, ValueError):
            raise BadSetting(
                "kafka.ssl.keystore.*: the key and its certificate can't be read or don't match, or "
                "kafka.ssl.key.password is wrong"
            ) from None


def _text(location: str | None, store: str) -> str:
    try:
        return _bytes(location, store).decode()
    except UnicodeDecodeError:
        raise BadSetting(
            f"kafka.ssl.{store}.location: {location} {_WRONG_STORE.format(type='PEM')}"
        ) from None


def _bytes(location: str | None, store: str) -> bytes:
    assert location is not None, "a store has texts or a location"
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise BadSetting(f"kafka.ssl.{store}.location: {location}: {error.strerror}") from None
