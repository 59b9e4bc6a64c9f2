"""BrokerRegistration: the scenarios of Kafka's ClusterControlManagerTest."""

from __future__ import annotations

import pytest

from kraft_wire.controller.brokers import broker_registration
from kraft_wire.controller.brokers.broker_registration import MOST_DIRECTORIES
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages import broker_registration_request as requests
from kraft_wire.protocol.messages.broker_registration_request import BrokerRegistrationRequest
from kraft_wire.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.uuid import Uuid
from tests.controller.controller_harness import SESSION_TIMEOUT_MS, Harness, directory, failure, uuid

ELR = "eligible.leader.replicas.version"


def refusal(harness: Harness, request: BrokerRegistrationRequest, version: int = 4) -> ErrorCode:
    """Return the code with which a registration is refused. Nothing may have changed."""
    before = dict(harness.metadata.brokers)
    with pytest.raises(ApiError) as refused:
        harness.decide(broker_registration, request, version)
    assert harness.metadata.brokers == before
    response = failure(
        BrokerRegistrationResponse, request, version, refused.value.code, refused.value.message
    )
    assert response.error_code == refused.value.code
    assert response.broker_epoch == -1
    return refused.value.code


def test_a_new_broker_is_fenced_and_its_epoch_is_the_next_offset() -> None:
    harness = Harness()
    next_offset = harness.state.next_offset
    assert harness.register(1) == next_offset
    broker = harness.metadata.brokers[1]
    assert (broker.epoch, broker.registration_offset) == (next_offset, next_offset)
    assert broker.fenced
    assert not broker.in_controlled_shutdown
    assert broker.directories == (directory(1),)
    assert broker.cordoned_directories is None
    assert [(x.name, x.host, x.port) for x in broker.listeners] == [("PLAINTEXT", "broker1", 9092)]
    assert broker.features["metadata.version"] == (7, 33)


@pytest.mark.parametrize(("level", "version"), [(7, 1), (8, 2), (16, 2), (17, 3), (29, 3), (30, 4), (33, 4)])
def test_the_record_follows_the_finalized_metadata_version(level: int, version: int) -> None:
    harness = Harness(level)
    result = harness.decide(broker_registration, harness.registration_request(1), 4)
    (record, record_version) = result.records[-1]
    assert isinstance(record, RegisterBrokerRecord)
    assert record_version == version
    assert record.log_dirs == ((directory(1),) if level >= 17 else ())
    harness.apply(result)


@pytest.mark.parametrize("broker_id", [-1, -5, -(2**31)])
def test_a_negative_id_is_refused(broker_id: int) -> None:
    """-1 stands for no broker in partitions, and replay refuses others."""
    request = Harness().registration_request(1)
    request.broker_id = broker_id
    assert refusal(Harness(), request) is ErrorCode.INVALID_REGISTRATION


def test_very_many_directories_are_refused() -> None:
    request = Harness().registration_request(1)
    request.log_dirs = tuple(uuid(number) for number in range(1000, 1001 + MOST_DIRECTORIES))
    assert refusal(Harness(), request) is ErrorCode.INVALID_REGISTRATION


def test_another_cluster_is_refused() -> None:
    harness = Harness()
    request = harness.registration_request(1)
    request.cluster_id = "another"
    assert refusal(harness, request) is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_broker_in_zookeeper_mode_is_refused() -> None:
    harness = Harness()
    request = harness.registration_request(1)
    request.is_migrating_zk_broker = True
    assert refusal(harness, request) is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_second_process_is_refused_while_the_first_is_alive() -> None:
    harness = Harness()
    harness.add_brokers(1)
    harness.now_ms += SESSION_TIMEOUT_MS
    assert refusal(harness, harness.registration_request(1, 2)) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    harness.now_ms += 1
    assert harness.register(1, 2) > 0


def test_a_second_process_is_accepted_where_the_first_never_called() -> None:
    """A session begins with the first heartbeat, not with the registration."""
    harness = Harness()
    first = harness.register(1)
    assert harness.register(1, 2) > first


def test_a_restarted_broker_is_accepted_at_once_after_a_granted_shutdown() -> None:
    """In Java the broker has to wait for the rest of the session timeout (KAFKA-19047)."""
    harness = Harness()
    harness.add_brokers(1)
    assert harness.heartbeat(1, want_shut_down=True).should_shut_down
    epoch = harness.metadata.brokers[1].epoch
    assert harness.register(1, 2) > epoch


def test_the_same_process_amends_its_registration() -> None:
    harness = Harness()
    harness.add_brokers(1)
    epoch = harness.metadata.brokers[1].epoch
    assert harness.register(1, 1, log_dirs=[directory(1), directory(1, 1)]) == epoch
    broker = harness.metadata.brokers[1]
    assert not broker.fenced
    assert set(broker.directories) == {directory(1), directory(1, 1)}
    assert broker.registration_offset == harness.state.next_offset - 1


def test_amending_keeps_a_controlled_shutdown() -> None:
    harness = Harness()
    harness.add_brokers(0, 1)
    harness.add_topic("t", [0, 1])
    assert not harness.heartbeat(0, want_shut_down=True).should_shut_down
    harness.register(0)
    assert harness.metadata.brokers[0].in_controlled_shutdown


@pytest.mark.parametrize(
    "directories",
    [
        pytest.param([], id="none"),
        pytest.param([Uuid.ZERO], id="reserved"),
        pytest.param([uuid(99)], id="last reserved"),
        pytest.param([directory(1), directory(1)], id="twice"),
        pytest.param([directory(2)], id="of another broker"),
    ],
)
def test_impossible_directories_are_refused(directories: list[Uuid]) -> None:
    harness = Harness()
    harness.register(2)
    request = harness.registration_request(1, log_dirs=directories)
    assert refusal(harness, request) is ErrorCode.INVALID_REGISTRATION


def test_directories_do_not_matter_before_they_have_ids() -> None:
    harness = Harness(16)
    harness.register(1, log_dirs=[])
    assert harness.metadata.brokers[1].directories == ()


def test_a_finalized_feature_out_of_range_is_refused() -> None:
    harness = Harness(33)
    features = {"metadata.version": (7, 32), "kraft.version": (0, 1)}
    assert (
        refusal(harness, harness.registration_request(1, features=features)) is ErrorCode.UNSUPPORTED_VERSION
    )


def test_a_finalized_feature_that_the_broker_does_not_name_is_refused() -> None:
    harness = Harness(33, {"group.version": 1})
    features = {"metadata.version": (7, 33), "kraft.version": (0, 1)}
    assert (
        refusal(harness, harness.registration_request(1, features=features)) is ErrorCode.UNSUPPORTED_VERSION
    )


def test_kraft_version_counts_as_finalized() -> None:
    features = {"metadata.version": (7, 21)}
    dynamic = Harness(20, kraft_version=1)
    assert (
        refusal(dynamic, dynamic.registration_request(1, features=features)) is ErrorCode.UNSUPPORTED_VERSION
    )
    static = Harness(20, kraft_version=0)
    static.replay(
        static.decide(broker_registration, static.registration_request(1, features=features), 4).records
    )
    assert static.metadata.brokers[1].features == features


def test_a_feature_at_level_0_is_no_obstacle() -> None:
    harness = Harness(20, kraft_version=0)
    features = {"metadata.version": (7, 33), "unheard.of": (0, 9)}
    request = harness.registration_request(1, features=features)
    harness.apply(harness.decide(broker_registration, request, 4))
    assert harness.metadata.brokers[1].features == features


def test_a_feature_whose_range_does_not_begin_at_0_is_refused_while_it_is_at_0() -> None:
    harness = Harness(20, kraft_version=0)
    features = {"metadata.version": (7, 33), "unheard.of": (1, 9)}
    assert (
        refusal(harness, harness.registration_request(1, features=features)) is ErrorCode.UNSUPPORTED_VERSION
    )


def test_a_broker_without_metadata_version_is_refused() -> None:
    harness = Harness(20, kraft_version=0)
    request = harness.registration_request(1, features={"kraft.version": (0, 1)})
    assert refusal(harness, request) is ErrorCode.INVALID_REGISTRATION


@pytest.mark.parametrize(
    "listeners",
    [
        pytest.param([requests.Listener("", "host", 9092, 0)], id="no name"),
        pytest.param([requests.Listener("A", " ", 9092, 0)], id="no host"),
        pytest.param([requests.Listener("A", "host", 0, 0)], id="no port"),
        pytest.param([requests.Listener("A", "host", 9092, 4)], id="unknown protocol"),
        pytest.param([requests.Listener("A", "a", 1, 0), requests.Listener("A", "b", 2, 0)], id="twice"),
    ],
)
def test_impossible_listeners_are_refused(listeners: list[requests.Listener]) -> None:
    """Records with such listeners could not be replayed."""
    harness = Harness()
    request = harness.registration_request(1)
    request.listeners = listeners
    assert refusal(harness, request) is ErrorCode.INVALID_REGISTRATION


def test_a_new_process_takes_its_predecessors_replicas_out_of_the_isr_first() -> None:
    harness = Harness()
    harness.add_brokers(0, 1)
    topic = harness.add_topic("t", [0, 1], [1, 0])
    harness.now_ms += SESSION_TIMEOUT_MS + 1
    harness.heartbeat(1)
    next_offset = harness.state.next_offset
    result = harness.decide(broker_registration, harness.registration_request(0, 2), 4)
    kinds = [type(record) for record, _ in result.records]
    assert kinds == [PartitionChangeRecord, PartitionChangeRecord, RegisterBrokerRecord]
    assert not result.atomic
    harness.apply(result)
    for index in (0, 1):
        partition = harness.metadata.partitions.get(topic, index)
        assert partition is not None
        assert (partition.isr, partition.leader) == ((1,), 1)
    broker = harness.metadata.brokers[0]
    assert broker.epoch == next_offset
    assert broker.registration_offset == next_offset + 2


def restart_with_elr(previous_epoch_is_known: bool, version: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Restart the only replica of a partition. Returns the ISR and the ELR afterwards."""
    harness = Harness(33, {ELR: 1})
    harness.add_brokers(0, 1)
    topic = harness.add_topic("t", [0, 1], isr=[0])
    epoch = harness.metadata.brokers[0].epoch
    harness.now_ms += SESSION_TIMEOUT_MS + 1
    request = harness.registration_request(0, 2, previous_epoch=epoch if previous_epoch_is_known else -1)
    result = harness.decide(broker_registration, request, 4)
    if version < 4:
        result = broker_registration.handle(harness.state, request, version, harness.context())
    harness.apply(result)
    partition = harness.metadata.partitions.get(topic, 0)
    assert partition is not None
    return partition.isr, partition.elr


def test_after_a_clean_stop_a_broker_stays_eligible() -> None:
    assert restart_with_elr(previous_epoch_is_known=True, version=4) == ((), (0,))


def test_after_an_unclean_stop_a_broker_is_not_eligible() -> None:
    """KIP-966: the broker may have lost records that it acknowledged."""
    assert restart_with_elr(previous_epoch_is_known=False, version=4) == ((), ())


def test_requests_without_a_previous_epoch_count_as_unclean() -> None:
    assert restart_with_elr(previous_epoch_is_known=True, version=2) == ((), ())
