"""Make the first records of a controller that becomes active (Kafka's ActivationRecordsGenerator).

On an empty log these are the bootstrap records, in one metadata transaction (KIP-868) if the metadata.version
has transactions. A transaction that an earlier controller left open is aborted: none of its records count. If
it was the bootstrap transaction, the bootstrap records are written again.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.controller.cluster.cluster_min_isr import cluster_min_isr
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.metadata.features import metadata_version
from kraft_wire.metadata.features.supported import ELIGIBLE_LEADER_REPLICAS_VERSION
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.abort_transaction_record import AbortTransactionRecord
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.end_transaction_record import EndTransactionRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.no_op_record import NoOpRecord


class ActivationError(Exception):
    """The log is in a state in which no controller can become active."""


def activation_result(
    state: ControllerState, bootstrap: Sequence[VersionedRecord], context: Context
) -> Result:
    """Return the records that complete an activation.

    There are none if the log has metadata and no open transaction. ``bootstrap`` are the records that the
    format command left: FeatureLevelRecords, SCRAM credentials and so on. The result's response is not sent.
    Raises ActivationError.
    """
    start = state.metadata.transaction_start
    if state.metadata.stable_metadata_version:
        return _continue_log(state.metadata.features.metadata_version, start)
    return _begin_log(state, bootstrap, start)


def no_op_record() -> VersionedRecord:
    """Return a record that only moves the end of the log, written every metadata.max.idle.interval.ms."""
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
        raise ActivationError("the bootstrap records have no metadata.version: format the folder again")
    records = list(bootstrap)
    if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0):
        records.append(cluster_min_isr(state))
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
            f"{metadata_version.name_of(level)} has no transactions: restore the log from another controller"
        )


def _in_transaction(records: Sequence[VersionedRecord]) -> list[VersionedRecord]:
    begin = BeginTransactionRecord(name="Bootstrap records")
    return [(begin, 0), *records, (EndTransactionRecord(), 0)]


def _abort() -> VersionedRecord:
    return AbortTransactionRecord(reason="Controller failover"), 0
