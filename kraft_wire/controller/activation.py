"""What a controller writes first when it becomes active (Kafka's ActivationRecordsGenerator).

On an empty log: the bootstrap records, in one metadata transaction (KIP-868) where the level has those. A
transaction that an earlier controller left open is aborted: whatever it holds never happened. If that was the
bootstrap, it is written again.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.controller.config_schema import MIN_INSYNC_REPLICAS, static_min_insync_replicas
from kraft_wire.controller.context import Context, ControllerState, Result, VersionedRecord
from kraft_wire.metadata import version as metadata_version
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.abort_transaction_record import AbortTransactionRecord
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.end_transaction_record import EndTransactionRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.no_op_record import NoOpRecord


class ActivationError(Exception):
    """The log is in a state from which no controller can go on: what is wrong, and what to do."""


def activation_result(
    state: ControllerState, bootstrap: Sequence[VersionedRecord], context: Context
) -> Result:
    """The records that complete an activation; none for a log with metadata and without an open transaction.

    ``bootstrap`` is what formatting left: FeatureLevelRecords, SCRAM credentials and the like. Nobody waits
    for the result's response. Raises ActivationError.
    """
    start = state.metadata.transaction_start
    if state.metadata.stable_metadata_version:
        return _continue_log(state.metadata.features.metadata_version, start)
    return _begin_log(state, bootstrap, start)


def no_op_record() -> VersionedRecord:
    """A record that only moves the log's end, after metadata.max.idle.interval.ms without another."""
    return NoOpRecord(), 0


def _continue_log(level: int, transaction_start: int | None) -> Result:
    if transaction_start is None:
        return Result(Message())
    _check_transactions(level, transaction_start)
    return Result(Message(), [_abort()])


def _begin_log(
    state: ControllerState, bootstrap: Sequence[VersionedRecord], transaction_start: int | None
) -> Result:
    levels = {r.name: r.feature_level for r, _ in bootstrap if isinstance(r, FeatureLevelRecord)}
    level = levels.get(metadata_version.FEATURE_NAME, 0)
    if not level:
        raise ActivationError("the bootstrap records set no metadata.version: format the folder again")
    records = list(bootstrap)
    if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0):
        records.append(_cluster_min_isr(state))
    if transaction_start is not None:
        _check_transactions(level, transaction_start)
        return Result(Message(), [_abort(), *_in_transaction(records)], atomic=False)
    if metadata_version.transactions_supported(level):
        return Result(Message(), _in_transaction(records), atomic=False)
    return Result(Message(), records)


def _check_transactions(level: int, transaction_start: int) -> None:
    if not metadata_version.transactions_supported(level):
        raise ActivationError(
            f"a metadata transaction is open since offset {transaction_start}, but metadata.version "
            f"{metadata_version.name_of(level)} has none: restore the log from another controller"
        )


def _in_transaction(records: Sequence[VersionedRecord]) -> list[VersionedRecord]:
    begin = BeginTransactionRecord(name="Bootstrap records")
    return [(begin, 0), *records, (EndTransactionRecord(), 0)]


def _abort() -> VersionedRecord:
    return AbortTransactionRecord(reason="Controller failover"), 0


def _cluster_min_isr(state: ControllerState) -> VersionedRecord:
    """Eligible leader replicas need a min.insync.replicas that no node overrides: this node's own."""
    record = ConfigRecord(
        resource_type=ResourceType.BROKER.value,
        resource_name="",
        name=MIN_INSYNC_REPLICAS,
        value=str(static_min_insync_replicas(state.settings.static_configs)),
    )
    return record, 0
