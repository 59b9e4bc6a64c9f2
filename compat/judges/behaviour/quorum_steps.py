"""The steps about the quorum, which has one voter: questions, and requests that can't succeed.

One that could succeed would end the leadership, or change the voters, at its own time on each side.
"""

from __future__ import annotations

from typing import Final, Literal

from compat.judges.behaviour.known import CONTROLLER_ID, Known
from compat.judges.behaviour.step import Step, uuid_of
from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.metadata.features.supported import supported_ranges
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import add_raft_voter_request as added
from kraft_wire.protocol.messages import begin_quorum_epoch_request as begun
from kraft_wire.protocol.messages import controller_registration_request as registered
from kraft_wire.protocol.messages import describe_quorum_request as described
from kraft_wire.protocol.messages import end_quorum_epoch_request as ended
from kraft_wire.protocol.messages import fetch_request as fetched
from kraft_wire.protocol.messages import fetch_snapshot_request as snapshots
from kraft_wire.protocol.messages import update_raft_voter_request as updated
from kraft_wire.protocol.messages import vote_request as votes
from kraft_wire.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest

ANOTHER: Final = 7
"""The id of a node that isn't there."""
PORT: Final = 9093
FIRST_WITH_STATE: Final = 15
"""Since this version of Fetch a replica's id is in its state."""

Fault = Literal["cluster", "topic", "partition", "old epoch", "new epoch", "none"]
"""What is wrong with a request; "none": nothing, and yet it can't succeed."""


class _Asked(Step, frozen=True, kw_only=True, omit_defaults=True):
    """A request with a fault."""

    fault: Fault

    def cluster(self, known: Known) -> str:
        return "another" if self.fault == "cluster" else known.cluster_id

    def topic(self) -> str:
        return "t0" if self.fault == "topic" else CLUSTER_METADATA

    def partition(self) -> int:
        return int(self.fault == "partition")

    def epoch(self, known: Known) -> int:
        return known.leader_epoch + {"old epoch": -1, "new epoch": 1}.get(self.fault, 0)


class Vote(_Asked, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """A node that isn't there asks for a vote."""

    is_pre_vote: bool = False
    last_epoch: int = 0
    last_offset: int = 0

    def message(self, known: Known) -> Message:
        partition = votes.PartitionData(
            partition_index=self.partition(),
            replica_epoch=self.epoch(known),
            replica_id=ANOTHER,
            replica_directory_id=uuid_of(4, ANOTHER),
            voter_directory_id=known.directory_id,
            last_offset_epoch=self.last_epoch,
            last_offset=self.last_offset,
            pre_vote=self.is_pre_vote,
        )
        return votes.VoteRequest(
            self.cluster(known), CONTROLLER_ID, [votes.TopicData(self.topic(), [partition])]
        )


class BeginEpoch(_Asked, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """A node that isn't there says that it leads."""

    def message(self, known: Known) -> Message:
        partition = begun.PartitionData(self.partition(), known.directory_id, ANOTHER, self.epoch(known))
        return begun.BeginQuorumEpochRequest(
            self.cluster(known),
            CONTROLLER_ID,
            [begun.TopicData(self.topic(), [partition])],
            [begun.LeaderEndpoint("CONTROLLER", "localhost", PORT)],
        )


class EndEpoch(_Asked, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """A node that isn't there says that it doesn't lead any more."""

    def message(self, known: Known) -> Message:
        partition = ended.PartitionData(self.partition(), ANOTHER, self.epoch(known))
        return ended.EndQuorumEpochRequest(self.cluster(known), [ended.TopicData(self.topic(), [partition])])


class Fetch(_Asked, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """An observer fetches, at an offset that isn't there if nothing else is wrong."""

    def message(self, known: Known) -> Message:
        partition = fetched.FetchPartition(
            partition=self.partition(),
            current_leader_epoch=self.epoch(known),
            fetch_offset=-1,
            last_fetched_epoch=0,
        )
        topic_id = uuid_of(3, 1) if self.fault == "topic" else CLUSTER_METADATA_TOPIC_ID
        has_state = self.version is None or self.version >= FIRST_WITH_STATE
        return fetched.FetchRequest(
            cluster_id=self.cluster(known),
            replica_id=-1 if has_state else ANOTHER,
            replica_state=fetched.ReplicaState(ANOTHER if has_state else -1, -1),
            max_wait_ms=0,
            topics=[fetched.FetchTopic(topic_id=topic_id, partitions=[partition])],
        )


class FetchSnapshot(_Asked, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """An observer fetches a snapshot that isn't there."""

    def message(self, known: Known) -> Message:
        partition = snapshots.PartitionSnapshot(
            partition=self.partition(),
            current_leader_epoch=self.epoch(known),
            snapshot_id=snapshots.SnapshotId(7, 1),
        )
        return snapshots.FetchSnapshotRequest(
            self.cluster(known), ANOTHER, topics=[snapshots.TopicSnapshot(self.topic(), [partition])]
        )


class AddVoter(_Asked, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Add the voter that is there, or one without the listener of the controllers."""

    has_listener: bool = True

    def message(self, known: Known) -> Message:
        listener = added.Listener("CONTROLLER" if self.has_listener else "OTHER", "localhost", PORT)
        return added.AddRaftVoterRequest(
            self.cluster(known), 1000, CONTROLLER_ID, uuid_of(4, ANOTHER), [listener]
        )


class RemoveVoter(_Asked, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Remove the only voter, or one that isn't there."""

    is_there: bool = False

    def message(self, known: Known) -> Message:
        directory_id = known.directory_id if self.is_there else uuid_of(4, ANOTHER)
        return RemoveRaftVoterRequest(self.cluster(known), CONTROLLER_ID, directory_id)


class UpdateVoter(_Asked, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """A voter that isn't there has moved."""

    has_listener: bool = True

    def message(self, known: Known) -> Message:
        return updated.UpdateRaftVoterRequest(
            self.cluster(known),
            self.epoch(known),
            ANOTHER,
            uuid_of(4, ANOTHER),
            [updated.Listener("CONTROLLER" if self.has_listener else "OTHER", "localhost", PORT)],
            updated.KRaftVersionFeature(0, 1),
        )


class DescribeQuorum(_Asked, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Describe the quorum."""

    def message(self, known: Known) -> Message:
        partition = described.PartitionData(self.partition())
        return described.DescribeQuorumRequest([described.TopicData(self.topic(), [partition])])


class RegisterController(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """A controller that isn't there registers, as its nth ``incarnation``."""

    controller: int
    incarnation: int = 1
    most: int | None = None

    def message(self, known: Known) -> Message:
        ranges = dict(supported_ranges())
        if self.most is not None:
            ranges["metadata.version"] = (ranges["metadata.version"][0], self.most)
        return registered.ControllerRegistrationRequest(
            controller_id=self.controller,
            incarnation_id=uuid_of(5, self.controller, self.incarnation),
            listeners=[registered.Listener("CONTROLLER", f"controller-{self.controller}", PORT, 0)],
            features=[registered.Feature(name, low, high) for name, (low, high) in ranges.items()],
        )


QuorumStep = (
    Vote
    | BeginEpoch
    | EndEpoch
    | Fetch
    | FetchSnapshot
    | AddVoter
    | RemoveVoter
    | UpdateVoter
    | DescribeQuorum
    | RegisterController
)
