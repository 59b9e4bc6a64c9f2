"""Remove the delegation tokens that have expired, now and then."""

from __future__ import annotations

from typing import Final

from kraft_wire.controller.decision.context import Context, ControllerState, Round
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.work import ALL_BROKERS, Piece, WorkKey, WorkKind
from kraft_wire.controller.tokens.token_rules import has_expired
from kraft_wire.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord

TOKENS_PER_PIECE: Final = 1_000
"""The tokens that are looked at, and perhaps removed, in one step."""


def remove_expired_tokens(state: ControllerState, context: Context) -> Round:
    """Begin to remove the expired tokens, unless those of the last time are still being removed."""
    tokens = state.metadata.tokens.by_id
    if not tokens or state.is_in_work(WorkKind.EXPIRE_TOKENS, ALL_BROKERS):
        return Round()
    work = _Removal(list(tokens))
    piece = work.decide(state, context)
    return Round(piece.records, works=piece.rest_of(work))


class _Removal:
    """The removal of the expired ones among some tokens."""

    def __init__(self, ids: list[str]) -> None:
        self.key = WorkKey(WorkKind.EXPIRE_TOKENS)
        self._ids = ids
        self._seen = 0

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """Remove those of the next tokens that have expired."""
        end = self._seen + TOKENS_PER_PIECE
        tokens = map(state.metadata.tokens.by_id.get, self._ids[self._seen : end])
        records: list[VersionedRecord] = [
            (RemoveDelegationTokenRecord(token_id=token.token_id), 0)
            for token in tokens
            if token is not None and has_expired(token, context.wall_ms)
        ]
        self._seen = end
        return Piece(records, is_last=end >= len(self._ids))
