"""Serve Envelope (58): a broker forwards a client's request with the client's principal and address. KIP-590.

``unwrap`` returns the inner request, ``wrap`` puts its response into an envelope. The inner request is served
as if the client had sent it to this listener: permissions and quotas are those of the principal and address
in the envelope. Rules: EnvelopeUtils, RequestChannel.

The response of the envelope itself has the errors of the envelope: PRINCIPAL_DESERIALIZATION_FAILURE;
INVALID_REQUEST for an API that is not forwardable or an invalid address; UNSUPPORTED_VERSION for an inner
request that can't be decoded (the broker then closes its client's connection). If the inner response says
NOT_CONTROLLER, so does the envelope, without content: the broker asks another controller, and the client
sees no error. Raft's NOT_LEADER_OR_FOLLOWER counts as NOT_CONTROLLER. In Java it doesn't for changes of the
voters: a broker asks a leader that was removed again and again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from ipaddress import ip_address
from typing import Final

import msgspec

from kraft_wire.controller.decision.api_table import ApiTable
from kraft_wire.protocol.errors import ApiError, ErrorCode, ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kraft_wire.protocol.messages.default_principal_data import DefaultPrincipalData
from kraft_wire.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.messages.envelope_response import EnvelopeResponse
from kraft_wire.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraft_wire.security.principal import Principal
from kraft_wire.wire.entry_count import MAX_REQUEST_ENTRIES
from kraft_wire.wire.headers import decode_request_header, encode_response
from kraft_wire.wire.large_envelope import LargeEnvelope
from kraft_wire.wire.large_responses import is_large
from kraft_wire.wire.refused_items import decode_or_refuse

PRINCIPAL_VERSION_BYTES: Final = 2
_FIRST_ITEMS: Final = 10
_ANSWERED_BY_RAFT: Final = (
    DescribeQuorumRequest.API_KEY,
    AddRaftVoterRequest.API_KEY,
    RemoveRaftVoterRequest.API_KEY,
)
"""The forwardable requests to which a node that doesn't lead answers NOT_LEADER_OR_FOLLOWER."""


class ForwardedRequest(msgspec.Struct, frozen=True):
    """The request in an envelope, with the client's ``correlation_id`` and ``client_id``.

    If it is ``refused``, it was not decoded: ``request`` has the names of its first items at most.
    """

    api_key: int
    version: int
    correlation_id: int
    client_id: str
    request: Message
    principal: Principal
    client_address: str
    refused: ApiError | None = None


class Forwarded(msgspec.Struct, frozen=True):
    """The token of a forwarded request: the token of its envelope, and the request."""

    envelope: Hashable
    request: ForwardedRequest


def unwrap(
    envelope: EnvelopeRequest, apis: ApiTable, max_entries: int = MAX_REQUEST_ENTRIES
) -> ForwardedRequest:
    """Return the request in an envelope.

    It is refused if it has more than ``max_entries``. If the envelope were, brokers would tell their clients
    of an unknown error. Raises ApiError with the code for the envelope's response.
    """
    principal = _principal(envelope.request_principal)
    client_address = _address(envelope.client_host_address)
    try:
        header, header_end = decode_request_header(envelope.request_data)
    except ProtocolError as error:
        raise _unreadable(str(error)) from error
    key, version = header.request_api_key, header.request_api_version
    api = apis.served(key, version)
    if api is None:
        raise _unreadable(f"API key {key} version {version} is not supported")
    if not api.is_forwardable:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{api.name} is not forwardable")
    cls, data = api.request_class, envelope.request_data
    try:
        request, too_many = decode_or_refuse(
            cls, data, version, header_end, api.named_items, max_entries, api.max_bytes
        )
    except ProtocolError as error:
        raise _unreadable(str(error)) from error
    refused = None if too_many is None else ApiError(ErrorCode.POLICY_VIOLATION, api.refusal(too_many))
    client_id = header.client_id or ""
    return ForwardedRequest(
        key, version, header.correlation_id, client_id, request, principal, client_address, refused
    )


def wrap(forwarded: ForwardedRequest, response: Message) -> EnvelopeResponse:
    """Return the envelope's response with the inner response in it. A large one is encoded later, in pieces.

    Raises EncodeError if the response can't be encoded in the version of the request, unless it is large.
    """
    is_raft_s = forwarded.api_key in _ANSWERED_BY_RAFT
    not_controller = ErrorCode.NOT_LEADER_OR_FOLLOWER if is_raft_s else ErrorCode.NOT_CONTROLLER
    if any(code == not_controller for code in _error_codes(response)):
        return EnvelopeResponse(response_data=None, error_code=int(ErrorCode.NOT_CONTROLLER))
    if is_large(response):
        return LargeEnvelope(
            api_key=forwarded.api_key,
            inner_version=forwarded.version,
            correlation_id=forwarded.correlation_id,
            inner=response,
        )
    data = encode_response(forwarded.api_key, forwarded.version, forwarded.correlation_id, response)
    return EnvelopeResponse(response_data=data)


def encode_principal(principal: Principal) -> bytes:
    """Return a principal in the form of Kafka's DefaultKafkaPrincipalBuilder."""
    data = DefaultPrincipalData(
        type=principal.kind, name=principal.name, token_authenticated=principal.token_authenticated
    )
    version = DefaultPrincipalData.MAX_VERSION
    return version.to_bytes(PRINCIPAL_VERSION_BYTES, "big") + data.encode(version)


def _principal(data: bytes | None) -> Principal:
    """Decode a principal: two bytes with the version, then DefaultPrincipalData in that version."""
    if data is None or len(data) < PRINCIPAL_VERSION_BYTES:
        raise ApiError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, "the envelope has no principal")
    version = int.from_bytes(data[:PRINCIPAL_VERSION_BYTES], "big", signed=True)
    try:
        decoded, _ = DefaultPrincipalData.decode_from(bytes(data), version, PRINCIPAL_VERSION_BYTES)
    except ProtocolError as error:
        raise ApiError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from error
    return Principal(decoded.type, decoded.name, decoded.token_authenticated)


def _address(raw: bytes) -> str:
    try:
        return str(ip_address(bytes(raw)))
    except ValueError:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"the envelope's client address has {len(raw)} bytes, not 4 or 16"
        ) from None


def _unreadable(fault: str) -> ApiError:
    return ApiError(ErrorCode.UNSUPPORTED_VERSION, f"the forwarded request can't be decoded: {fault}")


def _error_codes(response: Message) -> Iterator[int]:
    """Return the error codes of a response: the one at the top, and those of the first items.

    That is enough: a node that isn't the active controller refuses all of a request.
    """
    if isinstance(code := getattr(response, "error_code", None), int):
        yield code
    yield from _item_codes(response)


def _item_codes(struct: msgspec.Struct) -> Iterator[int]:
    for name in struct.__struct_fields__:
        items = getattr(struct, name)
        for item in items[:_FIRST_ITEMS] if isinstance(items, list) else ():
            if isinstance(code := getattr(item, "error_code", None), int):
                yield code
            elif isinstance(item, msgspec.Struct):
                yield from _item_codes(item)
