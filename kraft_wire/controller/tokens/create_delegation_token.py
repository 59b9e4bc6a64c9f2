"""Serve CreateDelegationToken (38), versions 1-3: make a token for the client or, since version 3, for
another user, for which Kafka requires CREATE_TOKENS on that user."""

from __future__ import annotations

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.tokens.token_rules import (
    NAMES_REQUESTER,
    NOT_ALLOWED_MS,
    USER,
    after,
    enabled_key,
    is_allowed,
    text_of,
    token_hmac,
)
from kraft_wire.metadata.snapshot import token_record
from kraft_wire.metadata.tokens import DelegationToken
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kraft_wire.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kraft_wire.security.authorization import AclOperation, Resource, ResourceType
from kraft_wire.security.principal import Principal


def handle(
    state: ControllerState, request: CreateDelegationTokenRequest, version: int, context: Context
) -> Result:
    """Make a token. An answer with an error names owner and requester, too."""
    requester = context.principal
    owner = requester
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    answer = CreateDelegationTokenResponse(principal_type=owner.kind, principal_name=owner.name)
    if version >= NAMES_REQUESTER:
        answer.token_requester_principal_type = requester.kind
        answer.token_requester_principal_name = requester.name
    if error := _refusal(owner, context):
        answer.error_code = int(error)
        answer.issue_timestamp_ms = answer.expiry_timestamp_ms = answer.max_timestamp_ms = NOT_ALLOWED_MS
        return Result(answer)
    try:
        return _create(state, request, owner, context, answer)
    except ApiError as problem:
        answer.error_code = int(problem.code)
        return Result(answer)


def _refusal(owner: Principal, context: Context) -> ErrorCode:
    if not is_allowed(context):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    is_own = (owner.kind, owner.name) == (context.principal.kind, context.principal.name)
    user = Resource(ResourceType.USER, text_of(owner))
    if not is_own and not context.may(AclOperation.CREATE_TOKENS, user):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _create(
    state: ControllerState,
    request: CreateDelegationTokenRequest,
    owner: Principal,
    context: Context,
    answer: CreateDelegationTokenResponse,
) -> Result:
    key, settings, now_ms = enabled_key(state), state.settings, context.wall_ms
    if any(renewer.principal_type != USER for renewer in request.renewers):
        raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE, "a renewer must be a User")
    lifetime_ms = settings.delegation_token_max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    max_ms = after(now_ms, lifetime_ms)
    token = DelegationToken(
        token_id=str(context.entropy.uuid()),
        owner=text_of(owner),
        requester=text_of(context.principal),
        renewers=tuple(
            text_of(Principal(each.principal_type, each.principal_name)) for each in request.renewers
        ),
        issue_timestamp_ms=now_ms,
        max_timestamp_ms=max_ms,
        expiration_timestamp_ms=min(max_ms, after(now_ms, settings.delegation_token_expiry_time_ms)),
    )
    answer.issue_timestamp_ms = now_ms
    answer.expiry_timestamp_ms = token.expiration_timestamp_ms
    answer.max_timestamp_ms = max_ms
    answer.token_id = token.token_id
    answer.hmac = token_hmac(key, token.token_id)
    return Result(answer, [token_record(token)])
