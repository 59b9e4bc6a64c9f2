"""Generate metadata logs for benchmarks: one of new partitions, one of mostly changes, one of a cluster's
history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Final

from kraft_wire.log.batch import encode_batch
from kraft_wire.log.files import INDEX_SUFFIX, PARTITION_FOLDER, segment_file_name
from kraft_wire.log.index import OFFSET_ENTRY
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.uuid import Uuid

RECORDS: Final = 2_000_000
HISTORY_RECORDS: Final = 1_000_000
RECORDS_A_BATCH: Final = 1_000
PART_BYTES_A_RECORD: Final = 123
DIFFERENT_BATCHES: Final = 100
"""After so many batches the records repeat at other offsets: generating all of them would take minutes."""
_BROKERS: Final = range(1, 31)
_PARTITIONS_A_TOPIC: Final = 50
_TOPICS: Final = 20_000
_CHANGES_A_PARTITION: Final = 10


def write_log(folder: Path, kind: str, records: int = RECORDS) -> Path:
    """Write a log folder with one segment and its index; return the segment. ``kind`` is one of KINDS."""
    draw = KINDS[kind](Random(1))
    batches = []
    for _ in range(min(DIFFERENT_BATCHES, records // RECORDS_A_BATCH)):
        batches.append([_value(draw()) for _ in range(RECORDS_A_BATCH)])
    return _write(folder, [batches[number % len(batches)] for number in range(records // RECORDS_A_BATCH)])


def write_cluster_history(folder: Path, records: int = HISTORY_RECORDS) -> Path:
    """Write a log folder with one segment: topics with all their partitions, then changes of the partitions;
    return the segment."""
    values = map(_value, islice(_cluster_history(Random(1), records), records))
    return _write(folder, iter(lambda: list(islice(values, RECORDS_A_BATCH)), []))


def _write(folder: Path, batches: Iterable[list[bytes]]) -> Path:
    partition_folder = folder / PARTITION_FOLDER
    partition_folder.mkdir(parents=True)
    segment = partition_folder / segment_file_name(0)
    offset = 0
    with segment.open("wb") as file, segment.with_suffix(INDEX_SUFFIX).open("wb") as index:
        for values in batches:
            index.write(OFFSET_ENTRY.pack(offset + len(values) - 1, file.tell()))
            file.write(encode_batch(offset, 1, 1_700_000_000_000 + offset, values))
            offset += len(values)
    return segment


def _value(record: Message) -> bytes:
    return encode_metadata_record(record, 1 if record.MAX_VERSION else 0)


def _partitions(random: Random) -> Callable[[], PartitionRecord]:
    """Draw PartitionRecords with three replicas, 50 of each topic."""
    directories = {broker: Uuid(random.randbytes(16)) for broker in _BROKERS}
    index = 0
    topic_id = Uuid(random.randbytes(16))

    def draw() -> PartitionRecord:
        nonlocal index, topic_id
        if index == _PARTITIONS_A_TOPIC:
            index, topic_id = 0, Uuid(random.randbytes(16))
        replicas = tuple(random.sample(_BROKERS, 3))
        index += 1
        return PartitionRecord(
            partition_id=index - 1,
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            directories=tuple([directories[broker] for broker in replicas]),
        )

    return draw


def _mixed(random: Random) -> Callable[[], Message]:
    """Draw 30 % new partitions and 70 % changes of an ISR, most of them with a change of the leader."""
    partition = _partitions(random)
    topics = [Uuid(random.randbytes(16)) for _ in range(_TOPICS)]

    def draw() -> Message:
        if random.random() < 0.3:
            return partition()
        isr = tuple(random.sample(_BROKERS, random.randint(1, 3)))
        return PartitionChangeRecord(
            partition_id=random.randrange(_PARTITIONS_A_TOPIC),
            topic_id=random.choice(topics),
            isr=isr,
            leader=isr[0] if random.random() < 0.7 else -2,
        )

    return draw


def _cluster_history(random: Random, records: int) -> Iterator[Message]:
    """Yield topics, then changes: a replica leaves a partition's ISR, which gets another leader if it led,
    and later joins again."""
    yield FeatureLevelRecord("metadata.version", 30)
    draw = _partitions(random)
    partitions: list[PartitionRecord] = []
    for _ in range(records // (_PARTITIONS_A_TOPIC * (1 + _CHANGES_A_PARTITION))):
        created = [draw() for _ in range(_PARTITIONS_A_TOPIC)]
        yield TopicRecord(f"topic-{len(partitions)}", created[0].topic_id)
        yield from created
        partitions += created
    isrs = [(one.replicas, one.leader) for one in partitions]
    while True:
        number = random.randrange(len(partitions))
        one = partitions[number]
        isr, leader = isrs[number]
        if len(isr) < len(one.replicas):
            isr, elected = one.replicas, -2
        else:
            leaves = random.choice(isr)
            isr = tuple([replica for replica in isr if replica != leaves])
            elected = isr[0] if leader == leaves else -2
        isrs[number] = isr, leader if elected == -2 else elected
        yield PartitionChangeRecord(
            partition_id=one.partition_id, topic_id=one.topic_id, isr=isr, leader=elected
        )


KINDS: Final[dict[str, Callable[[Random], Callable[[], Message]]]] = {"part": _partitions, "mix": _mixed}
"""*part*: new partitions only. *mix*: 70 % changes of partitions."""
