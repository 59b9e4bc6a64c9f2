"""What a controller writes first when it becomes active.

An empty log gets the records that the cluster was formatted with. A metadata transaction that the controller
before left open is aborted: nobody else will end it. (org.apache.kafka.controller.ActivationRecordsGenerator;
unlike it, this looks at the metadata.version from before an open transaction, since the abort takes it back.)
"""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.metadata import version
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.errors import FeatureError
from kraft_wire.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION, METADATA_VERSION
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.abort_transaction_record import AbortTransactionRecord
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.end_transaction_record import EndTransactionRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord

VersionedRecord = tuple[Message, int]


def activation_records(
    state: MetadataState, bootstrap: Sequence[VersionedRecord], min_insync_replicas: int
) -> list[VersionedRecord]:
    """The records to write, none where the log needs nothing.

    ``bootstrap`` are those that formatting left; ``min_insync_replicas`` is the static setting, which becomes
    a dynamic one of the cluster where eligible leader replicas are finalized (KIP-966). Raises FeatureError
    where the bootstrap records name no metadata.version, or a transaction is open at a level that has none.
    Below 3.6-IV1 the records must be written as one batch.
    """
    empty = state.stable_metadata_version == 0
    level = _level(bootstrap, METADATA_VERSION) if empty else state.stable_metadata_version
    if not version.is_known(level):
        raise FeatureError(f"the bootstrap records name no known {METADATA_VERSION}, got {level}")
    transactions = version.transactions_supported(level)
    if state.in_transaction and not transactions:
        raise FeatureError(
            f"a metadata transaction is open since offset {state.transaction_start}, "
            f"but {METADATA_VERSION} {version.name_of(level)} has none"
        )
    records: list[VersionedRecord] = []
    if state.in_transaction:
        records.append((AbortTransactionRecord("Controller failover"), 0))
    if empty:
        first = [*bootstrap, *_min_insync_replicas(bootstrap, min_insync_replicas)]
        if transactions:
            first = [(BeginTransactionRecord("Bootstrap records"), 0), *first, (EndTransactionRecord(), 0)]
        records += first
    return records


def _min_insync_replicas(bootstrap: Sequence[VersionedRecord], value: int) -> list[VersionedRecord]:
    if _level(bootstrap, ELIGIBLE_LEADER_REPLICAS_VERSION) == 0:
        return []
    return [(ConfigRecord(ResourceType.BROKER.value, "", "min.insync.replicas", str(value)), 0)]


def _level(records: Sequence[VersionedRecord], feature: str) -> int:
    levels = [r.feature_level for r, _ in records if isinstance(r, FeatureLevelRecord) and r.name == feature]
    return levels[-1] if levels else 0
