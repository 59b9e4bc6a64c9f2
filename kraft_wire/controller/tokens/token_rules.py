"""What the APIs of delegation tokens share (DelegationTokenControlManager, ControllerApis).

A token's password is the HMAC of its id with the secret key of the cluster. Only the id is in the log.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Final

import msgspec

from kraft_wire.controller.decision.context import Context, ControllerState
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.work import Piece, WorkKey, WorkKind
from kraft_wire.metadata.features.metadata_version import delegation_tokens_supported
from kraft_wire.metadata.snapshot import token_record
from kraft_wire.metadata.tokens import DelegationToken
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.security.principal import Principal
from kraft_wire.security.secret import Secret

USER: Final = "User"
LAST_MS: Final = (1 << 63) - 1
NOT_ALLOWED_MS: Final = -1
"""The timestamps in the answer to a request that isn't allowed."""
NAMES_REQUESTER: Final = 3
"""The first version of CreateDelegationToken and DescribeDelegationToken whose answer names the requester."""
TOKENS_PER_PIECE: Final = 5_000
"""The tokens whose HMACs are compared in one step."""


def text_of(principal: Principal) -> str:
    """Return a principal as records have it."""
    return f"{principal.kind}:{principal.name}"


def is_allowed(context: Context) -> bool:
    """Whether a client may make requests about tokens: one that hasn't authenticated with a token, on a
    connection where clients authenticate. A broker checks that; this controller has no such listeners."""
    return context.is_forwarded and not context.principal.token_authenticated


def enabled_key(state: ControllerState) -> Secret:
    """Return the secret key. Raises ApiError if there are no tokens without one, or in this
    metadata.version."""
    key = state.settings.delegation_token_secret_key
    if key is None:
        raise ApiError(
            ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
            "the controller has no delegation.token.secret.key",
        )
    if not delegation_tokens_supported(state.metadata.features.metadata_version):
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION, "the finalized metadata.version is too low for delegation tokens"
        )
    return key


def token_hmac(key: Secret, token_id: str) -> bytes:
    """Return the password of a token: HMAC-SHA512."""
    return hmac.digest(key.reveal().encode(), token_id.encode(), "sha512")


def after(now_ms: int, period_ms: int) -> int:
    """Return the end of a period, at most the last time that there is."""
    return min(now_ms + period_ms, LAST_MS)


def has_expired(token: DelegationToken, now_ms: int) -> bool:
    """Whether nobody can authenticate with a token any more."""
    return token.max_timestamp_ms < now_ms or token.expiration_timestamp_ms < now_ms


def expiring_record(token: DelegationToken, expiration_ms: int) -> VersionedRecord:
    """Return the record that gives a token a new time of expiry."""
    return token_record(msgspec.structs.replace(token, expiration_timestamp_ms=expiration_ms))


Change = Callable[[DelegationToken, Context], tuple[list[VersionedRecord], int]]
"""Returns the records that change a token, and when it will expire. Raises ApiError."""


class TokenChange:
    """A change of the token that has this HMAC. Its owner and its renewers may make it. Only the ids are
    known, so it is searched some tokens at a time."""

    def __init__(
        self,
        key: Secret,
        token_hmac: bytes,
        state: ControllerState,
        change: Change,
        respond: Callable[[int], Message],
    ) -> None:
        self.key = WorkKey(WorkKind.CHANGE_TOKEN)
        self._secret = key
        self._hmac = token_hmac
        self._left = list(state.metadata.tokens.by_id)
        self._change = change
        self._respond = respond

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """Search among the next tokens, and change the one that is found. Raises ApiError."""
        ids, self._left = self._left[:TOKENS_PER_PIECE], self._left[TOKENS_PER_PIECE:]
        found = next(filter(self._is_wanted, ids), None)
        if found is None and self._left:
            return Piece((), is_last=False)
        token = None if found is None else state.metadata.tokens.by_id.get(found)
        if token is None:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "there is no token with this HMAC")
        records, expiry_ms = self._change(token, context)
        return Piece(records, is_last=True, response=self._respond(expiry_ms), atomic=True)

    def _is_wanted(self, token_id: str) -> bool:
        return hmac.compare_digest(token_hmac(self._secret, token_id), self._hmac)


def check_may_change(token: DelegationToken, context: Context) -> None:
    """Raise ApiError unless the client owns the token, or may renew it."""
    if text_of(context.principal) not in (token.owner, *token.renewers):
        raise ApiError(
            ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
            f"{text_of(context.principal)} is neither the owner nor a renewer of the token",
        )


def check_not_expired(token: DelegationToken, context: Context) -> None:
    """Raise ApiError for a token that has expired."""
    if has_expired(token, context.wall_ms):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED, "the token has expired")
