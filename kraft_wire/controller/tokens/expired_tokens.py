"""Remove the delegation tokens that have expired, now and then."""

from __future__ import annotations

from itertools import islice
from typing import Final

from kraft_wire.controller.decision.context import Context, ControllerState, Round
from kraft_wire.controller.tokens.token_rules import has_expired
from kraft_wire.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord

MOST_AT_ONCE: Final = 1000


def remove_expired_tokens(state: ControllerState, context: Context) -> Round:
    """Remove up to ``MOST_AT_ONCE`` tokens."""
    tokens = state.metadata.tokens.by_id.values()
    expired = (token.token_id for token in tokens if has_expired(token, context.wall_ms))
    ids = list(islice(expired, MOST_AT_ONCE))
    records = [(RemoveDelegationTokenRecord(token_id=id), 0) for id in ids]
    return Round(records, more=len(ids) == MOST_AT_ONCE)
