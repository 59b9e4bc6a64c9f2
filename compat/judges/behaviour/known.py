"""What a controller has told so far: its metadata, as its log says it, and the tokens that it made.

A step names a broker's epoch or a topic's id by what it belongs to. Each side fills in its own.
"""

from __future__ import annotations

import base64
import hmac
import time

from kraft_wire.log.batch import Batch
from kraft_wire.log.control import decode_control_batch
from kraft_wire.metadata.partitions.partition import Partition
from kraft_wire.metadata.state import MetadataState
from kraft_wire.metadata.tokens import DelegationToken
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.delegation_token_record import DelegationTokenRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.uuid import Uuid

CONTROLLER_ID = 100
TOKEN_SECRET = "a secret"
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
        self.silent: set[int] = set()
        """The brokers that were told to shut down, and haven't sent another heartbeat."""
        self.has_leftovers = False
        """Whether a topic was deleted that had an empty ISR, or whose ELR had been cleared."""
        self.keeps_removed = False
        """Whether an ELR has a broker that isn't a replica any more."""
        self.names: dict[str, str] = {cluster_id: "the cluster"}
        """The names of ids, in their text form."""
        self.epoch_names: dict[int, str] = {}
        self._topic_ids: dict[str, list[Uuid]] = {}
        self._epochs: dict[int, list[int]] = {}
        self._cleared: set[Uuid] = set()
        self._token_ids: list[str] = []

    def replay(self, record: Message, offset: int) -> None:
        """Take a record of the log."""
        self.next_offset = offset + 1
        self._note(record)
        self.state.replay(record, offset)
        if isinstance(record, PartitionChangeRecord):
            found = self.state.partitions.get(record.topic_id, record.partition_id)
            self.keeps_removed |= found is not None and not set(found.elr) <= set(found.replicas)

    def _note(self, record: Message) -> None:
        """Keep what the metadata doesn't have after the record."""
        match record:
            case RegisterBrokerRecord():
                self._name_epoch(record.broker_id, record.broker_epoch)
            case UnregisterBrokerRecord():
                self.silent.discard(record.broker_id)
            case TopicRecord():
                ids = self._topic_ids.setdefault(record.name, [])
                ids.append(record.topic_id)
                self.names[str(record.topic_id)] = f"id {len(ids) - 1} of topic {record.name}"
            case DelegationTokenRecord() if record.token_id not in self._token_ids:
                self._name_token(record.token_id)
            case ClearElrRecord():
                names = [record.topic_name] if record.topic_name else list(self._topic_ids)
                self._cleared |= {
                    topic_id for topic_id in map(self.topic_id, names) if self._has_elr(topic_id)
                }
            case RemoveTopicRecord():
                has_empty_isr = any(not each.isr for each in self.state.partitions.of_topic(record.topic_id))
                self.has_leftovers |= has_empty_isr or record.topic_id in self._cleared

    def _name_epoch(self, broker_id: int, epoch: int) -> None:
        epochs = self._epochs.setdefault(broker_id, [])
        if epoch not in epochs:
            epochs.append(epoch)
        self.epoch_names[epoch] = f"epoch {epochs.index(epoch)} of broker {broker_id}"

    def _name_token(self, token_id: str) -> None:
        """Both sides know the order in which tokens were made. An HMAC has a name only if it is right."""
        number = len(self._token_ids)
        self._token_ids.append(token_id)
        self.names[token_id] = f"the id of token {number}"
        right = hmac.digest(TOKEN_SECRET.encode(), token_id.encode(), "sha512")
        self.names[base64.b64encode(right).decode()] = f"the HMAC of token {number}"

    def _has_elr(self, topic_id: Uuid) -> bool:
        return any(each.elr for each in self.state.partitions.of_topic(topic_id))

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

    def take_heartbeat(self, broker_id: int, should_stop: bool) -> None:
        """Take the answer to a broker's heartbeat."""
        if should_stop:
            self.silent.add(broker_id)
        else:
            self.silent.discard(broker_id)

    def fenced(self) -> frozenset[int]:
        """Return the brokers that are fenced."""
        return frozenset(broker.id for broker in self.state.brokers.values() if broker.fenced)

    def stopping(self) -> frozenset[int]:
        """Return the brokers that are in their controlled shutdown."""
        brokers = self.state.brokers.values()
        return frozenset(broker.id for broker in brokers if broker.in_controlled_shutdown)

    def topic_id(self, name: str) -> Uuid:
        """Return the id that a topic has, or had last."""
        return self._topic_ids.get(name, [UNKNOWN_ID])[-1]

    def partition(self, topic: str, index: int) -> Partition | None:
        """Return a partition; None if there is none."""
        return self.state.partitions.get(self.topic_id(topic), index)

    def has_several_factors(self, topic: str) -> bool:
        """Whether partitions of a topic have different numbers of replicas, as while one is moved."""
        partitions = self.state.partitions.of_topic(self.topic_id(topic))
        return len({len(each.replicas) for each in partitions}) > 1

    def refusals_of_strangers(self) -> list[int]:
        """Return, for each token that was made, why nobody but its owner and renewers can renew it."""
        tokens = map(self.state.tokens.by_id.get, self._token_ids)
        return [int(_refusal_of_strangers(token)) for token in tokens]

    def hmac(self, number: int) -> bytes:
        """Return the secret of a token that was made; of none, if there are fewer."""
        return self.hmacs[number] if number < len(self.hmacs) else b"no token"


def _refusal_of_strangers(token: DelegationToken | None) -> ErrorCode:
    if token is None:
        return ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    if token.expiration_timestamp_ms < time.time() * 1000:
        return ErrorCode.DELEGATION_TOKEN_EXPIRED
    return ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
