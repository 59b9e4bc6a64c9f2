"""The client authenticates during the opening: SASL's success, and its failure at each step."""

from __future__ import annotations

import pytest

from kraft_wire.protocol.errors import DecodeError, ErrorCode, ProtocolError, UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraft_wire.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraft_wire.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraft_wire.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kraft_wire.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.registry import request_class
from kraft_wire.security.errors import AuthenticationFailed, MechanismRefused
from kraft_wire.security.sasl import Sasl, conversation
from kraft_wire.security.secret import Secret
from kraft_wire.wire.client_side import ClientSide, Event, Ready, ToSend, UnexpectedResponse
from kraft_wire.wire.framing import FrameReader, frame
from kraft_wire.wire.headers import API_VERSIONS_KEY, decode_request_header, encode_response

HANDSHAKE, AUTHENTICATE = SaslHandshakeRequest.API_KEY, SaslAuthenticateRequest.API_KEY
SERVED = {API_VERSIONS_KEY: (0, 4), HANDSHAKE: (0, 1), AUTHENTICATE: (0, 2), 52: (0, 1)}
# The conversation of RFC 7677.
NONCE = "rOprNGfwEbeRWgbNEkqO"
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


class Opening:
    """A client that opens a connection, and the server's answers to it."""

    def __init__(self, mechanism: str = "SCRAM-SHA-256", served: dict[int, tuple[int, int]] = SERVED) -> None:
        talk = conversation(Sasl(mechanism, "user", Secret("pencil")), NONCE)
        self.client = ClientSide("me", 10_000, talk)
        self._asked = self.client.begin()
        keys = [ApiVersion(key, low, high) for key, (low, high) in served.items()]
        self._versions = ApiVersionsResponse(api_keys=keys)

    def asked(self) -> tuple[int, int, Message]:
        """API key, version and body of the one request that awaits its response."""
        frames = FrameReader(1 << 20)
        frames.feed(self._asked)
        whole = frames.next_frame()
        assert whole is not None
        assert frames.buffered_bytes == 0
        header, start = decode_request_header(whole)
        key, version = header.request_api_key, header.request_api_version
        self._correlation_id = header.correlation_id
        return key, version, request_class(key).decode_from(whole, version, start)[0]

    def answer(self, response: Message) -> Event | None:
        """The event after this response."""
        key, version, _ = self.asked()
        self.client.receive(frame(encode_response(key, version, self._correlation_id, response)))
        event = self.client.next_event()
        if isinstance(event, ToSend):
            self._asked = event.data
        return event

    def past_versions(self) -> Opening:
        assert isinstance(self.answer(self._versions), ToSend)
        return self

    def past_handshake(self) -> Opening:
        assert isinstance(self.past_versions().answer(SaslHandshakeResponse()), ToSend)
        return self


def token(data: bytes) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(auth_bytes=data)


def test_scram_asks_chooses_and_authenticates_in_four_requests() -> None:
    opening = Opening()
    opening.past_versions()
    assert opening.asked() == (HANDSHAKE, 1, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
    opening.answer(SaslHandshakeResponse(mechanisms=("SCRAM-SHA-256",)))
    assert opening.asked() == (AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=CLIENT_FIRST))
    opening.answer(token(SERVER_FIRST))
    assert opening.asked() == (AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=CLIENT_FINAL))
    assert opening.answer(token(SERVER_FINAL)) == Ready()
    assert not opening.client.has_in_flight
    assert opening.client.send(VoteRequest())


def test_plain_authenticates_with_one_token() -> None:
    opening = Opening("PLAIN").past_handshake()
    assert opening.asked() == (AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=b"\0user\0pencil"))
    assert opening.answer(token(b"")) == Ready()


def test_the_opening_may_be_cut_at_every_position() -> None:
    handshake = frame(encode_response(HANDSHAKE, 1, 1, SaslHandshakeResponse()))
    for at in range(len(handshake)):
        opening = Opening("PLAIN").past_versions()
        opening.client.receive(handshake[:at])
        assert opening.client.next_event() is None
        opening.client.receive(handshake[at:])
        assert isinstance(opening.client.next_event(), ToSend)


def test_a_refused_mechanism_names_those_that_are_enabled() -> None:
    opening = Opening("PLAIN").past_versions()
    refusal = SaslHandshakeResponse(
        error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=("SCRAM-SHA-256", "SCRAM-SHA-512")
    )
    with pytest.raises(MechanismRefused) as error:
        opening.answer(refusal)
    assert str(error.value) == (
        "UNSUPPORTED_SASL_MECHANISM: SASL mechanism PLAIN was refused; "
        "enabled are: SCRAM-SHA-256, SCRAM-SHA-512"
    )


def test_a_listener_without_sasl_refuses_every_mechanism() -> None:
    opening = Opening("PLAIN").past_versions()
    with pytest.raises(MechanismRefused, match=r"ILLEGAL_SASL_STATE: .* enabled are: none"):
        opening.answer(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))


@pytest.mark.parametrize(
    "served",
    [{API_VERSIONS_KEY: (0, 4)}, {**SERVED, HANDSHAKE: (2, 3)}],
    ids=["no SASL at all", "no common version"],
)
def test_a_peer_that_does_not_serve_the_handshake_is_an_error(served: dict[int, tuple[int, int]]) -> None:
    with pytest.raises(UnsupportedVersion, match="SaslHandshakeRequest"):
        Opening(served=served).past_versions()


def test_a_peer_that_serves_only_the_handshake_is_an_error() -> None:
    opening = Opening(served={API_VERSIONS_KEY: (0, 4), HANDSHAKE: (0, 1)}).past_versions()
    with pytest.raises(UnsupportedVersion, match="SaslAuthenticateRequest"):
        opening.answer(SaslHandshakeResponse())


@pytest.mark.parametrize("tokens", [[], [SERVER_FIRST]], ids=["first token", "final token"])
def test_a_rejected_token_is_an_error_with_the_servers_reason(tokens: list[bytes]) -> None:
    opening = Opening().past_handshake()
    for each in tokens:
        opening.answer(token(each))
    rejection = SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="invalid credentials"
    )
    with pytest.raises(AuthenticationFailed, match=r"^user user was rejected: invalid credentials$") as error:
        opening.answer(rejection)
    assert "pencil" not in str(error.value)
    assert not isinstance(error.value, ProtocolError)


def test_a_rejection_without_a_reason_names_its_code() -> None:
    rejection = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED)
    with pytest.raises(AuthenticationFailed, match="user user was rejected: SASL_AUTHENTICATION_FAILED"):
        Opening("PLAIN").past_handshake().answer(rejection)


def test_a_server_that_does_not_know_the_password_is_an_error() -> None:
    opening = Opening().past_handshake()
    opening.answer(token(SERVER_FIRST))
    with pytest.raises(AuthenticationFailed, match="signature is wrong"):
        opening.answer(token(SERVER_FINAL.replace(b"6rri", b"7rri")))


def test_a_challenge_that_is_none_is_an_error() -> None:
    with pytest.raises(AuthenticationFailed, match="nonce doesn't extend ours"):
        Opening().past_handshake().answer(token(SERVER_FIRST.replace(b"rOpr", b"sOpr")))


@pytest.mark.parametrize("step", ["past_versions", "past_handshake"])
def test_a_response_that_can_not_be_read_is_an_error_of_its_step(step: str) -> None:
    opening: Opening = getattr(Opening(), step)()
    key, _, _ = opening.asked()
    opening.client.receive(frame(opening._correlation_id.to_bytes(4) + b"\xff"))
    with pytest.raises(DecodeError):
        opening.client.next_event()
    assert opening.client.due_api_key == key


@pytest.mark.parametrize("step", ["past_versions", "past_handshake"])
def test_a_response_to_something_else_is_an_error_of_its_step(step: str) -> None:
    opening: Opening = getattr(Opening(), step)()
    _ = opening.asked()
    due = opening._correlation_id
    opening.client.receive(frame((due - 1).to_bytes(4) + bytes(20)))
    with pytest.raises(UnexpectedResponse, match=f"correlation id {due - 1} arrived, expected {due}"):
        opening.client.next_event()
