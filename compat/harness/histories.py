"""Random histories of a cluster's metadata: rows of records, and what a controller makes of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from metadata_records import RecordScript

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

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
FIRST: list[Message] = [
    FeatureLevelRecord("metadata.version", 33),
    FeatureLevelRecord("eligible.leader.replicas.version", 1),
]
Form = dict[str, dict[tuple[Any, ...], Any]]
"""A state: by the table's name, what its rows have to say by their keys (without the cluster)."""
Interval = tuple[tuple[Any, ...], Any, int, int | None]
"""Key, value, start and end offset."""


class History:
    """A cluster's log. ``rows`` are those of the table records; ``forms`` hold for each offset what a
    controller has there, an open transaction left out.

    With ``gap``, the records behind its first offset and up to its last are gone; a snapshot of the last is
    there instead.
    """

    def __init__(self, cluster: str, seed: int, count: int, gap: tuple[int, int] | None = None) -> None:
        self.cluster = cluster
        self.rows: list[dict[str, Any]] = []
        self.forms: list[Form] = []
        self._random = Random(seed)
        self._script = RecordScript(self._random)
        self._state = MetadataState()
        self._epoch = 1
        self._first = list(FIRST)
        while len(self.forms) < count:
            if gap is not None and gap[0] < len(self.forms) <= gap[1]:
                self._unseen(last=len(self.forms) >= gap[1])
            else:
                self._written()

    def _written(self) -> None:
        offset = len(self.forms)
        if self._random.random() < 0.04:
            self._epoch += self._random.randint(1, 3)
            leader = LeaderChangeMessage(leader_id=self._random.randint(1, 3))
            self._add(offset, leader, 0)
            self.forms.append(self._as_before())
            return
        record = self._replay(offset)
        self._add(offset, record, type(record).MAX_VERSION)
        self.forms.append(self._as_before() if self._state.in_transaction else form_of(self._state))

    def _unseen(self, last: bool) -> None:
        offset = len(self.forms)
        self._replay(offset)
        if not last:
            self.forms.append(self._as_before())
            return
        assert not self._state.in_transaction, "snapshots hold no transactions: take another seed or gap"
        records = list(snapshot_records(self._state))
        for record, version in records:
            self._add(offset, record, version, in_snapshot=True)
        self._state = MetadataState.from_snapshot([record for record, _ in records], offset)
        self.forms.append(form_of(self._state))

    def _as_before(self) -> Form:
        return self.forms[-1] if self.forms else form_of(MetadataState())

    def _replay(self, offset: int) -> Message:
        """Everything that snapshots need is finalized first."""
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


def intervals_of(
    forms: list[Form], table: str, of: Callable[[Any], Any] = lambda value: value
) -> set[Interval]:
    """How long ``of`` each value of a table stayed the same; None is no interval. The values are hashable."""
    found: set[Interval] = set()
    begun: dict[tuple[Any, ...], tuple[Any, int]] = {}
    for offset, form in enumerate(forms):
        now = {key: seen for key, value in form[table].items() if (seen := of(value)) is not None}
        for key, (value, start) in list(begun.items()):
            if now.get(key) != value:
                found.add((key, value, start, offset))
                del begun[key]
        for key, value in now.items():
            begun.setdefault(key, (value, offset))
    return found | {(key, value, start, None) for key, (value, start) in begun.items()}


def form_of(state: MetadataState) -> Form:
    """What a controller has, as the tables say it."""
    topics = {topic.id: topic for topic in state.topics}
    return {
        "partitions": {
            (str(topic.id), index): (
                topic.name,
                one.replicas,
                one.isr,
                one.leader,
                one.leader_epoch,
                one.partition_epoch,
                tuple(map(str, one.directories)),
                one.leader_recovery_state,
                one.removing_replicas,
                one.adding_replicas,
                one.elr,
                one.last_known_elr,
            )
            for topic in topics.values()
            for index, one in state.partitions.indexed(topic.id)
        },
        "topics": {(str(topic.id),): (topic.name, topic.partition_count) for topic in topics.values()},
        "brokers": {
            (broker.id,): (
                broker.epoch,
                str(broker.incarnation_id),
                tuple((at.name, at.host, at.port, at.security_protocol) for at in broker.listeners),
                tuple((name, *levels) for name, levels in sorted(broker.features.items())),
                broker.rack,
                broker.fenced,
                broker.in_controlled_shutdown,
                tuple(sorted(map(str, broker.directories))),
                None if broker.cordoned_directories is None else tuple(map(str, broker.cordoned_directories)),
                broker.registration_offset,
                broker.is_migrating_zk_broker,
            )
            for broker in state.brokers.values()
        },
        "configs": {
            (*resource, name): value
            for resource in state.configs.resources()
            for name, value in state.configs.get(*resource).items()
        },
        "features": {(name,): level for name, level in state.features.levels.items()},
    }


def write_log(folder: Path, history: History) -> None:
    """The rows as a node's metadata folder, a batch a record."""
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
