"""Generate random metadata histories: rows of records, and the controller's state after each of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from compat.harness.tables.state_tables import StateTables, state_tables
from kraft_wire.log.batch import encode_batch
from kraft_wire.log.control import encode_control_batch
from kraft_wire.log.files import PARTITION_FOLDER, segment_file_name
from kraft_wire.metadata.snapshot import snapshot_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.registry import message_class
from tests.support.metadata_records import RecordScript

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
FIRST: list[Message] = [
    FeatureLevelRecord("metadata.version", 33),
    FeatureLevelRecord("eligible.leader.replicas.version", 1),
]


class History:
    """The random log of a cluster.

    ``rows`` are the rows of the table ``records``. ``states`` holds a controller's state after each offset,
    without the records of an open transaction. With ``gap``, the records after its first offset up to its
    last are missing and a snapshot of its last offset is there instead.
    """

    def __init__(self, cluster: str, seed: int, count: int, gap: tuple[int, int] | None = None) -> None:
        self.cluster = cluster
        self.rows: list[dict[str, Any]] = []
        self.states: list[StateTables] = []
        self._random = Random(seed)
        self._script = RecordScript(self._random)
        self._state = MetadataState()
        self._epoch = 1
        self._first = list(FIRST)
        while len(self.states) < count:
            if gap is not None and gap[0] < len(self.states) <= gap[1]:
                self._skip_record(last=len(self.states) >= gap[1])
            else:
                self._append_record()

    def _append_record(self) -> None:
        offset = len(self.states)
        if self._random.random() < 0.04:
            self._epoch += self._random.randint(1, 3)
            leader = LeaderChangeMessage(leader_id=self._random.randint(1, 3))
            self._add(offset, leader, 0)
            self.states.append(self._as_before())
            return
        record = self._replay(offset)
        self._add(offset, record, type(record).MAX_VERSION)
        self.states.append(self._as_before() if self._state.in_transaction else state_tables(self._state))

    def _skip_record(self, last: bool) -> None:
        offset = len(self.states)
        self._replay(offset)
        if not last:
            self.states.append(self._as_before())
            return
        assert not self._state.in_transaction, (
            "snapshots hold no open transactions: choose another seed or gap"
        )
        records = list(snapshot_records(self._state))
        for record, version in records:
            self._add(offset, record, version, in_snapshot=True)
        self._state = MetadataState.from_snapshot([record for record, _ in records], offset)
        self.states.append(state_tables(self._state))

    def _as_before(self) -> StateTables:
        return self.states[-1] if self.states else state_tables(MetadataState())

    def _replay(self, offset: int) -> Message:
        """Replay the next record; first come the features that snapshots need."""
        record = self._first.pop(0) if self._first else self._script.next_for(self._state)
        self._state.replay(record, offset)
        return record

    def _add(self, offset: int, record: Message, version: int, in_snapshot: bool = False) -> None:
        self.rows.append(
            {
                "cluster": self.cluster,
                "offset": offset,
                "epoch": self._epoch,
                "timestamp": BEGINNING + timedelta(minutes=offset),
                "committed": True,
                "in_snapshot": in_snapshot,
                "type": record.NAME,
                "version": version,
                "json": msgspec.json.encode(record.to_json(version)).decode(),
            }
        )


def write_log(folder: Path, history: History) -> None:
    """Write the history as a node's metadata folder, with a batch for each record."""
    log = b""
    for row in history.rows:
        place = row["offset"], row["epoch"], int(row["timestamp"].timestamp() * 1000)
        record = message_class(row["type"]).from_json(msgspec.json.decode(row["json"]), row["version"])
        if isinstance(record, LeaderChangeMessage):
            log += encode_control_batch(*place, [record])
        else:
            log += encode_batch(*place, [encode_metadata_record(record, row["version"])])
    partition = folder / PARTITION_FOLDER
    partition.mkdir(parents=True)
    (partition / segment_file_name(0)).write_bytes(log)
