"""Serve DescribeDelegationToken (41), versions 1-3: show tokens and their HMACs.

Owners, requesters and renewers see their tokens. To see others Kafka requires DESCRIBE on the token or
DESCRIBE_TOKENS on its owner. Java's controllers advertise the API and fail: brokers answer it there.
Rules: KafkaApis, DelegationTokenManager.filterToken.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.work import Piece, WorkKey, WorkKind
from kraft_wire.controller.tokens.token_rules import (
    NAMES_REQUESTER,
    enabled_key,
    is_allowed,
    text_of,
    token_hmac,
)
from kraft_wire.metadata.tokens import DelegationToken
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from kraft_wire.protocol.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from kraft_wire.security.authorization import AclOperation, Resource, ResourceType
from kraft_wire.security.principal import Principal
from kraft_wire.security.secret import Secret

RENEWERS_PER_PIECE: Final = 10_000
"""The renewers that are looked at in one step, with those that stand for the tokens."""
RENEWERS_OF_A_TOKEN: Final = 10
"""A token itself takes as long as so many renewers."""


def handle(
    state: ControllerState, request: DescribeDelegationTokenRequest, version: int, context: Context
) -> Result:
    """Show the tokens of the owners that are asked for; those of all without any list. Raises ApiError."""
    if not is_allowed(context):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, "clients don't authenticate here")
    key = enabled_key(state)
    owners: set[str] | None = None
    if request.owners is not None:
        owners = {text_of(Principal(each.principal_type, each.principal_name)) for each in request.owners}
    return Result.of_work(_Description(key, owners, state, version), state, context)


class _Description:
    """The description of tokens. Each is described as it is found in its step."""

    def __init__(self, key: Secret, owners: set[str] | None, state: ControllerState, version: int) -> None:
        self.key = WorkKey(WorkKind.DESCRIBE_TOKENS)
        self._secret = key
        self._owners = owners
        self._names_requester = version >= NAMES_REQUESTER
        self._ids = [] if owners is not None and not owners else list(state.metadata.tokens.by_id)
        self._seen = 0
        self._described: list[DescribedDelegationToken] = []

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """Describe the next tokens."""
        weight = 0
        while self._seen < len(self._ids) and weight < RENEWERS_PER_PIECE:
            weight += RENEWERS_OF_A_TOKEN
            token = state.metadata.tokens.by_id.get(self._ids[self._seen])
            self._seen += 1
            if token is not None:
                weight += len(token.renewers)
                self._look_at(token, context)
        if self._seen < len(self._ids):
            return Piece((), is_last=False)
        return Piece((), is_last=True, response=DescribeDelegationTokenResponse(tokens=self._described))

    def _look_at(self, token: DelegationToken, context: Context) -> None:
        if self._is_wanted(token) and _may_see(token, context):
            self._described.append(self._describe(token))

    def _describe(self, token: DelegationToken) -> DescribedDelegationToken:
        described = _described(token, self._secret)
        if self._names_requester:
            described.token_requester_principal_type, described.token_requester_principal_name = _parts(
                token.requester
            )
        return described

    def _is_wanted(self, token: DelegationToken) -> bool:
        return self._owners is None or not self._owners.isdisjoint(_users(token))


def _users(token: DelegationToken) -> tuple[str, ...]:
    return token.owner, token.requester, *token.renewers


def _may_see(token: DelegationToken, context: Context) -> bool:
    return (
        text_of(context.principal) in _users(token)
        or context.may(AclOperation.DESCRIBE, Resource(ResourceType.DELEGATION_TOKEN, token.token_id))
        or context.may(AclOperation.DESCRIBE_TOKENS, Resource(ResourceType.USER, token.owner))
    )


def _described(token: DelegationToken, key: Secret) -> DescribedDelegationToken:
    owner_type, owner_name = _parts(token.owner)
    return DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner_name,
        issue_timestamp=token.issue_timestamp_ms,
        expiry_timestamp=token.expiration_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        token_id=token.token_id,
        hmac=token_hmac(key, token.token_id),
        renewers=[DescribedDelegationTokenRenewer(*_parts(each)) for each in token.renewers],
    )


def _parts(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name
