"""Serve RenewDelegationToken (39), versions 1-2: let a token expire later, but never after its last time."""

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
from kraft_wire.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraft_wire.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse


def handle(
    state: ControllerState, request: RenewDelegationTokenRequest, version: int, context: Context
) -> Result:
    """Renew a token. Raises ApiError."""
    if not is_allowed(context):
        refused = int(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        return Result(RenewDelegationTokenResponse(refused, NOT_ALLOWED_MS))
    key, period_ms = enabled_key(state), state.settings.delegation_token_expiry_time_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)

    def renew(token: DelegationToken, context: Context) -> tuple[list[VersionedRecord], int]:
        check_not_expired(token, context)
        check_may_change(token, context)
        expiry_ms = min(token.max_timestamp_ms, after(context.wall_ms, period_ms))
        return [expiring_record(token, expiry_ms)], expiry_ms

    def respond(expiry_ms: int) -> RenewDelegationTokenResponse:
        return RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)

    return Result.of_work(TokenChange(key, request.hmac, state, renew, respond), state, context)
