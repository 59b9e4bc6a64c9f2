"""IncrementalAlterConfigs: the scenarios of ConfigurationControlManagerTest."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kraft_wire.configs.java_text import split
from kraft_wire.controller.config_apis import incremental_alter_configs
from kraft_wire.controller.config_apis.operation import Operation
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from tests.controller.controller_harness import NODE_ID, Harness, failure
from tests.controller.decision.test_item_work import rest_of

TOPIC, BROKER, LOGGER = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.BROKER_LOGGER
METRICS, GROUP = ResourceType.CLIENT_METRICS, ResourceType.GROUP
SET, DELETE, APPEND, SUBTRACT = Operation
Change = tuple[str, int, str | None]


@pytest.fixture
def harness() -> Harness:
    made = Harness(features={"eligible.leader.replicas.version": 0})
    made.add_brokers(0)
    made.add_topic("t", [0])
    return made


def resource(kind: int, name: str, *changes: Change) -> AlterConfigsResource:
    configs = [AlterableConfig(key, operation, value) for key, operation, value in changes]
    return AlterConfigsResource(kind, name, configs)


def alter(
    harness: Harness, *resources: AlterConfigsResource, validate_only: bool = False
) -> list[tuple[int, str | None]]:
    """Replay the records. Returns (code, message) of each answer."""
    request = IncrementalAlterConfigsRequest(list(resources), validate_only)
    response = harness.run(incremental_alter_configs, request, 1, IncrementalAlterConfigsResponse)
    return [(answer.error_code, answer.error_message) for answer in response.responses]


def change(harness: Harness, kind: int, name: str, *changes: Change) -> int:
    ((code, message),) = alter(harness, resource(kind, name, *changes))
    assert (message is None) == (code == 0)
    return code


def test_set_and_delete(harness: Harness) -> None:
    assert change(harness, TOPIC, "t", ("retention.ms", SET, "5"), ("flush.ms", SET, "6")) == 0
    assert harness.metadata.configs.get(TOPIC, "t") == {"retention.ms": "5", "flush.ms": "6"}
    assert change(harness, TOPIC, "t", ("retention.ms", DELETE, None), ("flush.ms", SET, "7")) == 0
    assert harness.metadata.configs.get(TOPIC, "t") == {"flush.ms": "7"}


def test_append_and_subtract(harness: Harness) -> None:
    policy = "cleanup.policy"
    assert change(harness, TOPIC, "t", (policy, APPEND, "compact")) == 0
    assert harness.metadata.configs.get(TOPIC, "t") == {policy: "delete,compact"}
    assert change(harness, TOPIC, "t", (policy, APPEND, "compact,delete")) == 0
    assert harness.metadata.configs.get(TOPIC, "t") == {policy: "delete,compact"}
    assert change(harness, TOPIC, "t", (policy, SUBTRACT, "delete,absent")) == 0
    assert harness.metadata.configs.get(TOPIC, "t") == {policy: "compact"}
    assert change(harness, TOPIC, "t", (policy, SUBTRACT, "compact")) == 0
    assert harness.metadata.configs.get(TOPIC, "t") == {policy: ""}


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
@pytest.mark.parametrize("key", ["retention.ms", "no.such.key"])
def test_only_lists_take_parts(harness: Harness, key: str, operation: int) -> None:
    assert change(harness, TOPIC, "t", (key, operation, "1")) == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("kind", "key", "value", "pieces"),
    [
        (METRICS, "match", "client_id=" + "a" * 10_000, 2 * 10),  # tried first, then written
        (GROUP, "errors.deadletterqueue.topic.name", "a" * 200, 1),
    ],
)
def test_regular_expressions_are_checked_in_smaller_pieces_than_other_values(
    harness: Harness, kind: int, key: str, value: str, pieces: int
) -> None:
    resources = [resource(kind, f"name-{number}", (key, SET, value)) for number in range(10)]
    request = IncrementalAlterConfigsRequest(resources)
    result = incremental_alter_configs.handle(harness.state, request, 1, harness.context())
    assert rest_of(harness, result)[1] == pieces


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_lists_of_groups_take_no_parts(harness: Harness, operation: int) -> None:
    """As in Java, whose controller has the keys of brokers and topics only."""
    key = "streams.rack.aware.assignment.tags"
    assert change(harness, GROUP, "g", (key, SET, "zone")) == 0
    assert change(harness, GROUP, "g", (key, operation, "zone")) == ErrorCode.INVALID_CONFIG


def test_a_resource_fails_as_a_whole_and_alone(harness: Harness) -> None:
    answers = alter(
        harness,
        resource(TOPIC, "t", ("retention.ms", SET, "5"), ("flush.ms", SET, "never")),
        resource(BROKER, "0", ("log.flush.interval.ms", SET, "9")),
    )
    assert [code for code, _ in answers] == [ErrorCode.INVALID_CONFIG, 0]
    assert harness.metadata.configs.get(TOPIC, "t") == {}
    assert harness.metadata.configs.get(BROKER, "0") == {"log.flush.interval.ms": "9"}


@pytest.mark.parametrize(
    ("kind", "name", "key"),
    [(TOPIC, "t", "retention.ms"), (METRICS, "m", "match"), (BROKER, "", "log.retention.ms")],
)
def test_a_message_that_quotes_a_long_value_fits_into_the_response(
    harness: Harness, kind: int, name: str, key: str
) -> None:
    ((code, message),) = alter(harness, resource(kind, name, (key, SET, "(" * 32_000)))
    assert code != 0 and message is not None and len(message.encode()) < 5_000
    response = AlterConfigsResourceResponse(code, message, kind, name)
    IncrementalAlterConfigsResponse(responses=[response]).encode(1)


def test_validate_only_writes_nothing(harness: Harness) -> None:
    before = harness.state.next_offset
    good = resource(TOPIC, "t", ("retention.ms", SET, "5"))
    bad = resource(TOPIC, "u", ("retention.ms", SET, "5"))
    answers = alter(harness, good, bad, validate_only=True)
    assert [code for code, _ in answers] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert harness.state.next_offset == before


def records(harness: Harness, *resources: AlterConfigsResource) -> list[object]:
    request = IncrementalAlterConfigsRequest(list(resources))
    return [record for record, _ in harness.decide(incremental_alter_configs, request, 1).records]


def test_unchanged_values_are_written_for_brokers_only(harness: Harness) -> None:
    """KAFKA-14136: brokers read again the file that a value names, such as a key store."""
    for _ in range(2):
        change(harness, TOPIC, "t", ("retention.ms", SET, "5"))
        change(harness, BROKER, "0", ("log.flush.interval.ms", SET, "9"))
    assert records(harness, resource(TOPIC, "t", ("retention.ms", SET, "5"))) == []
    assert records(harness, resource(BROKER, "0", ("log.flush.interval.ms", SET, "9"))) == [
        ConfigRecord(BROKER.value, "0", "log.flush.interval.ms", "9")
    ]


def test_deleting_what_is_not_set(harness: Harness) -> None:
    assert records(harness, resource(TOPIC, "t", ("retention.ms", DELETE, None))) == []
    assert change(harness, BROKER, "", ("log.flush.interval.ms", DELETE, None)) == 0
    assert harness.metadata.configs.get(BROKER, "") == {}


def test_one_answer_for_a_resource_that_is_named_twice(harness: Harness) -> None:
    twice = resource(TOPIC, "t", ("retention.ms", SET, "5"))
    answers = alter(harness, twice, twice, resource(BROKER, "", ("num.io.threads", SET, "9")), twice)
    assert [code for code, _ in answers] == [ErrorCode.INVALID_REQUEST, 0]
    assert harness.metadata.configs.get(TOPIC, "t") == {}


@pytest.mark.parametrize(
    ("kind", "name", "changes", "code"),
    [
        (0, "x", [], ErrorCode.UNSUPPORTED_VERSION),
        (3, "x", [], ErrorCode.UNSUPPORTED_VERSION),
        (TOPIC, "u", [("retention.ms", SET, "5")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", [("retention.ms", SET, "5")], ErrorCode.INVALID_REQUEST),
        (TOPIC, "a/b", [("retention.ms", SET, "5")], ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "t", [("no.such.key", SET, "5")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", [("flush.ms", SET, "1"), ("flush.ms", SET, "2")], ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", [("flush.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", [("cleanup.policy", APPEND, None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", [("cleanup.policy", SUBTRACT, None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", [("flush.ms", 4, "1")], ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", [("flush.ms", -1, "1")], ErrorCode.INVALID_REQUEST),
        (BROKER, "7", [("num.io.threads", SET, "9")], ErrorCode.BROKER_ID_NOT_REGISTERED),
        (BROKER, "x", [("num.io.threads", SET, "9")], ErrorCode.INVALID_REQUEST),
        (BROKER, "9999999999", [("num.io.threads", SET, "9")], ErrorCode.INVALID_REQUEST),
        (BROKER, "2147483647", [("num.io.threads", SET, "9")], ErrorCode.BROKER_ID_NOT_REGISTERED),
        (BROKER, "0", [("min.insync.replicas", SET, "x")], ErrorCode.INVALID_CONFIG),
        (BROKER, "", [("min.insync.replicas", SET, "x")], ErrorCode.INVALID_CONFIG),
        (BROKER, "", [("log.retention.ms", SET, "never")], ErrorCode.INVALID_CONFIG),
        (ResourceType.GROUP, "g", [("consumer.session.timeout.ms", SET, "1")], ErrorCode.INVALID_CONFIG),
        (ResourceType.CLIENT_METRICS, "m", [("interval.ms", SET, "1")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_refusals(harness: Harness, kind: int, name: str, changes: list[Change], code: ErrorCode) -> None:
    before = harness.state.next_offset
    assert change(harness, kind, name, *changes) == code
    assert harness.state.next_offset == before


@pytest.mark.parametrize("name", ["", "0", str(NODE_ID)])
def test_brokers_controllers_and_all_of_them(harness: Harness, name: str) -> None:
    assert change(harness, BROKER, name, ("log.retention.ms", SET, "5")) == 0
    assert harness.metadata.configs.get(BROKER, name) == {"log.retention.ms": "5"}


def test_groups_and_client_metrics_need_no_existence(harness: Harness) -> None:
    assert change(harness, ResourceType.GROUP, "g", ("share.auto.offset.reset", SET, "earliest")) == 0
    assert change(harness, ResourceType.CLIENT_METRICS, "m", ("interval.ms", SET, "100")) == 0
    assert harness.metadata.configs.get(ResourceType.GROUP, "g") == {"share.auto.offset.reset": "earliest"}
    assert harness.metadata.configs.get(ResourceType.CLIENT_METRICS, "m") == {"interval.ms": "100"}


@pytest.mark.parametrize(("added", "code"), [(7, 0), (8, ErrorCode.INVALID_CONFIG)])
def test_the_longest_value_in_bytes(harness: Harness, added: int, code: int) -> None:
    assert change(harness, BROKER, "0", ("ssl.cipher.suites", SET, "é" * 16376 + "x" * 7)) == 0
    assert change(harness, BROKER, "0", ("ssl.cipher.suites", APPEND, "y" * added)) == code


MIN_ISR = "min.insync.replicas"


def with_elr() -> Harness:
    harness = Harness(features={"eligible.leader.replicas.version": 1})
    harness.add_brokers(0)
    harness.add_topic("t", [0])
    return harness


def test_min_isr_belongs_to_the_cluster_with_eligible_leader_replicas() -> None:
    harness = with_elr()
    assert change(harness, BROKER, "0", (MIN_ISR, SET, "2")) == ErrorCode.INVALID_CONFIG
    assert change(harness, BROKER, "0", (MIN_ISR, DELETE, None)) == ErrorCode.INVALID_CONFIG
    assert change(harness, BROKER, "", (MIN_ISR, SET, "2")) == 0
    assert change(harness, BROKER, "", (MIN_ISR, DELETE, None)) == ErrorCode.INVALID_CONFIG
    assert harness.metadata.configs.get(BROKER, "") == {MIN_ISR: "2"}


def test_without_eligible_leader_replicas_brokers_override_min_isr(harness: Harness) -> None:
    assert change(harness, BROKER, "0", (MIN_ISR, SET, "2")) == 0
    assert change(harness, BROKER, "", (MIN_ISR, SET, "2")) == 0
    assert change(harness, BROKER, "", (MIN_ISR, DELETE, None)) == 0


def test_a_change_of_min_isr_clears_eligible_leader_replicas(harness: Harness) -> None:
    of_topic = resource(TOPIC, "t", (MIN_ISR, SET, "2"))
    of_all = resource(BROKER, "", (MIN_ISR, SET, "2"))
    written = records(with_elr(), of_topic, of_all)
    assert written[2:] == [ClearElrRecord("t"), ClearElrRecord("")]
    assert [type(record) for record in written[:2]] == [ConfigRecord, ConfigRecord]
    assert [type(record) for record in records(harness, of_topic, of_all)] == [ConfigRecord, ConfigRecord]


def test_the_records_are_one_batch_and_the_response_names_each_resource(harness: Harness) -> None:
    request = IncrementalAlterConfigsRequest([resource(TOPIC, "t", ("retention.ms", SET, "5"))])
    result = harness.decide(incremental_alter_configs, request, 0)
    assert result.atomic and result.response is not None
    response = IncrementalAlterConfigsResponse.decode(result.response.encode(0), 0)
    assert [(a.resource_type, a.resource_name) for a in response.responses] == [(2, "t")]
    failed = failure(IncrementalAlterConfigsResponse, request, 0, ErrorCode.NOT_CONTROLLER, "ask another")
    assert [(a.error_code, a.error_message) for a in failed.responses] == [(41, "ask another")]


def test_keys_that_kafka_no_longer_has_hinder_no_change(harness: Harness) -> None:
    """An upgraded cluster's log may hold them; Java's controller drops them when it replays."""
    for kind, name, known in (
        (TOPIC, "t", ("retention.ms", SET, "5")),
        (GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")),
    ):
        old = ConfigRecord(resource_type=kind, resource_name=name, name="message.format.version", value="2.8")
        harness.replay([(old, 0)])
        assert change(harness, kind, name, known) == 0
        assert change(harness, kind, name, ("message.format.version", SET, "3.0")) == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("kind", "name", "changed", "code"),
    [
        (BROKER, "99", ("log.cleanup.policy", SET, "neither"), ErrorCode.BROKER_ID_NOT_REGISTERED),
        (BROKER, "99", ("num.io.threads", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (BROKER, "99", ("cordoned.log.dirs", SET, "/a"), ErrorCode.INVALID_CONFIG),
        (BROKER, "-1", ("cordoned.log.dirs", SET, "/a"), ErrorCode.INVALID_CONFIG),
        (BROKER, "-1", ("num.io.threads", SET, "1"), ErrorCode.INVALID_REQUEST),
        (METRICS, "", ("metrics", SUBTRACT, "a"), ErrorCode.INVALID_CONFIG),
        (METRICS, "", ("interval.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_of_two_faults_the_one_that_java_names(
    harness: Harness, kind: int, name: str, changed: Change, code: ErrorCode
) -> None:
    """Java looks at operations first, then at changes, then at names and values, then for the node."""
    assert change(harness, kind, name, changed) == code


PAUSED = "kraft.wire.exporter.audit.paused"


@pytest.mark.parametrize(
    ("broker", "value", "problem"),
    [
        ("", "true", None),
        ("", None, None),
        ("", "maybe", f"{PAUSED}=maybe: "),
        ("0", "true", f"{PAUSED} is for all controllers: "),
        ("0", None, None),
    ],
)
def test_orders_for_exporters_are_set_for_all_brokers(
    harness: Harness, broker: str, value: str | None, problem: str | None
) -> None:
    operation = DELETE if value is None else SET
    ((code, message),) = alter(harness, resource(BROKER, broker, (PAUSED, operation, value)))
    assert code == (ErrorCode.NONE if problem is None else ErrorCode.INVALID_CONFIG)
    assert (message or "").startswith(problem or "")
    assert harness.state.metadata.configs.value(BROKER, broker, PAUSED) == (None if problem else value)


@pytest.mark.parametrize("key", ["kraft.wire.max.held.bytes", "kraft.wire.typo"])
@pytest.mark.parametrize("name", ["", "0"])
def test_our_own_keys_are_read_at_the_start_only(harness: Harness, name: str, key: str) -> None:
    assert change(harness, BROKER, name, (key, SET, "5")) == ErrorCode.INVALID_CONFIG
    old = ConfigRecord(resource_type=BROKER, resource_name=name, name=key, value="5")
    harness.replay([(old, 0)])
    assert change(harness, BROKER, name, (key, DELETE, None)) == 0, "an older version took it"
    assert key not in harness.metadata.configs.get(BROKER, name)


@pytest.mark.parametrize("name", ["+0", "\u0660", "-0", "0000000000000"])
def test_a_broker_id_may_be_written_as_java_reads_it(harness: Harness, name: str) -> None:
    assert change(harness, BROKER, name, ("num.io.threads", SET, "9")) == 0


def test_an_item_is_subtracted_as_often_as_it_is_named(harness: Harness) -> None:
    suites = "ssl.cipher.suites"
    assert change(harness, BROKER, "0", (suites, SET, "a,b,a,a")) == 0
    assert change(harness, BROKER, "0", (suites, SUBTRACT, "a,a")) == 0
    assert harness.metadata.configs.get(BROKER, "0") == {suites: "b,a"}


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_nothing_of_client_metrics_is_a_list(harness: Harness, operation: int) -> None:
    assert change(harness, METRICS, "m", ("metrics", operation, "a")) == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("value", ["", "compact,,delete", ",delete"])
def test_an_empty_item_is_appended_too_and_then_refused(harness: Harness, value: str) -> None:
    assert change(harness, TOPIC, "t", ("cleanup.policy", APPEND, value)) == ErrorCode.INVALID_CONFIG


def java_result(operation: int, current: str, given: str) -> str:
    """Append or subtract item by item, as Java's ConfigurationControlManager is described to do."""
    items = [item for item in current.split(",") if item]
    for item in split(given):
        if operation == APPEND and item not in items:
            items.append(item)
        elif operation == SUBTRACT and item in items:
            items.remove(item)
    return ",".join(items)


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_items_that_are_there_or_given_more_than_once(harness: Harness, operation: int) -> None:
    random, suites = Random(1), "ssl.cipher.suites"
    for _ in range(300):
        current, given = (",".join(random.choices(["", "a", "b", "c", "d"], k=n)) for n in (6, 5))
        harness.replay([(ConfigRecord(BROKER.value, "0", suites, current), 0)])
        (written,) = records(harness, resource(BROKER, "0", (suites, operation, given)))
        assert isinstance(written, ConfigRecord)
        assert written.value == java_result(operation, current, given), (current, given)


class CountingItem(str):
    """An item of a list that counts how often items are compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountingItem.comparisons += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


class CountedList(str):
    """A value that is split into counting items."""

    def split(self, *separator: Any) -> list[Any]:
        return [CountingItem(item) for item in super().split(*separator)]


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
@pytest.mark.parametrize("shared", [0, 200])
def test_the_items_of_a_list_are_not_compared_each_with_each(
    harness: Harness, operation: int, shared: int
) -> None:
    suites = "ssl.cipher.suites"
    current, given = (
        ",".join(str(number) for number in range(start, start + 300)) for start in (0, 300 - shared)
    )
    harness.replay([(ConfigRecord(BROKER.value, "0", suites, current), 0)])
    request = IncrementalAlterConfigsRequest([resource(BROKER, "0", (suites, operation, CountedList(given)))])
    CountingItem.comparisons = 0
    result = incremental_alter_configs.handle(harness.state, request, 1, harness.context())
    assert [type(record) for record, _ in result.records] == [ConfigRecord]
    assert CountingItem.comparisons < 3_000
