"""The state that the metadata log builds, record by record.

Only replay changes it. Handlers read it. The active controller replays its own records before they are
committed, while the journal records, and undoes them if they are never committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from kraft_wire.log.batch import Batch, record_values
from kraft_wire.metadata.acls import Acls
from kraft_wire.metadata.brokers import BrokerRegistration, Brokers
from kraft_wire.metadata.configs import Configs
from kraft_wire.metadata.controllers import ControllerRegistration, Controllers
from kraft_wire.metadata.errors import Contradiction, LevelTooNew, RecordTooNew, ReplayError
from kraft_wire.metadata.features.finalized import FinalizedFeatures
from kraft_wire.metadata.freeing import free_in_pieces
from kraft_wire.metadata.journal import Journal
from kraft_wire.metadata.partitions.partitions import Partitions
from kraft_wire.metadata.partitions.replay import PartitionReplay
from kraft_wire.metadata.producer_ids import ProducerIds
from kraft_wire.metadata.quotas import ClientQuotas
from kraft_wire.metadata.scram import ScramCredentials
from kraft_wire.metadata.tokens import DelegationTokens
from kraft_wire.metadata.topic_removals import TopicRemoval, TopicRemovals
from kraft_wire.metadata.topics import Topics
from kraft_wire.metadata.transactions import Transactions
from kraft_wire.protocol.errors import UnknownRecord, UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.abort_transaction_record import AbortTransactionRecord
from kraft_wire.protocol.messages.access_control_entry_record import AccessControlEntryRecord
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.client_quota_record import ClientQuotaRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.delegation_token_record import DelegationTokenRecord
from kraft_wire.protocol.messages.end_transaction_record import EndTransactionRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.fence_broker_record import FenceBrokerRecord
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.producer_ids_record import ProducerIdsRecord
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.messages.register_controller_record import RegisterControllerRecord
from kraft_wire.protocol.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraft_wire.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.messages.unfence_broker_record import UnfenceBrokerRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.messages.unregister_controller_record import UnregisterControllerRecord
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from kraft_wire.protocol.messages.zk_migration_state_record import ZkMigrationStateRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.column_changes import PartitionChanges
    from kraft_wire.metadata.partitions.column_creations import NewPartitions
    from kraft_wire.metadata.partitions.replay_batches import Run

Handler = Callable[[Any, int], None]
"""A function that applies one type of record: the record and its offset."""

FEWEST_IN_COLUMNS: Final = 48
"""Batches of fewer records are replayed faster one by one, without loading the code for columns."""
_NO_TRANSACTIONS: Final = "a snapshot must not hold transactions"


class MetadataState:
    """All metadata of a cluster, at one offset of its log. Starts empty.

    Attributes:
        topics, partitions: see those classes; the two that grow large.
        brokers, controllers: registrations by id.
        features, configs, producer_ids, acls, quotas, scram, tokens: one class each.
        journal: the caller sets its ``recording`` while records are speculative.
        last_applied_offset: of the last record applied, or of the snapshot loaded; -1 at first.
    """

    def __init__(self) -> None:
        self.journal = Journal()
        self.last_applied_offset = -1
        self.features = FinalizedFeatures(self.journal)
        self.topics = Topics(self.journal)
        self.partitions = Partitions(self.topics, self.journal)
        self.configs = Configs(self.journal)
        self.quotas = ClientQuotas(self.journal)
        self.producer_ids = ProducerIds(self.journal)
        self.acls = Acls(self.journal)
        self.scram = ScramCredentials(self.journal)
        self.tokens = DelegationTokens(self.journal)
        self._brokers = Brokers(self.journal)
        self._controllers = Controllers(self.journal)
        self._transactions = Transactions(self.features, self.journal)
        self._removal = TopicRemoval(self.topics, self.partitions, self.configs)
        self._handlers = dict(self.registry())  # none refers to the state, which is freed with its last user

    @classmethod
    def from_snapshot(cls, records: Iterable[Message], last_contained_offset: int) -> Self:
        """Return the state of a snapshot. The snapshot's id is (last contained offset + 1, epoch).

        Raises ReplayError, with that offset, for a snapshot that contradicts itself or opens a transaction.
        """
        state = cls()
        for record in records:
            state.replay(record, last_contained_offset)
            if state.in_transaction:
                raise ReplayError(record.NAME, last_contained_offset, _NO_TRANSACTIONS)
        state.last_applied_offset = last_contained_offset
        return state

    @classmethod
    def from_snapshot_values(cls, batches: Iterable[Sequence[bytes]], last_contained_offset: int) -> Self:
        """Return the same as ``from_snapshot``, from encoded records."""
        state = cls()
        for values in batches:
            for _ in state._replay_steps(values, last_contained_offset, 0):
                if state.in_transaction:
                    raise ReplayError("snapshot", last_contained_offset, _NO_TRANSACTIONS)
        state.last_applied_offset = last_contained_offset
        return state

    def free_in_pieces(self) -> Iterator[None]:
        """Free what is large. Yields after each piece. Nobody may use this state any more."""
        return free_in_pieces([*self.topics.tables, *self.partitions.tables, *self.configs.tables])

    @property
    def brokers(self) -> Mapping[int, BrokerRegistration]:
        """Registered brokers by id; read only."""
        return self._brokers.table

    @property
    def brokers_changed_end(self) -> int:
        """The offset after the last record that changed a registration of a broker, undone ones included."""
        return self._brokers.changed_end

    @property
    def controllers(self) -> Mapping[int, ControllerRegistration]:
        """Registered controllers by id; read only."""
        return self._controllers.table

    @property
    def controllers_changed_end(self) -> int:
        """The offset after the last record that changed a controller's registration."""
        return self._controllers.changed_end

    @property
    def transaction_start(self) -> int | None:
        """The offset of the open metadata transaction's BeginTransactionRecord; None if none is open."""
        return self._transactions.start

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction is open, so that its changes may still be undone."""
        return self._transactions.start is not None

    @property
    def stable_metadata_version(self) -> int:
        """The finalized metadata.version, without changes by the open transaction; 0 if there is none."""
        return self._transactions.stable_metadata_version

    @property
    def last_stable_offset(self) -> int:
        """The last applied offset, or the one before the open transaction. It doesn't depend on what is
        committed."""
        start = self._transactions.start
        return self.last_applied_offset if start is None else start - 1

    def replay(self, record: Message, offset: int) -> None:
        """Apply one record. Offsets may skip (control records, which aren't replayed) but not decrease.

        Raises ReplayError if the record contradicts the state: an invariant is broken and the node must stop.
        Raises RecordTooNew if it finalizes a feature level that this release doesn't know.
        """
        if offset < self.last_applied_offset:
            raise ReplayError(record.NAME, offset, f"offset {self.last_applied_offset} is already applied")
        handler = self._handlers.get(type(record))
        if handler is None:
            raise ReplayError(record.NAME or type(record).__name__, offset, "it is not a metadata record")
        journal = self.journal
        journal.offset = offset
        if not journal.recording:
            journal.floor = offset + 1
        try:
            handler(record, offset)
        except LevelTooNew as too_new:
            raise RecordTooNew(record.NAME, offset, str(too_new)) from None
        except Contradiction as contradiction:
            raise ReplayError(record.NAME, offset, str(contradiction)) from None
        self.last_applied_offset = offset

    def apply_columns(
        self, columns: PartitionChanges | NewPartitions | TopicRemovals, base_offset: int
    ) -> None:
        """Apply the records of many partitions or topics, the first of which is at ``base_offset``.

        They are undone together: ``undo_to`` must not be given an offset between them.
        """
        last_offset = base_offset + len(columns) - 1
        self.journal.offset = last_offset
        if not self.journal.recording:
            self.journal.floor = last_offset + 1
        if isinstance(columns, TopicRemovals):
            self._removal.remove(self.topics.find_all(columns.topic_ids))
        else:
            columns.apply(self.partitions)
        self.last_applied_offset = last_offset

    def replay_values(self, values: Sequence[bytes], base_offset: int) -> None:
        """Apply encoded records of one batch at consecutive offsets; runs of partition records are applied
        together.

        Raises the errors of ``replay``, RecordTooNew also for a type or version that this release doesn't
        know, and DecodeError. The records before the one that can't be applied are applied.
        """
        for _ in self._replay_steps(values, base_offset, 1):
            pass

    def replay_batch(self, batch: Batch) -> None:
        """Apply a data batch. Raises the errors of ``replay_values``, and CorruptBatch."""
        if batch.header.record_count >= FEWEST_IN_COLUMNS and not self.journal.active:
            from kraft_wire.metadata.partitions.encoded_records import values_of

            values = values_of(batch)
        else:
            values = record_values(batch)
        self.replay_values(values, batch.header.base_offset)

    def _replay_steps(self, values: Sequence[bytes], base_offset: int, step: int) -> Iterator[None]:
        """Apply encoded records. ``step`` is the difference between the offsets of two records."""
        runs = self._runs(values) if len(values) >= FEWEST_IN_COLUMNS else {}
        position = 0
        while position < len(values):
            offset = base_offset + position * step
            count = self._replay_run(runs[position], offset, step) if position in runs else 0
            if count == 0:
                self.replay(_decode(values[position], offset), offset)
                count = 1
            position += count
            yield

    def _runs(self, values: Sequence[bytes]) -> dict[int, Run]:
        if self.journal.active:
            return {}
        from kraft_wire.metadata.partitions.replay_batches import PartitionBatches

        return PartitionBatches(self.topics, self.partitions, self._removal.remove).runs(values)

    def _replay_run(self, run: Run, offset: int, step: int) -> int:
        if self.journal.active or offset < self.last_applied_offset:
            return 0
        count = run()
        if count:
            self.last_applied_offset = self.journal.offset = offset + (count - 1) * step
            self.journal.floor = self.last_applied_offset + 1
        return count

    def undo_to(self, offset: int) -> None:
        """Undo all records at or after ``offset``, also a record that failed when it was half replayed.

        Raises UndoImpossible if some of them were replayed without recording, or have been forgotten.
        """
        if offset <= max(self.last_applied_offset, self.journal.offset):
            self.journal.undo_to(offset)
        self.last_applied_offset = min(self.last_applied_offset, offset - 1)

    def forget_below(self, offset: int) -> None:
        """Forget how to undo the records before ``offset``, because they are committed."""
        self._transactions.forget_below(offset)

    def registry(self) -> list[tuple[type[Message], Handler]]:
        """Return the handler of every type of metadata record."""
        partitions = PartitionReplay(self.topics, self.partitions)
        return [
            (FeatureLevelRecord, self.features.replay),
            (RegisterBrokerRecord, self._brokers.register),
            (UnregisterBrokerRecord, self._brokers.unregister),
            (FenceBrokerRecord, self._brokers.fence),
            (UnfenceBrokerRecord, self._brokers.unfence),
            (BrokerRegistrationChangeRecord, self._brokers.change),
            (RegisterControllerRecord, self._controllers.register),
            (UnregisterControllerRecord, self._controllers.unregister),
            (TopicRecord, self.topics.replay_topic),
            (RemoveTopicRecord, self._removal.replay),
            (PartitionRecord, partitions.partition),
            (PartitionChangeRecord, partitions.change),
            (ClearElrRecord, partitions.clear_elr),
            (ConfigRecord, self.configs.replay),
            (ClientQuotaRecord, self.quotas.replay),
            (ProducerIdsRecord, self.producer_ids.replay),
            (AccessControlEntryRecord, self.acls.replay),
            (RemoveAccessControlEntryRecord, self.acls.replay_remove),
            (UserScramCredentialRecord, self.scram.replay),
            (RemoveUserScramCredentialRecord, self.scram.replay_remove),
            (DelegationTokenRecord, self.tokens.replay),
            (RemoveDelegationTokenRecord, self.tokens.replay_remove),
            (BeginTransactionRecord, self._transactions.begin),
            (EndTransactionRecord, self._transactions.end),
            (AbortTransactionRecord, self._transactions.abort),
            (NoOpRecord, _ignore),
            (ZkMigrationStateRecord, _ignore),  # left in old logs; there is no ZooKeeper any more
        ]


def _decode(value: bytes, offset: int) -> Message:
    try:
        return decode_metadata_record(value)[0]
    except (UnknownRecord, UnsupportedVersion) as error:
        raise RecordTooNew("a record", offset, str(error)) from None


def _ignore(record: Message, offset: int) -> None:
    """Ignore a record that only takes up an offset."""
