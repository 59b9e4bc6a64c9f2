"""How a connection is secured: Kafka clients' options, under Kafka's names.

What isn't known is an error: a security option that nobody looks at is worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kraft_wire.client.errors import BadSetting
from kraft_wire.client.jaas import parse_login
from kraft_wire.client.secret import Secret

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
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
    """Whose signatures count: a file, or PEM text."""

    type: str
    location: str | None = None
    password: Secret | None = None
    certificates: str | None = None


class KeyStore(msgspec.Struct, frozen=True):
    """Our own key and certificate: a file, or PEM texts. ``key_password`` decrypts the key of a PEM,
    ``password`` opens a PKCS12."""

    type: str
    location: str | None = None
    password: Secret | None = None
    key_password: Secret | None = None
    key: Secret | None = None
    certificate_chain: str | None = None


class Tls(msgspec.Struct, frozen=True):
    """``truststore`` None: whom the system trusts. ``checks_host_name``: the certificate names the host."""

    truststore: TrustStore | None = None
    keystore: KeyStore | None = None
    checks_host_name: bool = True


class Sasl(msgspec.Struct, frozen=True):
    mechanism: str
    username: str
    password: Secret


class Security(msgspec.Struct, frozen=True):
    """``protocol`` is one of PROTOCOLS; ``tls`` and ``sasl`` are there as it says."""

    protocol: str = "PLAINTEXT"
    tls: Tls | None = None
    sasl: Sasl | None = None


def parse_security(options: Mapping[str, str]) -> Security:
    """``options`` have Kafka's names. Raises BadSetting, without their values where they are secret."""
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise BadSetting(f"kafka.{unknown[0]}: unknown; known are {', '.join(f'kafka.{o}' for o in OPTIONS)}")
    protocol = _one_of(options, "security.protocol", PROTOCOLS, "PLAINTEXT")
    _refuse_idle(options, protocol)
    return Security(
        protocol,
        _tls(options) if protocol.endswith("SSL") else None,
        _sasl(options) if protocol.startswith("SASL") else None,
    )


def _refuse_idle(options: Mapping[str, str], protocol: str) -> None:
    """An option that the protocol doesn't use is most likely a forgotten security.protocol."""
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
            "kafka.ssl.truststore.certificates: takes the place of kafka.ssl.truststore.location"
        )
    if certificates is not None and type != "PEM":
        raise BadSetting("kafka.ssl.truststore.certificates: is for kafka.ssl.truststore.type=PEM")
    return TrustStore(type, location, _secret(options, "ssl.truststore.password"), certificates)


def _keystore(options: Mapping[str, str]) -> KeyStore | None:
    location, key = options.get("ssl.keystore.location"), options.get("ssl.keystore.key")
    chain = options.get("ssl.keystore.certificate.chain")
    if location is None and key is None and chain is None:
        return None
    type = _store_type(options, "keystore")
    if location is not None and (key is not None or chain is not None):
        raise BadSetting("kafka.ssl.keystore.key: takes the place of kafka.ssl.keystore.location")
    if location is None and (key is None or chain is None):
        raise BadSetting("kafka.ssl.keystore.key and kafka.ssl.keystore.certificate.chain: give both")
    if location is None and type != "PEM":
        raise BadSetting("kafka.ssl.keystore.key: is for kafka.ssl.keystore.type=PEM")
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
            f"kafka.ssl.{store}.type: JKS, which is the default, isn't read here: "
            "convert the store (keytool -importkeystore -deststoretype PKCS12) and say PKCS12, or PEM"
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
            raise BadSetting("kafka.sasl.jaas.config: takes the place of kafka.sasl.username and -.password")
        return Sasl(mechanism, *parse_login(jaas, mechanism))
    if username is None or password is None:
        raise BadSetting("kafka.sasl.jaas.config: give that, or kafka.sasl.username and kafka.sasl.password")
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
