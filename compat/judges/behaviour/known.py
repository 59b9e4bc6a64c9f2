"""What a controller has told so far: its metadata, as its log says it, and the tokens that it made.

A step names a broker's epoch or a topic's id by what it belongs to. Each side fills in its own.
"""

from __future__ import annotations

from kraft_wire.log.batch import Batch
from kraft_wire.log.control import decode_control_batch
from kraft_wire.metadata.partitions.partition import Partition
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.uuid import Uuid

CONTROLLER_ID = 100
NO_EPOCH = -1
UNKNOWN_ID = Uuid(b"judge: no topic.")


class Known:
    """The metadata of one side, and the names of its ids and epochs, which differ between the sides."""

    def __init__(self, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self.state = MetadataState()
        self.next_offset = 0
        self.leader_epoch = 0
        self.directory_id = Uuid.ZERO
        """The log directory of the controller, which is the only voter."""
        self.hmacs: list[bytes] = []
        self.stopped: set[int] = set()
        """The brokers that were told to shut down."""
        self.names: dict[str, str] = {cluster_id: "the cluster"}
        """The names of ids, in their text form."""
        self.epoch_names: dict[int, str] = {}
        self._topic_ids: dict[str, list[Uuid]] = {}
        self._epochs: dict[int, list[int]] = {}

    def replay(self, record: Message, offset: int) -> None:
        """Take a record of the log."""
        self.next_offset = offset + 1
        if isinstance(record, RegisterBrokerRecord):
            epochs = self._epochs.setdefault(record.broker_id, [])
            if record.broker_epoch not in epochs:
                epochs.append(record.broker_epoch)
            number = epochs.index(record.broker_epoch)
            self.epoch_names[record.broker_epoch] = f"epoch {number} of broker {record.broker_id}"
        elif isinstance(record, TopicRecord):
            ids = self._topic_ids.setdefault(record.name, [])
            ids.append(record.topic_id)
            self.names[str(record.topic_id)] = f"id {len(ids) - 1} of topic {record.name}"
        self.state.replay(record, offset)

    def take_control_batch(self, batch: Batch) -> None:
        """Take a control batch of the log."""
        self.next_offset, self.leader_epoch = batch.header.next_offset, batch.header.leader_epoch
        for message in decode_control_batch(batch):
            if isinstance(message, VotersRecord):
                (voter,) = message.voters
                self.directory_id = voter.voter_directory_id
                self.names[str(self.directory_id)] = "the controller's directory"

    def broker_epoch(self, broker_id: int, back: int = 0) -> int:
        """Return the epoch of a broker's last registration, or of an earlier one; NO_EPOCH without it."""
        epochs = self._epochs.get(broker_id, [])
        return epochs[-1 - back] if back < len(epochs) else NO_EPOCH

    def topic_id(self, name: str) -> Uuid:
        """Return the id that a topic has, or had last."""
        return self._topic_ids.get(name, [UNKNOWN_ID])[-1]

    def partition(self, topic: str, index: int) -> Partition | None:
        """Return a partition; None if there is none."""
        return self.state.partitions.get(self.topic_id(topic), index)

    def hmac(self, number: int) -> bytes:
        """Return the secret of a token that was made; of none, if there are fewer."""
        return self.hmacs[number] if number < len(self.hmacs) else b"no token"
