"""Serve ExpireDelegationToken (40), versions 1-2: let a token expire at another time, or remove it."""

from __future__ import annotations

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.tokens.token_rules import (
    NOT_ALLOWED_MS,
    TokenChange,
    after,
    check_may_change,
    check_not_expired,
    enabled_key,
    expiring_record,
    is_allowed,
)
from kraft_wire.metadata.tokens import DelegationToken
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraft_wire.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from kraft_wire.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord


def handle(
    state: ControllerState, request: ExpireDelegationTokenRequest, version: int, context: Context
) -> Result:
    """Let a token expire; with a negative period it is removed. Raises ApiError."""
    if not is_allowed(context):
        refused = int(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        return Result(ExpireDelegationTokenResponse(refused, NOT_ALLOWED_MS))
    key, period_ms = enabled_key(state), request.expiry_time_period_ms

    def expire(token: DelegationToken, context: Context) -> tuple[list[VersionedRecord], int]:
        check_may_change(token, context)
        if period_ms < 0:
            return [(RemoveDelegationTokenRecord(token_id=token.token_id), 0)], context.wall_ms
        check_not_expired(token, context)
        expiry_ms = min(token.max_timestamp_ms, after(context.wall_ms, period_ms))
        return [expiring_record(token, expiry_ms)], expiry_ms

    def respond(expiry_ms: int) -> ExpireDelegationTokenResponse:
        return ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)

    return Result.of_work(TokenChange(key, request.hmac, state, expire, respond), state, context)
