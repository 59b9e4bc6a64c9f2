"""Registrations of brokers and controllers (org.apache.kafka.controller.ClusterControlManager)."""

from __future__ import annotations

import pytest

from kraft_wire.metadata.brokers import BrokerRegistration
from kraft_wire.metadata.controllers import ControllerRegistration
from kraft_wire.metadata.errors import ReplayError
from kraft_wire.metadata.partitions.partition import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from kraft_wire.metadata.registration import Listener
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.fence_broker_record import FenceBrokerRecord
from kraft_wire.protocol.messages.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from kraft_wire.protocol.messages.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraft_wire.protocol.messages.unfence_broker_record import UnfenceBrokerRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.messages.unregister_controller_record import UnregisterControllerRecord
from kraft_wire.protocol.uuid import Uuid
from tests.support.metadata_records import broker_record, uuid


def with_broker(*records: Message) -> MetadataState:
    """Return a state with broker 1, epoch 5, fenced, registered at offset 10; then replay the records."""
    state = MetadataState()
    for offset, record in enumerate((broker_record(1, 5), *records), 10):
        state.replay(record, offset)
    return state


def change(**fields: object) -> BrokerRegistration:
    return with_broker(BrokerRegistrationChangeRecord(1, 5, **fields)).brokers[1]  # type: ignore[arg-type]


def test_a_registration_is_kept_as_it_was_written() -> None:
    state = MetadataState()
    record = RegisterBrokerRecord(
        broker_id=3,
        is_migrating_zk_broker=True,
        incarnation_id=uuid(7),
        broker_epoch=44,
        end_points=[BrokerEndpoint("B", "host-b", 9093, 1), BrokerEndpoint("A", "host-a", 9092, 0)],
        features=[BrokerFeature("kraft.version", 0, 1), BrokerFeature("metadata.version", 7, 30)],
        rack="r1",
        fenced=False,
        in_controlled_shutdown=True,
        log_dirs=(uuid(2), uuid(1)),
        cordoned_log_dirs=(uuid(2),),
    )
    state.replay(record, 45)
    assert state.brokers == {
        3: BrokerRegistration(
            id=3,
            epoch=44,
            incarnation_id=uuid(7),
            listeners=(Listener("B", "host-b", 9093, 1), Listener("A", "host-a", 9092, 0)),
            features={"kraft.version": (0, 1), "metadata.version": (7, 30)},
            rack="r1",
            fenced=False,
            in_controlled_shutdown=True,
            directories=(uuid(1), uuid(2)),
            cordoned_directories=(uuid(2),),
            registration_offset=45,
            is_migrating_zk_broker=True,
        )
    }


def test_directories_are_in_the_order_of_javas_signed_halves() -> None:
    high, low = Uuid(b"\xff" + bytes(15)), Uuid(b"\x7f" + bytes(15))
    right, left = Uuid(bytes(8) + b"\xff" + bytes(7)), Uuid(bytes(8) + b"\x7f" + bytes(7))
    assert change(log_dirs=(low, high, left, right)).directories == (high, right, left, low)


@pytest.mark.parametrize(("fenced", "expected"), [(1, True), (0, True), (-1, False)])
def test_fenced_has_three_values(fenced: int, expected: bool) -> None:
    assert change(fenced=fenced).fenced is expected


def test_a_change_keeps_the_fields_that_it_does_not_name() -> None:
    assert change() == with_broker().brokers[1]
    shutting_down = change(in_controlled_shutdown=1)
    assert shutting_down.in_controlled_shutdown and shutting_down.fenced
    assert shutting_down.directories == (uuid(101),) and shutting_down.cordoned_directories is None


def test_no_cordoned_directories_differs_from_unknown_ones() -> None:
    assert change(cordoned_log_dirs=()).cordoned_directories == ()
    state = with_broker(
        BrokerRegistrationChangeRecord(1, 5, 0, 0, (), (uuid(101),)), BrokerRegistrationChangeRecord(1, 5, -1)
    )
    assert state.brokers[1].cordoned_directories == (uuid(101),)
    assert state.brokers[1].is_cordoned
    assert not change().is_cordoned and not change(cordoned_log_dirs=()).is_cordoned


def test_a_broker_is_cordoned_if_all_its_directories_are() -> None:
    both, one = (uuid(101), uuid(102)), (uuid(101),)
    assert not change(log_dirs=both, cordoned_log_dirs=one).is_cordoned
    assert change(log_dirs=both, cordoned_log_dirs=(*both, uuid(7))).is_cordoned
    state = with_broker(
        BrokerRegistrationChangeRecord(1, 5, log_dirs=both, cordoned_log_dirs=one),
        BrokerRegistrationChangeRecord(1, 5, log_dirs=one),
    )
    assert state.brokers[1].is_cordoned
    registered = broker_record(2, 7)
    registered.log_dirs, registered.cordoned_log_dirs = both, both
    state.replay(registered, 13)
    assert state.brokers[2].is_cordoned


def test_the_legacy_records_fence_and_unfence() -> None:
    assert not with_broker(UnfenceBrokerRecord(1, 5)).brokers[1].fenced
    assert with_broker(UnfenceBrokerRecord(1, 5), FenceBrokerRecord(1, 5)).brokers[1].fenced


def test_a_new_registration_takes_the_place_of_the_old_one() -> None:
    state = with_broker(broker_record(1, 6), UnregisterBrokerRecord(1, 6))
    assert state.brokers == {}


@pytest.mark.parametrize(
    ("directory", "online"),
    [
        (DIRECTORY_MIGRATING, True),
        (DIRECTORY_UNASSIGNED, True),
        (DIRECTORY_LOST, False),
        (uuid(101), True),
        (uuid(5), False),
    ],
)
def test_which_directories_are_online(directory: Uuid, online: bool) -> None:
    assert with_broker().brokers[1].has_online_directory(directory) is online


def test_a_broker_from_before_directories_has_them_all_online() -> None:
    record = broker_record(2)
    record.log_dirs = ()
    broker = with_broker(record).brokers[2]
    assert broker.has_online_directory(uuid(5)) and not broker.is_cordoned


def test_controllers_register_and_unregister() -> None:
    state = MetadataState()
    record = RegisterControllerRecord(
        controller_id=9,
        incarnation_id=uuid(1),
        zk_migration_ready=False,
        end_points=[ControllerEndpoint("CONTROLLER", "c", 9093, 2)],
        features=[ControllerFeature("metadata.version", 7, 33)],
    )
    state.replay(record, 0)
    listener = Listener("CONTROLLER", "c", 9093, 2)
    assert state.controllers == {
        9: ControllerRegistration(9, uuid(1), False, (listener,), {"metadata.version": (7, 33)})
    }
    state.replay(UnregisterControllerRecord(9), 1)
    assert state.controllers == {}


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (UnregisterBrokerRecord(2, 5), "broker 2 is not registered"),
        (UnregisterBrokerRecord(1, 4), "registered with epoch 5, not 4"),
        (FenceBrokerRecord(1, 6), "registered with epoch 5, not 6"),
        (UnfenceBrokerRecord(2, 5), "broker 2 is not registered"),
        (BrokerRegistrationChangeRecord(2, 5), "broker 2 is not registered"),
        (BrokerRegistrationChangeRecord(1, 4), "registered with epoch 5, not 4"),
        (BrokerRegistrationChangeRecord(1, 5, 2), "fenced is 2"),
        (BrokerRegistrationChangeRecord(1, 5, 0, -1), "in-controlled-shutdown is -1"),
        (
            RegisterBrokerRecord(4, end_points=[BrokerEndpoint("", "h", 1, 0)]),
            "a listener at h:1 has no name",
        ),
        (RegisterBrokerRecord(4, end_points=[BrokerEndpoint("L", "h", 1, 4)]), "unknown security protocol 4"),
        (RegisterControllerRecord(4, end_points=[ControllerEndpoint("L", "h", 1, -1)]), "protocol -1"),
        (UnregisterControllerRecord(4), "controller 4 is not registered"),
    ],
)
def test_a_record_that_contradicts_the_registrations_is_refused(record: Message, what: str) -> None:
    with pytest.raises(ReplayError, match=what):
        with_broker().replay(record, 11)
