"""Replay SCRAM credentials."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import msgspec

from kraft_wire.metadata.errors import Contradiction
from kraft_wire.metadata.journal import Journal
from kraft_wire.protocol.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord


class ScramMechanism(IntEnum):
    """The mechanisms of org.apache.kafka.clients.admin.ScramMechanism."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def kafka_name(self) -> str:
        """The name that Kafka's tools have for it, such as SCRAM-SHA-256."""
        return self.name.replace("_", "-")


class ScramCredential(msgspec.Struct, frozen=True, gc=False):
    """A user's credential for SCRAM. It is secret, so it is never printed."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return "ScramCredential(hidden)"


class ScramCredentials:
    """Credentials by user name and mechanism."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._table: dict[tuple[str, int], ScramCredential] = {}

    @property
    def by_user(self) -> Mapping[tuple[str, int], ScramCredential]:
        """The credentials; read only."""
        return self._table

    def replay(self, record: UserScramCredentialRecord, offset: int) -> None:
        """Set a credential."""
        credential = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        self._journal.put(self._table, (record.name, record.mechanism), credential)

    def replay_remove(self, record: RemoveUserScramCredentialRecord, offset: int) -> None:
        """Remove a credential."""
        key = (record.name, record.mechanism)
        if key not in self._table:
            raise Contradiction(f"user {record.name!r} has no credential of mechanism {record.mechanism}")
        self._journal.drop(self._table, key)
