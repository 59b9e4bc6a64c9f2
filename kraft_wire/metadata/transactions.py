"""Metadata transactions (KIP-868): records that count only once they have all been written.

Between BeginTransactionRecord and EndTransactionRecord the state already shows the changes, but they are not
stable: AbortTransactionRecord takes them all back. So the journal records while a transaction is open, and
keeps the inverses of one whose end is not committed yet.
"""

from __future__ import annotations

from typing import NamedTuple

from kraft_wire.metadata.errors import Contradiction
from kraft_wire.metadata.finalized import FinalizedFeatures
from kraft_wire.metadata.journal import Entry, Inverse, Journal
from kraft_wire.protocol.messages.abort_transaction_record import AbortTransactionRecord
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.end_transaction_record import EndTransactionRecord


class Open(NamedTuple):
    """An open transaction: the offset of its beginning, and the finalized metadata.version at that time."""

    start: int
    metadata_version: int


class Transactions:
    """The open transaction, if any, and those that ended not long ago, as (begin, end) offsets."""

    def __init__(self, features: FinalizedFeatures, journal: Journal) -> None:
        self._features = features
        self._journal = journal
        self._open: Open | None = None
        self._ended: tuple[tuple[int, int], ...] = ()

    @property
    def start(self) -> int | None:
        """The offset of the open transaction's BeginTransactionRecord; None where none is open."""
        return None if self._open is None else self._open.start

    @property
    def stable_metadata_version(self) -> int:
        """The finalized metadata.version, whatever the open transaction says of it."""
        return self._features.metadata_version if self._open is None else self._open.metadata_version

    def begin(self, record: BeginTransactionRecord, offset: int) -> None:
        """A transaction opens."""
        if self._open is not None:
            raise Contradiction(f"the transaction that began at offset {self._open.start} is still open")
        undo, arguments = self._become(Open(offset, self._features.metadata_version), self._ended)
        self._journal.add(undo, *arguments)

    def end(self, record: EndTransactionRecord, offset: int) -> None:
        """The open transaction is complete."""
        start = self._must_be_open().start
        if self._journal.recording:
            undo, arguments = self._become(None, (*self._ended, (start, offset)))
            self._journal.add(undo, *arguments)
        else:
            self._become(None, ())
            self._journal.clear()

    def abort(self, record: AbortTransactionRecord, offset: int) -> None:
        """Everything since the transaction began is taken back."""
        redo = self._journal.take_back(self._must_be_open().start)
        if self._journal.recording:
            self._journal.add(self._reopen, redo)

    def forget_below(self, offset: int) -> None:
        """Drop the inverses that nobody needs once every record before ``offset`` is committed."""
        self._journal.floor = max(self._journal.floor, offset)
        self._ended = tuple([(start, end) for start, end in self._ended if end >= offset])
        needed = [start for start, _ in self._ended]
        if self._open is not None:
            needed.append(self._open.start)
        self._journal.forget_below(min([offset, *needed]))

    def _must_be_open(self) -> Open:
        if self._open is None:
            raise Contradiction("no transaction is open")
        return self._open

    def _become(self, opened: Open | None, ended: tuple[tuple[int, int], ...]) -> Inverse:
        before = (self._open, self._ended)
        self._open, self._ended = opened, ended
        self._journal.held = opened is not None
        return self._become, before

    def _reopen(self, redo: list[Entry]) -> Inverse:
        self._journal.do_again(redo)
        return self._abort_again, (self._must_be_open().start,)

    def _abort_again(self, start: int) -> Inverse:
        return self._reopen, (self._journal.take_back(start),)
