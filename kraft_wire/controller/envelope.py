"""Envelope (58): a broker forwards a client's request, with the client's principal and address. KIP-590.

``unwrap`` takes the inner request out, ``wrap`` puts its response in. The inner request is decided upon as if
the client had sent it here, except that authorisation and quotas look at the principal and address of the
envelope. Kafka requires CLUSTER_ACTION on the cluster of whoever sends an envelope. Rules: EnvelopeUtils,
RequestChannel.

Errors about the envelope itself are the envelope's: PRINCIPAL_DESERIALIZATION_FAILURE, INVALID_REQUEST for an
API that is not forwardable or an address that is none, UNSUPPORTED_VERSION for an inner request that can't be
read (the broker then drops its client). An inner response that says "not the controller" becomes the
envelope's NOT_CONTROLLER without content, so that the broker asks the next controller and its client notices
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

import msgspec

from kraft_wire.controller.apis import APIS
from kraft_wire.controller.context import Principal
from kraft_wire.protocol.errors import ApiError, ErrorCode, ProtocolError
from kraft_wire.protocol.headers import decode_request_header, encode_response
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.default_principal_data import DefaultPrincipalData
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.messages.envelope_response import EnvelopeResponse
from kraft_wire.protocol.registry import request_class

DESCRIBE_QUORUM: Final = 55
PRINCIPAL_VERSION_BYTES: Final = 2


class ForwardedRequest(msgspec.Struct, frozen=True):
    """What an envelope carried. ``correlation_id`` and ``client_id`` are the client's own."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str
    request: Message
    principal: Principal
    client_address: str


def unwrap(envelope: EnvelopeRequest) -> ForwardedRequest:
    """The inner request. Raises ApiError with the code that the envelope's response must bear."""
    principal = _principal(envelope.request_principal)
    client_address = _address(envelope.client_host_address)
    try:
        header, header_end = decode_request_header(envelope.request_data)
    except ProtocolError as error:
        raise _unreadable(str(error)) from error
    key, version = header.request_api_key, header.request_api_version
    api = APIS.get(key)
    if api is None or not api.supports(version):
        raise _unreadable(f"API {key} version {version} is not served here")
    if not api.is_forwardable:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{api.name} is not to be forwarded")
    try:
        request, _ = request_class(key).decode_from(envelope.request_data, version, header_end)
    except ProtocolError as error:
        raise _unreadable(str(error)) from error
    return ForwardedRequest(
        key, version, header.correlation_id, header.client_id or "", request, principal, client_address
    )


def wrap(forwarded: ForwardedRequest, response: Message) -> EnvelopeResponse:
    """The envelope's response with the inner response in it."""
    not_controller = (
        ErrorCode.NOT_LEADER_OR_FOLLOWER if forwarded.api_key == DESCRIBE_QUORUM else ErrorCode.NOT_CONTROLLER
    )
    if any(code == not_controller for code in _error_codes(response)):
        return EnvelopeResponse(response_data=None, error_code=int(ErrorCode.NOT_CONTROLLER))
    data = encode_response(forwarded.api_key, forwarded.version, forwarded.correlation_id, response)
    return EnvelopeResponse(response_data=data)


def error_response(request: EnvelopeRequest, version: int, code: ErrorCode, message: str) -> EnvelopeResponse:
    """Only the code has a place in the response."""
    return EnvelopeResponse(response_data=None, error_code=int(code))


def encode_principal(principal: Principal) -> bytes:
    """A principal as Kafka's DefaultKafkaPrincipalBuilder serializes it."""
    data = DefaultPrincipalData(
        type=principal.kind, name=principal.name, token_authenticated=principal.token_authenticated
    )
    version = DefaultPrincipalData.MAX_VERSION
    return version.to_bytes(PRINCIPAL_VERSION_BYTES, "big") + data.encode(version)


def _principal(data: bytes | None) -> Principal:
    """Two bytes of version, then DefaultPrincipalData at that version."""
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
    return ApiError(ErrorCode.UNSUPPORTED_VERSION, f"the forwarded request can't be read: {fault}")


def _error_codes(response: Message) -> Iterator[int]:
    """The error codes of a response: at its top, and one for each thing that was asked."""
    if isinstance(code := getattr(response, "error_code", None), int):
        yield code
    yield from _item_codes(response)


def _item_codes(struct: msgspec.Struct) -> Iterator[int]:
    for name in struct.__struct_fields__:
        items = getattr(struct, name)
        for item in items if isinstance(items, list) else ():
            if isinstance(code := getattr(item, "error_code", None), int):
                yield code
            elif isinstance(item, msgspec.Struct):
                yield from _item_codes(item)
