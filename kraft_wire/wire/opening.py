"""Open a connection as a client: ask which versions the peer serves, then authenticate if that is wanted.

The opening is a generator. It yields a request with its version, is sent the frame that answers it, and
returns what the peer serves. Kafka's order is ApiVersions (KIP-35), SaslHandshake (KIP-43), SaslAuthenticate
until the mechanism is done (KIP-152).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraft_wire.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraft_wire.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kraft_wire.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from kraft_wire.security.errors import AuthenticationFailed, MechanismRefused
from kraft_wire.security.sasl import Conversation
from kraft_wire.wire.headers import decode_response
from kraft_wire.wire.served_versions import FIRST_ASKED_VERSION, QUESTION, ServedVersions, read_versions

R = TypeVar("R")
M = TypeVar("M", bound=Message)

Steps = Generator[tuple[Message, int], bytes, R]
"""Yields requests with their versions, is sent the frames of their responses, returns R."""


def opening(conversation: Conversation | None) -> Steps[ServedVersions]:
    """Ask for the served versions; with a ``conversation``, authenticate.

    Raises ProtocolError, and AuthenticationFailed if either side rejects the other.
    """
    served = yield from _ask_versions()
    if conversation is not None:
        yield from _choose_mechanism(served, conversation.mechanism)
        yield from _authenticate(served, conversation)
    return served


def _ask_versions() -> Steps[ServedVersions]:
    version = FIRST_ASKED_VERSION
    while True:
        whole = yield QUESTION, version
        answer = read_versions(whole, version)
        if isinstance(answer, ServedVersions):
            return answer
        version = answer


def _choose_mechanism(served: ServedVersions, mechanism: str) -> Steps[None]:
    answer = yield from _call(served, SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse)
    if answer.error_code:
        error = ErrorCode.of(answer.error_code)
        raise MechanismRefused(mechanism, tuple(answer.mechanisms), error.name)


def _authenticate(served: ServedVersions, conversation: Conversation) -> Steps[None]:
    token: bytes | None = conversation.first()
    while token is not None:
        request = SaslAuthenticateRequest(auth_bytes=token)
        answer = yield from _call(served, request, SaslAuthenticateResponse)
        if answer.error_code:
            reason = answer.error_message or ErrorCode.of(answer.error_code).name
            raise AuthenticationFailed(f"user {conversation.username} was rejected: {reason}")
        token = conversation.answer(answer.auth_bytes)


def _call(served: ServedVersions, request: Message, response_class: type[M]) -> Steps[M]:
    version = served.version_of(request)
    whole = yield request, version
    _, response = decode_response(request.API_KEY, version, whole)
    assert isinstance(response, response_class)
    return response
