"""Replay metadata transactions (KIP-868): groups of records that take effect together.

Between BeginTransactionRecord and EndTransactionRecord the state already shows the changes, but they are not
stable: AbortTransactionRecord undoes all of them. So the journal records while a transaction is open, and
keeps the inverses of an ended one until its end is committed.
"""

from __future__ import annotations

from typing import NamedTuple

from kraft_wire.metadata.errors import Contradiction
from kraft_wire.metadata.features.finalized import FinalizedFeatures
from kraft_wire.metadata.journal import Entry, Inverse, Journal
from kraft_wire.protocol.messages.abort_transaction_record import AbortTransactionRecord
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.end_transaction_record import EndTransactionRecord


class OpenTransaction(NamedTuple):
    """An open transaction: the offset of its start, and the finalized metadata.version at that time."""

    start: int
    metadata_version: int


class Transactions:
    """The open transaction, if any, and recently ended ones, as (begin, end) offsets."""

    def __init__(self, features: FinalizedFeatures, journal: Journal) -> None:
        self._features = features
        self._journal = journal
        self._open: OpenTransaction | None = None
        self._ended: tuple[tuple[int, int], ...] = ()

    @property
    def start(self) -> int | None:
        """The offset of the open transaction's BeginTransactionRecord; None if none is open."""
        return None if self._open is None else self._open.start

    @property
    def stable_metadata_version(self) -> int:
        """The finalized metadata.version, without changes by the open transaction."""
        return self._features.metadata_version if self._open is None else self._open.metadata_version

    def begin(self, record: BeginTransactionRecord, offset: int) -> None:
        """Open a transaction."""
        if self._open is not None:
            raise Contradiction(f"the transaction that began at offset {self._open.start} is still open")
        undo, arguments = self._set(OpenTransaction(offset, self._features.metadata_version), self._ended)
        self._journal.add(undo, *arguments)

    def end(self, record: EndTransactionRecord, offset: int) -> None:
        """Complete the open transaction."""
        start = self._require_open().start
        if self._journal.recording:
            undo, arguments = self._set(None, (*self._ended, (start, offset)))
            self._journal.add(undo, *arguments)
        else:
            self._set(None, ())
            self._journal.clear()

    def abort(self, record: AbortTransactionRecord, offset: int) -> None:
        """Undo everything since the transaction began."""
        redo = self._journal.undo_with_redo(self._require_open().start)
        if self._journal.recording:
            self._journal.add(self._reopen, redo)

    def forget_below(self, offset: int) -> None:
        """Drop the inverses that aren't needed once every record before ``offset`` is committed."""
        self._journal.floor = max(self._journal.floor, offset)
        self._ended = tuple([(start, end) for start, end in self._ended if end >= offset])
        needed = [start for start, _ in self._ended]
        if self._open is not None:
            needed.append(self._open.start)
        self._journal.forget_below(min([offset, *needed]))

    def _require_open(self) -> OpenTransaction:
        if self._open is None:
            raise Contradiction("no transaction is open")
        return self._open

    def _set(self, opened: OpenTransaction | None, ended: tuple[tuple[int, int], ...]) -> Inverse:
        before = (self._open, self._ended)
        self._open, self._ended = opened, ended
        self._journal.held = opened is not None
        return self._set, before

    def _reopen(self, redo: list[Entry]) -> Inverse:
        self._journal.redo(redo)
        return self._abort_again, (self._require_open().start,)

    def _abort_again(self, start: int) -> Inverse:
        return self._reopen, (self._journal.undo_with_redo(start),)
