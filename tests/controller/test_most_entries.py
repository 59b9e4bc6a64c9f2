"""The most entries and bytes of a request: what brokers send fits, and no request makes others wait."""

from __future__ import annotations

import pytest

from kraft_wire.controller.apis import CONTROLLER_APIS, EXPORTER_APIS
from kraft_wire.controller.decision.api_table import (
    LARGE_REQUEST_BYTES,
    SMALL_REQUEST_BYTES,
    SMALL_REQUEST_ENTRIES,
    Api,
)
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kraft_wire.protocol.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
)
from kraft_wire.protocol.messages.assign_replicas_to_dirs_request import PartitionData as AssignedPartition
from kraft_wire.protocol.messages.assign_replicas_to_dirs_request import TopicData as AssignedTopic
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_registration_request import BrokerRegistrationRequest, Listener
from kraft_wire.protocol.messages.fetch_request import FetchRequest, ForgottenTopic
from kraft_wire.protocol.messages.update_raft_voter_request import Listener as VoterListener
from kraft_wire.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.wire.entry_count import MAX_REQUEST_ENTRIES, TooManyEntries, check_entry_count


def check(request: Message) -> None:
    """Raise TooManyEntries as a connection would."""
    api = CONTROLLER_APIS[request.API_KEY]
    most = api.max_entries(MAX_REQUEST_ENTRIES)
    check_entry_count(type(request), request.encode(api.max_version), api.max_version, 0, most)


def isr_changes(partitions: int) -> AlterPartitionRequest:
    partition = PartitionData(new_isr_with_epochs=[BrokerState(broker, 5) for broker in (1, 2, 3)])
    return AlterPartitionRequest(topics=[TopicData(partitions=[partition] * (partitions // 100))] * 100)


def test_a_broker_may_report_a_change_of_all_its_partitions() -> None:
    check(isr_changes(24_000))
    with pytest.raises(TooManyEntries):
        check(isr_changes(26_000))


def test_a_broker_may_assign_as_many_replicas_as_it_does_at_once() -> None:
    """Kafka's AssignReplicasToDirsRequest.MAX_ASSIGNMENTS_PER_REQUEST, all of different directories."""
    topics = [AssignedTopic(partitions=[AssignedPartition()])]
    check(AssignReplicasToDirsRequest(directories=[DirectoryData(topics=topics)] * 2_250))


@pytest.mark.parametrize(
    "request_",
    [
        BrokerHeartbeatRequest(offline_log_dirs=(Uuid.ONE,) * (MAX_REQUEST_ENTRIES + 1)),
        FetchRequest(forgotten_topics_data=[ForgottenTopic(partitions=(0,) * MAX_REQUEST_ENTRIES)]),
    ],
    ids=lambda request: request.NAME,
)
def test_other_requests_of_brokers_have_the_limit_of_clients(request_: Message) -> None:
    with pytest.raises(TooManyEntries):
        check(request_)


@pytest.mark.parametrize("api", list(CONTROLLER_APIS), ids=lambda api: api.name)
def test_a_low_limit_is_for_clients_only(api: Api) -> None:
    """Otherwise no leader could be elected, and no broker be registered."""
    is_clients = not api.is_from_cluster or api.name == "Fetch"
    most = SMALL_REQUEST_ENTRIES if api.is_small else MAX_REQUEST_ENTRIES * api.entries_factor
    assert api.max_entries(100) == (100 if is_clients else most)
    assert api.max_entries(2 * MAX_REQUEST_ENTRIES) == (most if api.is_small else 2 * most)


GROW_WITH_THE_CLUSTER = {
    "AlterClientQuotas",
    "AlterConfigs",
    "AlterPartition",
    "AlterPartitionReassignments",
    "AlterUserScramCredentials",
    "AssignReplicasToDirs",
    "CreatePartitions",
    "CreateTopics",
    "DeleteTopics",
    "DescribeConfigs",
    "DescribeUserScramCredentials",
    "ElectLeaders",
    "Envelope",
    "Fetch",
    "IncrementalAlterConfigs",
    "ListOffsets",
    "ListPartitionReassignments",
    "Metadata",
    "Produce",
}
"""The requests whose entries are limited, and not only their bytes. Add a new API here only if it has such
entries."""


@pytest.mark.parametrize("api", list(EXPORTER_APIS), ids=lambda api: api.name)
def test_a_request_that_does_not_grow_with_the_cluster_is_small(api: Api) -> None:
    """Its listeners and features, for example, would become one record, in one step."""
    is_large = api.name in GROW_WITH_THE_CLUSTER
    assert api.max_bytes == (LARGE_REQUEST_BYTES if is_large else SMALL_REQUEST_BYTES)


def test_a_broker_with_a_thousand_directories_can_register() -> None:
    api = CONTROLLER_APIS[BrokerRegistrationRequest.API_KEY]
    request = BrokerRegistrationRequest(
        log_dirs=(Uuid.ONE,) * 1_000, listeners=[Listener(host="b" * 250)] * 1_000
    )
    assert len(request.encode(api.max_version)) < api.max_bytes
    check(request)


def test_a_voter_with_thousands_of_listeners_is_not_decoded() -> None:
    """All controllers would wait for tens of milliseconds, each time."""
    voter = UpdateRaftVoterRequest(listeners=[VoterListener(f"L{n}", "h", 1) for n in range(3_001)])
    with pytest.raises(TooManyEntries, match="3000 are allowed"):
        check(voter)


def test_votes_and_registrations_are_of_the_cluster() -> None:
    of_cluster = {api.name for api in CONTROLLER_APIS if api.is_from_cluster}
    assert of_cluster >= {"Vote", "Fetch", "BrokerRegistration", "ControllerRegistration", "AlterPartition"}
