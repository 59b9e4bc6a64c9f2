"""Define the messages that every codec is measured on, and the goals for our speed relative to kio.

They are typical for a cluster: Metadata with a hundred topics, a page of a log, and the requests that brokers
and controllers send all the time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_registration_request import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraft_wire.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse
from kraft_wire.protocol.messages.fetch_response import PartitionData as FetchedPartition
from kraft_wire.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraft_wire.protocol.uuid import Uuid

CLUSTER_ID = "kraft-wire-benchmark"
METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = Uuid.parse("AAAAAAAAAAAAAAAAAAAAAQ")
REPLICAS = (1, 2, 3)
BLOB_BYTES = 64 * 1024
MANY_IDS = 10_000
"""More ids than any codec caches. Ours caches ids because the same ones come again and again."""

Ids = Callable[[str, int], Uuid]
"""A function that makes the ids of a message from a kind and a number."""


class Goals(msgspec.Struct, frozen=True):
    """The least ratio of kio's time to ours; None if there is no goal."""

    decode: float | None
    encode: float | None


class Payload(msgspec.Struct, frozen=True):
    """The message of one row of the table."""

    message: str
    version: int
    about: str
    data: bytes
    pure: Goals
    compiled: Goals
    with_other_ids: Callable[[], list[bytes]]
    """Returns the message many times, never with the same id; nothing if ids don't matter."""

    @property
    def title(self) -> str:
        about = f", {self.about}" if self.about else ""
        return f"{self.message} v{self.version}{about} ({len(self.data):,} bytes)"


PURE = Goals(decode=1, encode=6)
COMPILED_SMALL = Goals(decode=3, encode=30)
COMPILED_METADATA = Goals(decode=4, encode=30)
COMPILED_BLOB = Goals(decode=None, encode=30)
NO_GOALS = Goals(decode=None, encode=None)


def payloads() -> list[Payload]:
    """Return all payloads, in the order of the table."""
    return [
        _payload(metadata_response, 12, "100 topics of 12 partitions", COMPILED_METADATA, ids=100),
        _payload(fetch_response, 17, "one blob of 64 KiB", COMPILED_BLOB),
        _payload(fetch_request, 17, "of a controller", COMPILED_SMALL, ids=1),
        _payload(vote_request, 2, "", COMPILED_SMALL, ids=2),
        _payload(broker_heartbeat_request, 1, "", COMPILED_SMALL),
        _payload(partition_record, 2, "", NO_GOALS, NO_GOALS, ids=4),
        _payload(broker_registration_request, 4, "", COMPILED_SMALL, ids=2),
    ]


def _payload(
    make: Callable[[Ids], Message],
    version: int,
    about: str,
    compiled: Goals,
    pure: Goals = PURE,
    ids: int = 0,
) -> Payload:
    message = make(_ids(0))
    copies = range(1, 1 + MANY_IDS // ids) if ids else range(0)

    def with_other_ids() -> list[bytes]:
        return [make(_ids(of)).encode(version) for of in copies]

    return Payload(message.NAME, version, about, message.encode(version), pure, compiled, with_other_ids)


def metadata_response(ids: Ids) -> MetadataResponse:
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node_id, host=f"host{node_id}", port=9092) for node_id in REPLICAS
        ],
        cluster_id=CLUSTER_ID,
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name=f"orders-of-region-{topic:05}",
                topic_id=ids("topic", topic),
                partitions=[_partition(topic, index) for index in range(12)],
            )
            for topic in range(100)
        ],
    )


def _partition(topic: int, index: int) -> MetadataResponsePartition:
    first = (topic + index) % len(REPLICAS)
    replicas = REPLICAS[first:] + REPLICAS[:first]
    # The order changes when a replica leaves the ISR and returns.
    isr = replicas[::-1] if (topic + index) % 4 == 0 else replicas
    return MetadataResponsePartition(
        partition_index=index,
        leader_id=replicas[0],
        leader_epoch=index,
        replica_nodes=replicas,
        isr_nodes=isr,
    )


def fetch_response(ids: Ids) -> FetchResponse:
    partition = FetchedPartition(
        partition_index=0,
        high_watermark=5_000_000_000,
        last_stable_offset=5_000_000_000,
        log_start_offset=4_000_000_000,
        aborted_transactions=None,
        records=_blob(),
    )
    topic = FetchableTopicResponse(topic_id=ids("topic", 0), partitions=[partition])
    return FetchResponse(session_id=1_234_567, responses=[topic])


def fetch_request(ids: Ids) -> FetchRequest:
    partition = FetchPartition(
        partition=0,
        current_leader_epoch=17,
        fetch_offset=5_000_000_000,
        last_fetched_epoch=16,
        log_start_offset=0,
        partition_max_bytes=0,
        replica_directory_id=ids("directory", 3001),
    )
    return FetchRequest(
        cluster_id=CLUSTER_ID,
        replica_state=ReplicaState(replica_id=3001),
        max_wait_ms=500,
        min_bytes=0,
        max_bytes=8 * 1024 * 1024,
        session_epoch=-1,
        topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def vote_request(ids: Ids) -> VoteRequest:
    partition = PartitionData(
        partition_index=0,
        replica_epoch=17,
        replica_id=3001,
        replica_directory_id=ids("directory", 3001),
        voter_directory_id=ids("directory", 3002),
        last_offset_epoch=16,
        last_offset=5_000_000_000,
        pre_vote=True,
    )
    return VoteRequest(CLUSTER_ID, voter_id=3002, topics=[TopicData(METADATA_TOPIC, [partition])])


def broker_heartbeat_request(ids: Ids) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(broker_id=1, broker_epoch=70_000, current_metadata_offset=5_000_000_000)


def partition_record(ids: Ids) -> PartitionRecord:
    return PartitionRecord(
        partition_id=7,
        topic_id=ids("topic", 0),
        replicas=REPLICAS,
        isr=REPLICAS,
        leader=1,
        leader_epoch=5,
        partition_epoch=9,
        directories=tuple(ids("directory", replica) for replica in REPLICAS),
        eligible_leader_replicas=(2,),
    )


def broker_registration_request(ids: Ids) -> BrokerRegistrationRequest:
    levels = {
        "metadata.version": (7, 33),
        "kraft.version": (0, 1),
        "transaction.version": (0, 2),
        "group.version": (0, 1),
        "eligible.leader.replicas.version": (0, 1),
        "share.version": (0, 1),
        "streams.version": (0, 1),
    }
    return BrokerRegistrationRequest(
        broker_id=1,
        cluster_id=CLUSTER_ID,
        incarnation_id=ids("incarnation", 1),
        listeners=[
            Listener("PLAINTEXT", "broker-1.local", 9092, security_protocol=0),
            Listener("SSL", "broker-1.local", 9093, security_protocol=1),
        ],
        features=[Feature(name, first, last) for name, (first, last) in levels.items()],
        rack="rack-1",
        log_dirs=(ids("directory", 1),),
    )


def _ids(of: int) -> Ids:
    """Return a function that makes ids; the same number ``of`` gives the same ids."""

    def make(kind: str, number: int) -> Uuid:
        text = f"{of} {kind} {number}"
        return Uuid.from_random(hashlib.md5(text.encode(), usedforsecurity=False).digest())

    return make


def _blob() -> bytes:
    """Return bytes that are as incompressible as compressed batches."""
    return b"".join(hashlib.sha256(n.to_bytes(4, "big")).digest() for n in range(BLOB_BYTES // 32))
