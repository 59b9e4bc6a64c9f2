"""Run handlers on a controller's state, without raft or network, and replay their records at once.

Every record and response goes through its encoding, so that a value that the wire can't carry fails the test.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import TypeVar

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.controller.brokers import broker_heartbeat, broker_registration
from kraft_wire.controller.decision.context import Authorizer, Context, ControllerState, Result, Round
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.sessions import BrokerSessions
from kraft_wire.controller.settings import Settings
from kraft_wire.metadata.features.supported import bootstrap_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import broker_registration_request as registration
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record, encode_metadata_record
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.security.principal import Principal
from tests.controller.scripted_entropy import SeededEntropy

CLUSTER_ID = "J8qXRwI-Qyi2G0guFTiuYw"
NODE_ID = 3000
SESSION_TIMEOUT_MS = 9000
LATEST = 33

R = TypeVar("R", bound=Message)


def uuid(number: int) -> Uuid:
    """Return a recognizable id."""
    return Uuid(bytes(8) + number.to_bytes(8, "big"))


def directory(broker_id: int, number: int = 0) -> Uuid:
    """Return the id of a log directory of a broker."""
    return uuid(1_000_000 * (broker_id + 1) + number)


def failure(response_class: type[R], request: Message, version: int, code: ErrorCode, message: str) -> R:
    """Return the response, as a client would read it, that says that all of a request failed."""
    response = CONTROLLER_APIS[request.API_KEY].error_response(request, version, code, message)
    return response_class.decode(response.encode(version), version)


class Harness:
    """One active controller and its clock."""

    def __init__(
        self,
        level: int = LATEST,
        features: Mapping[str, int] | None = None,
        static_configs: Mapping[str, str] | None = None,
        kraft_version: int = 1,
    ) -> None:
        self.now_ms = 1000
        self.authorizer: Authorizer | None = None
        self.is_forwarded = False
        self.entropy = SeededEntropy()
        self.state = ControllerState(
            metadata=MetadataState(),
            sessions=BrokerSessions(SESSION_TIMEOUT_MS),
            settings=Settings(node_id=NODE_ID, static_configs=static_configs or {}),
            cluster_id=CLUSTER_ID,
            node_id=NODE_ID,
            leader_id=NODE_ID,
            epoch=1,
            kraft_version=kraft_version,
            voter_ids=(NODE_ID,),
        )
        if level:
            self.replay(bootstrap_records(level, features))
        self.state.sessions.activate(self.state.metadata.brokers.values(), self.now_ms)

    @property
    def metadata(self) -> MetadataState:
        return self.state.metadata

    def context(self, listener: str = "CONTROLLER") -> Context:
        return Context(
            monotonic_ms=self.now_ms,
            wall_ms=1_700_000_000_000 + self.now_ms,
            entropy=self.entropy,
            apis=CONTROLLER_APIS,
            principal=Principal(),
            listener=listener,
            is_forwarded=self.is_forwarded,
            authorizer=self.authorizer,
        )

    def replay(self, records: Iterable[tuple[Message, int]]) -> None:
        """Append records to the log, through their encoding."""
        for record, version in records:
            decoded, decoded_version = decode_metadata_record(encode_metadata_record(record, version))
            assert decoded_version == version
            self.metadata.replay(decoded, self.state.next_offset)
            self.state.next_offset += 1

    def apply(self, decision: Result | Round) -> None:
        """Replay the records and apply the session changes, as the node does."""
        if not (isinstance(decision, Result) and decision.validate_only):
            self.replay(decision.records)
        self.state.sessions.apply(decision.session_changes)

    def decide(self, module: ModuleType, request: Message, version: int) -> Result:
        """Return a handler's decision on a request that was encoded and decoded. Nothing is applied."""
        decoded = type(request).decode(request.encode(version), version)
        result = module.handle(self.state, decoded, version, self.context())
        assert isinstance(result, Result)
        return result

    def run(self, module: ModuleType, request: Message, version: int, response_class: type[R]) -> R:
        """Decide, replay the records, apply the session changes. Returns the response as clients read it."""
        result = self.decide(module, request, version)
        self.apply(result)
        assert result.response is not None, "a work has the response"
        return response_class.decode(result.response.encode(version), version)

    def registration_request(
        self,
        broker_id: int,
        incarnation: int = 1,
        *,
        log_dirs: Sequence[Uuid] | None = None,
        features: Mapping[str, tuple[int, int]] | None = None,
        previous_epoch: int = -1,
        rack: str | None = None,
    ) -> registration.BrokerRegistrationRequest:
        supported = {
            "metadata.version": (7, LATEST),
            "kraft.version": (0, 1),
            "transaction.version": (0, 2),
            "group.version": (0, 1),
            "eligible.leader.replicas.version": (0, 1),
            "share.version": (0, 2),
            "streams.version": (0, 1),
        }
        ranges = supported if features is None else features
        return registration.BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=uuid(1000 * (broker_id + 1) + incarnation),
            listeners=[registration.Listener("PLAINTEXT", f"broker{broker_id}", 9092, 0)],
            features=[registration.Feature(name, low, high) for name, (low, high) in ranges.items()],
            rack=rack,
            log_dirs=(directory(broker_id),) if log_dirs is None else tuple(log_dirs),
            previous_broker_epoch=previous_epoch,
        )

    def register(
        self, broker_id: int, incarnation: int = 1, *, log_dirs: Sequence[Uuid] | None = None
    ) -> int:
        """Register a broker. Returns its epoch."""
        request = self.registration_request(broker_id, incarnation, log_dirs=log_dirs)
        return self.run(broker_registration, request, 4, BrokerRegistrationResponse).broker_epoch

    def heartbeat_request(
        self,
        broker_id: int,
        *,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offset: int | None = None,
        offline: Sequence[Uuid] = (),
        cordoned: Sequence[Uuid] | None = None,
    ) -> BrokerHeartbeatRequest:
        """Return a heartbeat of the registered broker. Without ``offset`` it has applied the whole log."""
        return BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self.metadata.brokers[broker_id].epoch,
            current_metadata_offset=self.state.next_offset - 1 if offset is None else offset,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            offline_log_dirs=tuple(offline),
            cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
        )

    def heartbeat(
        self,
        broker_id: int,
        *,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offset: int | None = None,
        offline: Sequence[Uuid] = (),
        cordoned: Sequence[Uuid] | None = None,
    ) -> BrokerHeartbeatResponse:
        request = self.heartbeat_request(
            broker_id,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            offset=offset,
            offline=offline,
            cordoned=cordoned,
        )
        return self.run(broker_heartbeat, request, 2, BrokerHeartbeatResponse)

    def add_brokers(self, *broker_ids: int) -> None:
        """Register brokers and unfence them."""
        for broker_id in broker_ids:
            self.register(broker_id)
            assert not self.heartbeat(broker_id).is_fenced

    def add_topic(self, name: str, *assignments: Sequence[int], isr: Sequence[int] | None = None) -> Uuid:
        """Add a topic with one partition for each assignment, led by the first broker of the ISR."""
        topic_id = self.entropy.uuid()
        records: list[VersionedRecord] = [(TopicRecord(name=name, topic_id=topic_id), 0)]
        for index, replicas in enumerate(assignments):
            members = tuple(replicas if isr is None else isr)
            records.append(
                (
                    PartitionRecord(
                        partition_id=index,
                        topic_id=topic_id,
                        replicas=tuple(replicas),
                        isr=members,
                        leader=members[0],
                        directories=tuple(directory(replica) for replica in replicas),
                    ),
                    1,
                )
            )
        self.replay(records)
        return topic_id
