"""Describe the keys of a broker or controller that concern security."""

from __future__ import annotations

from typing import Final

TEXTS: Final = {
    "authorizer.class.name": "The class that decides who may do what. Empty: everybody may do everything.",
    "connections.max.reauth.ms": (
        "A client must authenticate again within this time, or its connection is closed. 0: never."
    ),
    "delegation.token.expiry.check.interval.ms": (
        "How often delegation tokens are looked through for those that expired."
    ),
    "delegation.token.expiry.time.ms": "A delegation token that is not renewed expires after this time.",
    "delegation.token.max.lifetime.ms": "A delegation token can't be renewed beyond this age.",
    "delegation.token.secret.key": (
        "The secret that delegation tokens are made with. All brokers and controllers have the same."
        " Without it there are no tokens."
    ),
    "principal.builder.class": "The class that makes a principal of what a client authenticated with.",
    "sasl.client.callback.handler.class": (
        "The class that supplies credentials where this node is a SASL client."
    ),
    "sasl.enabled.mechanisms": "The SASL mechanisms that a listener accepts.",
    "sasl.jaas.config": (
        "The login module of a listener or a client and its options, in the form of a JAAS file."
    ),
    "sasl.kerberos.kinit.cmd": "The path of kinit.",
    "sasl.kerberos.min.time.before.relogin": (
        "The login thread of Kerberos sleeps so many milliseconds between attempts."
    ),
    "sasl.kerberos.principal.to.local.rules": (
        "The rules that turn Kerberos principals into short names. The first that matches counts."
    ),
    "sasl.kerberos.service.name": "The name of Kafka's Kerberos service.",
    "sasl.kerberos.ticket.renew.jitter": (
        "The time of a renewal of a Kerberos ticket varies by this part, by chance."
    ),
    "sasl.kerberos.ticket.renew.window.factor": (
        "A Kerberos ticket is renewed after this part of its lifetime."
    ),
    "sasl.login.callback.handler.class": "The class that supplies what a login needs, such as tokens.",
    "sasl.login.class": "The class that logs in, in place of Kafka's own.",
    "sasl.login.connect.timeout.ms": "A connection to the provider of tokens must succeed within this time.",
    "sasl.login.read.timeout.ms": "The provider of tokens must answer within this time.",
    "sasl.login.refresh.buffer.seconds": "A token is refreshed at least this long before it expires.",
    "sasl.login.refresh.min.period.seconds": (
        "A token is not refreshed earlier than this after the last time."
    ),
    "sasl.login.refresh.window.factor": "A token is refreshed after this part of its lifetime.",
    "sasl.login.refresh.window.jitter": (
        "The time of a refresh varies by this part of the lifetime, by chance."
    ),
    "sasl.login.retry.backoff.max.ms": "The longest wait between two attempts to get a token.",
    "sasl.login.retry.backoff.ms": "The first wait between two attempts to get a token.",
    "sasl.mechanism.controller.protocol": "The SASL mechanism towards controllers.",
    "sasl.mechanism.inter.broker.protocol": "The SASL mechanism among brokers.",
    "sasl.oauthbearer.allow.unverified.audience": (
        "Whether a token is accepted though its audience is not checked."
    ),
    "sasl.oauthbearer.allow.unverified.issuer": (
        "Whether a token is accepted though its issuer is not checked."
    ),
    "sasl.oauthbearer.assertion.algorithm": (
        "The algorithm that signs the assertion of a client that asks for a token."
    ),
    "sasl.oauthbearer.assertion.claim.aud": "The audience in that assertion.",
    "sasl.oauthbearer.assertion.claim.exp.seconds": "That assertion expires after so many seconds.",
    "sasl.oauthbearer.assertion.claim.iss": "The issuer in that assertion.",
    "sasl.oauthbearer.assertion.claim.jti.include": "Whether that assertion gets an id of its own.",
    "sasl.oauthbearer.assertion.claim.nbf.seconds": "That assertion is valid from so many seconds ago on.",
    "sasl.oauthbearer.assertion.claim.sub": "The subject in that assertion.",
    "sasl.oauthbearer.assertion.file": "A file with a finished assertion, used in place of one that is made.",
    "sasl.oauthbearer.assertion.private.key.file": "The PEM file of the key that signs assertions.",
    "sasl.oauthbearer.assertion.private.key.passphrase": "The passphrase of that key.",
    "sasl.oauthbearer.assertion.template.file": "A file with more headers and claims of assertions.",
    "sasl.oauthbearer.client.credentials.client.id": (
        "The id with which a client asks for a token (OAuth client credentials)."
    ),
    "sasl.oauthbearer.client.credentials.client.secret": (
        "The secret with which a client asks for a token (OAuth client credentials)."
    ),
    "sasl.oauthbearer.clock.skew.seconds": (
        "The clocks of the provider and of this node may differ by so much."
    ),
    "sasl.oauthbearer.expected.audience": "A token must be meant for one of these audiences.",
    "sasl.oauthbearer.expected.issuer": "A token must be of this issuer.",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": "How often the keys of the provider are fetched.",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": (
        "The longest wait between two attempts to fetch the provider's keys."
    ),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": (
        "The first wait between two attempts to fetch the provider's keys."
    ),
    "sasl.oauthbearer.jwks.endpoint.url": (
        "The URL of the keys that tokens are checked with, or of a file with them."
    ),
    "sasl.oauthbearer.jwt.retriever.class": "The class that gets tokens.",
    "sasl.oauthbearer.jwt.validator.class": "The class that checks tokens.",
    "sasl.oauthbearer.scope": "The scope that a client asks for.",
    "sasl.oauthbearer.scope.claim.name": "The claim of a token that has its scope.",
    "sasl.oauthbearer.sub.claim.name": "The claim of a token that has its subject.",
    "sasl.oauthbearer.token.endpoint.url": "The URL at which a client gets tokens, or of a file with one.",
    "sasl.server.callback.handler.class": "The class that checks credentials for a mechanism of a listener.",
    "sasl.server.max.receive.size": "The largest message of a client that has not authenticated yet.",
    "security.providers": "The classes that add security providers to the JVM.",
    "ssl.allow.dn.changes": "Whether a new certificate of a listener may have another distinguished name.",
    "ssl.allow.san.changes": (
        "Whether a new certificate of a listener may lack alternative names of the old one."
    ),
    "ssl.cipher.suites": "The cipher suites that may be used. Empty: all that the JVM has.",
    "ssl.client.auth": (
        "Whether clients must have a certificate (required), may have one (requested), or aren't asked for"
        " it (none)."
    ),
    "ssl.enabled.protocols": "The versions of TLS that may be used.",
    "ssl.endpoint.identification.algorithm": (
        "How the name in a server's certificate is checked: https, or empty for not at all."
    ),
    "ssl.engine.factory.class": "The class that makes TLS engines, in place of Kafka's own.",
    "ssl.key.password": "The password of the private key.",
    "ssl.keymanager.algorithm": "The JVM's algorithm for keys.",
    "ssl.keystore.certificate.chain": "The certificates of this node in PEM, in place of a key store.",
    "ssl.keystore.key": "The private key of this node in PEM, in place of a key store.",
    "ssl.keystore.location": "The file with the key and the certificates of this node.",
    "ssl.keystore.password": "The password of that file. PEM files have none.",
    "ssl.keystore.type": "The format of that file: JKS, PKCS12 or PEM.",
    "ssl.principal.mapping.rules": (
        "The rules that turn the name of a client's certificate into a principal. The first that matches"
        " counts."
    ),
    "ssl.protocol": "The version of TLS that a connection begins with.",
    "ssl.provider": "The JVM's provider of TLS.",
    "ssl.secure.random.implementation": "The JVM's source of random numbers for TLS.",
    "ssl.trustmanager.algorithm": "The JVM's algorithm for trusted certificates.",
    "ssl.truststore.certificates": "The trusted certificates in PEM, in place of a trust store.",
    "ssl.truststore.location": "The file with the trusted certificates.",
    "ssl.truststore.password": "The password of that file. Without it, the file is not checked for changes.",
    "ssl.truststore.type": "The format of that file: JKS, PKCS12 or PEM.",
}
