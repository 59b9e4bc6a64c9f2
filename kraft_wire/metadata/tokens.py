"""Replay delegation tokens."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kraft_wire.metadata.journal import Journal
from kraft_wire.protocol.messages.delegation_token_record import DelegationTokenRecord
from kraft_wire.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord


class DelegationToken(msgspec.Struct, frozen=True, gc=False):
    """A delegation token. Principals are "Type:name"; timestamps are in milliseconds since the Unix epoch."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiration_timestamp_ms: int


class DelegationTokens:
    """All tokens by id."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._table: dict[str, DelegationToken] = {}

    @property
    def by_id(self) -> Mapping[str, DelegationToken]:
        """The tokens; read only."""
        return self._table

    def replay(self, record: DelegationTokenRecord, offset: int) -> None:
        """Create or renew a token."""
        token = DelegationToken(
            record.token_id,
            record.owner,
            record.requester,
            tuple(record.renewers),
            record.issue_timestamp,
            record.max_timestamp,
            record.expiration_timestamp,
        )
        self._journal.put(self._table, token.token_id, token)

    def replay_remove(self, record: RemoveDelegationTokenRecord, offset: int) -> None:
        """Remove a token. A missing one is no contradiction (Java's controller accepts it too)."""
        self._journal.drop(self._table, record.token_id)
