"""Read the security options of Kafka's clients, under Kafka's names.

An unknown option is an error: a security option without an effect is worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kraft_wire.client.jaas import parse_login
from kraft_wire.security.errors import BadSetting
from kraft_wire.security.protocols import SECURITY_PROTOCOLS
from kraft_wire.security.sasl import MECHANISMS, Sasl
from kraft_wire.security.secret import Secret

STORE_TYPES: Final = ("PEM", "PKCS12")
OPTIONS: Final = (
    "security.protocol",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
    "sasl.jaas.config",
    "sasl.mechanism",
    "sasl.password",
    "sasl.username",
)


class TrustStore(msgspec.Struct, frozen=True):
    """The certificates of trusted authorities: a file, or PEM text."""

    type: str
    location: str | None = None
    password: Secret | None = None
    certificates: str | None = None


class KeyStore(msgspec.Struct, frozen=True):
    """The client's own key and certificate: a file, or PEM texts.

    ``key_password`` decrypts the key of a PEM file or text, ``password`` a PKCS12 file.
    """

    type: str
    location: str | None = None
    password: Secret | None = None
    key_password: Secret | None = None
    key: Secret | None = None
    certificate_chain: str | None = None


class Tls(msgspec.Struct, frozen=True):
    """The settings of TLS.

    Without a ``truststore`` the system's authorities are trusted. ``checks_host_name``: the server's
    certificate must name the host.
    """

    truststore: TrustStore | None = None
    keystore: KeyStore | None = None
    checks_host_name: bool = True


class Security(msgspec.Struct, frozen=True):
    """The security of a connection. ``protocol``, a security protocol, decides on ``tls`` and ``sasl``."""

    protocol: str = "PLAINTEXT"
    tls: Tls | None = None
    sasl: Sasl | None = None


def parse_security(options: Mapping[str, str]) -> Security:
    """Return the settings of options with Kafka's names. Raises BadSetting, whose text contains no secret."""
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise BadSetting(f"kafka.{unknown[0]}: unknown; known are {', '.join(f'kafka.{o}' for o in OPTIONS)}")
    protocol = _one_of(options, "security.protocol", SECURITY_PROTOCOLS, "PLAINTEXT")
    _refuse_idle(options, protocol)
    return Security(
        protocol,
        _tls(options) if protocol.endswith("SSL") else None,
        _sasl(options) if protocol.startswith("SASL") else None,
    )


def _refuse_idle(options: Mapping[str, str], protocol: str) -> None:
    """Reject options that the protocol doesn't use: most likely security.protocol was forgotten."""
    for prefix, is_used in (("ssl.", protocol.endswith("SSL")), ("sasl.", protocol.startswith("SASL"))):
        idle = sorted(name for name in options if name.startswith(prefix))
        if idle and not is_used:
            raise BadSetting(f"kafka.{idle[0]}: has no effect with kafka.security.protocol={protocol}")


def _tls(options: Mapping[str, str]) -> Tls:
    algorithm = options.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("https", ""):
        raise BadSetting("kafka.ssl.endpoint.identification.algorithm: https, or empty for none")
    return Tls(_truststore(options), _keystore(options), checks_host_name=bool(algorithm))


def _truststore(options: Mapping[str, str]) -> TrustStore | None:
    location, certificates = (
        options.get("ssl.truststore.location"),
        options.get("ssl.truststore.certificates"),
    )
    if location is None and certificates is None:
        return None
    type = _store_type(options, "truststore")
    if location is not None and certificates is not None:
        raise BadSetting(
            "kafka.ssl.truststore.certificates: give either this or kafka.ssl.truststore.location"
        )
    if certificates is not None and type != "PEM":
        raise BadSetting("kafka.ssl.truststore.certificates: needs kafka.ssl.truststore.type=PEM")
    return TrustStore(type, location, _secret(options, "ssl.truststore.password"), certificates)


def _keystore(options: Mapping[str, str]) -> KeyStore | None:
    location, key = options.get("ssl.keystore.location"), options.get("ssl.keystore.key")
    chain = options.get("ssl.keystore.certificate.chain")
    if location is None and key is None and chain is None:
        return None
    type = _store_type(options, "keystore")
    if location is not None and (key is not None or chain is not None):
        raise BadSetting("kafka.ssl.keystore.key: give either this or kafka.ssl.keystore.location")
    if location is None and (key is None or chain is None):
        raise BadSetting("kafka.ssl.keystore.key and kafka.ssl.keystore.certificate.chain: give both")
    if location is None and type != "PEM":
        raise BadSetting("kafka.ssl.keystore.key: needs kafka.ssl.keystore.type=PEM")
    return KeyStore(
        type,
        location,
        _secret(options, "ssl.keystore.password"),
        _secret(options, "ssl.key.password"),
        _secret(options, "ssl.keystore.key"),
        chain,
    )


def _store_type(options: Mapping[str, str], store: str) -> str:
    type = options.get(f"ssl.{store}.type", "JKS").strip().upper()
    if type == "JKS":
        raise BadSetting(
            f"kafka.ssl.{store}.type: JKS, the default, is not supported: convert the store to PKCS12 "
            f"(keytool -importkeystore -deststoretype PKCS12) or PEM, and set kafka.ssl.{store}.type"
        )
    if type not in STORE_TYPES:
        raise BadSetting(f"kafka.ssl.{store}.type: {type!r} isn't one of {', '.join(STORE_TYPES)}")
    return type


def _sasl(options: Mapping[str, str]) -> Sasl:
    mechanism = _one_of(options, "sasl.mechanism", MECHANISMS, None)
    jaas = options.get("sasl.jaas.config")
    username, password = options.get("sasl.username"), _secret(options, "sasl.password")
    if jaas is not None:
        if username is not None or password is not None:
            raise BadSetting(
                "kafka.sasl.jaas.config: give either this or kafka.sasl.username and kafka.sasl.password"
            )
        return Sasl(mechanism, *parse_login(jaas, mechanism))
    if username is None or password is None:
        raise BadSetting(
            "kafka.sasl.jaas.config: missing; give it, or kafka.sasl.username and kafka.sasl.password"
        )
    return Sasl(mechanism, username, password)


def _one_of(options: Mapping[str, str], name: str, known: tuple[str, ...], default: str | None) -> str:
    value = options.get(name, default)
    if value is None:
        raise BadSetting(f"kafka.{name}: missing; it is one of {', '.join(known)}")
    if value.strip().upper() not in known:
        raise BadSetting(f"kafka.{name}: {value!r} isn't one of {', '.join(known)}")
    return value.strip().upper()


def _secret(options: Mapping[str, str], name: str) -> Secret | None:
    value = options.get(name)
    return None if value is None else Secret(value)
