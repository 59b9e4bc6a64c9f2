"""Kafka clients' security options are read, and secrets stay hidden."""

from __future__ import annotations

import pickle

import pytest

from kraft_wire.client.security_options import KeyStore, Security, Tls, TrustStore, parse_security
from kraft_wire.security.errors import BadSetting
from kraft_wire.security.sasl import Sasl
from kraft_wire.security.secret import Secret

PLAIN_LINE = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="hunter-2";'
)


def test_without_options_the_protocol_is_plaintext() -> None:
    assert parse_security({}) == Security("PLAINTEXT", None, None)


def test_tls_with_files() -> None:
    options = {
        "security.protocol": "ssl",
        "ssl.truststore.location": "/ca.pem",
        "ssl.truststore.type": "PEM",
        "ssl.keystore.location": "/own.p12",
        "ssl.keystore.type": "pkcs12",
        "ssl.keystore.password": "hunter-2",
        "ssl.endpoint.identification.algorithm": "",
    }
    trust = TrustStore("PEM", "/ca.pem")
    keys = KeyStore("PKCS12", "/own.p12", Secret("hunter-2"))
    assert parse_security(options) == Security("SSL", Tls(trust, keys, checks_host_name=False))


def test_tls_with_texts() -> None:
    options = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "CERTIFICATES",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": "KEY",
        "ssl.keystore.certificate.chain": "CHAIN",
        "ssl.key.password": "hunter-2",
    }
    trust = TrustStore("PEM", certificates="CERTIFICATES")
    keys = KeyStore("PEM", key_password=Secret("hunter-2"), key=Secret("KEY"), certificate_chain="CHAIN")
    assert parse_security(options) == Security("SSL", Tls(trust, keys))


def test_sasl_by_name_and_password_or_by_javas_line() -> None:
    named = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "hunter-2",
    }
    line = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN_LINE}
    expected = Security("SASL_SSL", Tls(), Sasl("PLAIN", "alice", Secret("hunter-2")))
    assert parse_security(named) == parse_security(line) == expected


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"security.protocol": "TLS"}, "kafka.security.protocol: 'TLS' isn't one of PLAINTEXT, SSL,"),
        ({"ssl.trustore.location": "x"}, "kafka.ssl.trustore.location: unknown; known are kafka.sec"),
        ({"ssl.truststore.location": "x"}, "kafka.ssl.truststore.location: has no effect with kafka.sec"),
        ({"security.protocol": "SSL", "sasl.mechanism": "PLAIN"}, "kafka.sasl.mechanism: has no effect"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "x"}, "kafka.ssl.truststore.type: JKS,"),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "x", "ssl.truststore.type": "BCFKS"},
            "kafka.ssl.truststore.type: 'BCFKS' isn't one of PEM, PKCS12",
        ),
        (
            {"security.protocol": "SSL", "ssl.keystore.key": "hunter-2", "ssl.keystore.type": "PEM"},
            "kafka.ssl.keystore.key and kafka.ssl.keystore.certificate.chain: give both",
        ),
        (
            {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldap"},
            "kafka.ssl.endpoint.identification.algorithm: https, or empty for none",
        ),
        ({"security.protocol": "SASL_PLAINTEXT"}, "kafka.sasl.mechanism: missing; it is one of PLAIN,"),
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"},
            "kafka.sasl.mechanism: 'GSSAPI' isn't one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.password": "hunter-2",
            },
            "kafka.sasl.jaas.config: missing; give it, or kafka.sasl.username and kafka.sasl.password",
        ),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "bob",
                "sasl.jaas.config": PLAIN_LINE,
            },
            "kafka.sasl.jaas.config: give either this or kafka.sasl.username",
        ),
    ],
)
def test_options_that_contradict_each_other_are_an_error_that_shows_no_secret(
    options: dict[str, str], problem: str
) -> None:
    with pytest.raises(BadSetting) as error:
        parse_security(options)
    assert str(error.value).startswith(problem)
    assert "hunter-2" not in repr(error.value)


def test_secrets_are_hidden_by_repr_and_survive_pickling() -> None:
    options = {
        "security.protocol": "SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": "hunter-2",
        "ssl.keystore.certificate.chain": "CHAIN",
        "ssl.key.password": "hunter-2",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": PLAIN_LINE,
    }
    security = parse_security(options)
    assert "hunter-2" not in repr(security)
    assert "hunter-2" not in f"{security} {security.sasl} {security.tls}"
    sent = pickle.loads(pickle.dumps(security))
    assert sent == security
    assert sent.sasl is not None
    assert sent.sasl.password.reveal() == "hunter-2"
