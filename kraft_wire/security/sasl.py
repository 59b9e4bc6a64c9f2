"""Conduct the client's side of SASL as Kafka uses it: PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677).

Passwords are used as UTF-8. Java's SCRAM doesn't prepare them with SASLprep (RFC 4013), so neither do we.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import Final, Protocol

import msgspec

from kraft_wire.security.errors import AuthenticationFailed
from kraft_wire.security.secret import Secret

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
ITERATIONS: Final = range(4096, 16384 + 1)
"""The iterations that Kafka allows (ScramMechanism). Fewer make a recorded conversation easier to guess, more
cost time."""
_CHANNEL_BINDING: Final = base64.b64encode(b"n,,").decode()


class Sasl(msgspec.Struct, frozen=True):
    """The settings of SASL. ``mechanism`` is one of MECHANISMS."""

    mechanism: str
    username: str
    password: Secret


class Conversation(Protocol):
    """The client's side of one authentication."""

    @property
    def mechanism(self) -> str:
        """The name of the mechanism, for SaslHandshake."""

    @property
    def username(self) -> str:
        """The name of the user."""

    def first(self) -> bytes:
        """Return the first token to send."""

    def answer(self, challenge: bytes) -> bytes | None:
        """Return the token that answers the server's, or None at the end. Raises AuthenticationFailed."""


def conversation(sasl: Sasl, nonce: str) -> Conversation:
    """Begin a conversation. ``nonce`` is fresh random text without a comma."""
    if sasl.mechanism == "PLAIN":
        return _Plain(sasl)
    return _Scram(sasl, sasl.mechanism.removeprefix("SCRAM-").replace("-", "").lower(), nonce)


class _Plain:
    def __init__(self, sasl: Sasl) -> None:
        self.mechanism = sasl.mechanism
        self.username = sasl.username
        self._password = sasl.password

    def first(self) -> bytes:
        return f"\0{self.username}\0{self._password.reveal()}".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        return None


class _Scram:
    def __init__(self, sasl: Sasl, digest: str, nonce: str) -> None:
        self.mechanism = sasl.mechanism
        self.username = sasl.username
        self._password = sasl.password
        self._digest = digest
        self._nonce = nonce
        name = sasl.username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={nonce}"
        self._server_signature: bytes | None = None

    def first(self) -> bytes:
        return f"n,,{self._first_bare}".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        fields = _fields(challenge)
        if "e" in fields:
            raise AuthenticationFailed(f"the server answered SCRAM with {fields['e']}")
        if self._server_signature is None:
            return self._proof(challenge.decode(), fields)
        if not hmac.compare_digest(_decoded(fields, "v"), self._server_signature):
            raise AuthenticationFailed(
                "the server's SCRAM signature is wrong: it doesn't know the password of this user"
            )
        return None

    def _proof(self, server_first: str, fields: dict[str, str]) -> bytes:
        nonce, salt, iterations = fields.get("r", ""), _decoded(fields, "s"), _iterations(fields)
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationFailed("the server's SCRAM nonce doesn't extend ours")
        salted = hashlib.pbkdf2_hmac(self._digest, self._password.reveal().encode(), salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        without_proof = f"c={_CHANNEL_BINDING},r={nonce}"
        message = f"{self._first_bare},{server_first},{without_proof}".encode()
        signature = self._hmac(hashlib.new(self._digest, client_key).digest(), message)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._digest)


def _fields(challenge: bytes) -> dict[str, str]:
    try:
        text = challenge.decode()
    except UnicodeDecodeError:
        raise AuthenticationFailed("the server's SCRAM challenge isn't UTF-8") from None
    return {
        name: value for name, equals, value in (part.partition("=") for part in text.split(",")) if equals
    }


def _decoded(fields: dict[str, str], name: str) -> bytes:
    try:
        return base64.b64decode(fields[name], validate=True)
    except (KeyError, binascii.Error):
        raise AuthenticationFailed(f"the server's SCRAM challenge has no valid {name}=") from None


def _iterations(fields: dict[str, str]) -> int:
    text = fields.get("i", "")
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) not in ITERATIONS:
        limits = f"{ITERATIONS.start} to {ITERATIONS.stop - 1}"
        raise AuthenticationFailed(
            f"the server asks for {text[:20] or 'no'} SCRAM iterations; allowed are {limits}"
        )
    return int(text)
