"""Map KIP-853's drafted messages and fields to the released ones.

The drafted classes are in ``kip_853``, the released ones in ``kraft_wire.protocol.messages``. A field is a
path of attributes through structs and lists alike: ``topics.partitions.voter_uuid``. A field that isn't named
here kept its path and its type.
"""

from __future__ import annotations

from typing import Final

import msgspec


class At(msgspec.Struct, frozen=True):
    """A message by its schema's name, its API key and one of its versions."""

    name: str
    key: int
    version: int


class Released(msgspec.Struct, frozen=True):
    """The released form of a drafted message.

    ``moved`` maps a field's path in the draft to the released path. ``retyped`` maps the draft's path of a
    field to its (drafted, released) types on the wire, where they differ. ``added`` are released fields that
    the draft doesn't have.
    """

    draft: At
    released: At
    moved: dict[str, str] = {}
    retyped: dict[str, tuple[str, str]] = {}
    added: tuple[str, ...] = ()


RELEASED: Final = (
    Released(
        draft=At("UpdateVoterRequest", 77, 0),
        released=At("UpdateRaftVoterRequest", 82, 0),
        moved={"voter_uuid": "voter_directory_id"},
    ),
    Released(
        draft=At("UpdateVoterResponse", 77, 0),
        released=At("UpdateRaftVoterResponse", 82, 0),
        moved={"node_endpoint.host": "current_leader.host", "node_endpoint.port": "current_leader.port"},
        added=("throttle_time_ms",),
    ),
    Released(
        draft=At("VoteRequest", 52, 1),
        released=At("VoteRequest", 52, 1),
        moved={
            "topics.partitions.candidate_epoch": "topics.partitions.replica_epoch",
            "topics.partitions.candidate_id": "topics.partitions.replica_id",
            "topics.partitions.candidate_uuid": "topics.partitions.replica_directory_id",
            "topics.partitions.voter_uuid": "topics.partitions.voter_directory_id",
        },
    ),
    Released(
        draft=At("VoteResponse", 52, 1),
        released=At("VoteResponse", 52, 1),
        retyped={"node_endpoints.port": ("int32", "uint16")},
    ),
    Released(
        draft=At("FetchRequest", 1, 14),
        released=At("FetchRequest", 1, 17),
        moved={
            "replica_id": "replica_state.replica_id",
            "topics.partitions.replica_uuid": "topics.partitions.replica_directory_id",
        },
        added=("replica_state.replica_epoch",),
    ),
    Released(
        draft=At("FetchResponse", 1, 14),
        released=At("FetchResponse", 1, 17),
        moved={
            "responses.partitions.current_leader.end_point.host": "node_endpoints.host",
            "responses.partitions.current_leader.end_point.port": "node_endpoints.port",
        },
        retyped={"responses.partitions.current_leader.end_point.port": ("uint16", "int32")},
        added=("node_endpoints.node_id", "node_endpoints.rack"),
    ),
    Released(
        draft=At("FetchSnapshotRequest", 59, 1),
        released=At("FetchSnapshotRequest", 59, 1),
        moved={"topics.partitions.replica_uuid": "topics.partitions.replica_directory_id"},
    ),
    Released(
        draft=At("FetchSnapshotResponse", 59, 1),
        released=At("FetchSnapshotResponse", 59, 1),
        moved={
            "topics.partitions.current_leader.end_point.host": "node_endpoints.host",
            "topics.partitions.current_leader.end_point.port": "node_endpoints.port",
        },
        added=("node_endpoints.node_id",),
    ),
)
"""Every drafted message at the draft's version. Older versions are Kafka's own."""
