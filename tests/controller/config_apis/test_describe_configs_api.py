"""DescribeConfigs on a controller: the rules of Kafka's ConfigHelper."""

from __future__ import annotations

import pytest

from kraft_wire.configs.documentation import documentation_of
from kraft_wire.configs.types import ConfigSource, ConfigType
from kraft_wire.controller.config_apis import config_entries, describe_configs
from kraft_wire.controller.config_apis.broker_config_view import broker_definition, broker_synonyms
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kraft_wire.protocol.messages.topic_record import TopicRecord
from tests.controller.controller_harness import NODE_ID, Harness, failure, uuid
from tests.controller.decision.test_item_work import rest_of

TOPIC, BROKER, LOGGER = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.BROKER_LOGGER
METRICS, GROUP = ResourceType.CLIENT_METRICS, ResourceType.GROUP


def set_config(harness: Harness, kind: int, name: str, key: str, value: str) -> None:
    harness.replay([(ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value), 0)])


def describe(
    harness: Harness, kind: int, name: str, *keys: str, synonyms: bool = True, version: int = 4
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(kind, name, keys or None)
    request = DescribeConfigsRequest([resource], include_synonyms=synonyms)
    response = harness.run(describe_configs, request, version, DescribeConfigsResponse)
    (result,) = response.results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def entry(harness: Harness, kind: int, name: str, key: str) -> DescribeConfigsResourceResult:
    result = describe(harness, kind, name, key)
    assert result.error_code == 0
    (found,) = result.configs
    assert found.name == key
    assert found.documentation is None
    return found


def told(
    found: DescribeConfigsResourceResult,
) -> tuple[str | None, ConfigSource, list[tuple[str, str | None, int]]]:
    """Return (value, source, synonyms)."""
    synonyms = [(s.name, s.value, s.source) for s in found.synonyms]
    return found.value, ConfigSource(found.config_source), synonyms


@pytest.fixture
def harness() -> Harness:
    made = Harness(
        static_configs={
            "node.id": str(NODE_ID),
            "log.retention.hours": "24",
            "log.segment.bytes": " 2097152 ",
            "ssl.key.password": "hush",
            "my.own.key": "mine",
        }
    )
    made.add_topic("t", [0])
    return made


def test_a_topics_default(harness: Harness) -> None:
    assert told(entry(harness, TOPIC, "t", "max.message.bytes")) == (
        "1048588",
        ConfigSource.DEFAULT,
        [("message.max.bytes", "1048588", ConfigSource.DEFAULT)],
    )


def test_a_topics_value_through_all_layers(harness: Harness) -> None:
    set_config(harness, TOPIC, "t", "segment.bytes", "1048577")
    set_config(harness, BROKER, str(NODE_ID), "log.segment.bytes", "1048578")
    set_config(harness, BROKER, "", "log.segment.bytes", "1048579")
    found = entry(harness, TOPIC, "t", "segment.bytes")
    assert told(found) == (
        "1048577",
        ConfigSource.TOPIC,
        [
            ("segment.bytes", "1048577", ConfigSource.TOPIC),
            ("log.segment.bytes", "1048578", ConfigSource.DYNAMIC_BROKER),
            ("log.segment.bytes", "1048579", ConfigSource.DYNAMIC_DEFAULT_BROKER),
            ("log.segment.bytes", " 2097152 ", ConfigSource.STATIC_BROKER),
            ("log.segment.bytes", "1073741824", ConfigSource.DEFAULT),
        ],
    )
    assert (found.config_type, found.read_only, found.is_sensitive) == (ConfigType.INT, False, False)


def test_a_value_in_another_unit_is_converted_and_its_source_not_told(harness: Harness) -> None:
    """As in Java, synonyms before the first place with the key's own name are left out."""
    assert told(entry(harness, TOPIC, "t", "retention.ms")) == ("86400000", ConfigSource.DEFAULT, [])


def test_a_topic_key_without_synonyms(harness: Harness) -> None:
    assert told(entry(harness, TOPIC, "t", "remote.storage.enable")) == ("false", ConfigSource.DEFAULT, [])
    set_config(harness, TOPIC, "t", "leader.replication.throttled.replicas", "0:1 , 1:2")
    assert told(entry(harness, TOPIC, "t", "leader.replication.throttled.replicas")) == (
        "0:1,1:2",
        ConfigSource.TOPIC,
        [("leader.replication.throttled.replicas", "0:1,1:2", ConfigSource.TOPIC)],
    )


def test_all_keys_of_a_topic(harness: Harness) -> None:
    names = [config.name for config in describe(harness, TOPIC, "t").configs]
    assert names == sorted(names)
    assert {"cleanup.policy", "min.insync.replicas", "segment.bytes"} < set(names)
    assert "internal.segment.bytes" not in names


def test_keys_that_are_asked_for_and_do_not_exist_are_left_out(harness: Harness) -> None:
    result = describe(harness, TOPIC, "t", "segment.bytes", "no.such.key")
    assert [config.name for config in result.configs] == ["segment.bytes"]


def test_synonyms_only_on_request(harness: Harness) -> None:
    (found,) = describe(harness, TOPIC, "t", "segment.bytes", synonyms=False).configs
    assert told(found) == ("2097152", ConfigSource.STATIC_BROKER, [])


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_every_version(harness: Harness, version: int) -> None:
    (found,) = describe(harness, TOPIC, "t", "segment.bytes", version=version).configs
    assert told(found)[:2] == ("2097152", ConfigSource.STATIC_BROKER)
    assert found.config_type == (ConfigType.INT if version >= 3 else ConfigType.UNKNOWN)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "no/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "1", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "1", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (METRICS, "", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_can_not_be_described(harness: Harness, kind: int, name: str, code: ErrorCode) -> None:
    result = describe(harness, kind, name)
    assert (result.error_code, result.configs) == (code, [])
    assert result.error_message


def test_a_resource_type_that_does_not_exist_fails_the_request(harness: Harness) -> None:
    request = DescribeConfigsRequest([DescribeConfigsResource(3, "x")])
    with pytest.raises(ApiError) as refused:
        harness.decide(describe_configs, request, 4)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    response = failure(DescribeConfigsResponse, request, 4, refused.value.code, "why")
    assert [(r.error_code, r.error_message) for r in response.results] == [(42, "why")]


def test_this_nodes_own_configuration(harness: Harness) -> None:
    me = str(NODE_ID)
    found = entry(harness, BROKER, me, "log.segment.bytes")
    assert told(found) == (
        "2097152",
        ConfigSource.STATIC_BROKER,
        [
            ("log.segment.bytes", " 2097152 ", ConfigSource.STATIC_BROKER),
            ("log.segment.bytes", "1073741824", ConfigSource.DEFAULT),
        ],
    )
    assert not found.read_only
    found = entry(harness, BROKER, me, "node.id")
    assert (found.value, found.read_only, found.config_type) == (me, True, ConfigType.INT)
    assert entry(harness, BROKER, me, "broker.id").value == me


def test_synonyms_of_broker_keys(harness: Harness) -> None:
    found = entry(harness, BROKER, str(NODE_ID), "log.retention.hours")
    assert found.config_type == ConfigType.INT
    assert told(found) == (
        "24",
        ConfigSource.STATIC_BROKER,
        [
            ("log.retention.hours", "24", ConfigSource.STATIC_BROKER),
            ("log.retention.hours", "168", ConfigSource.DEFAULT),
        ],
    )
    set_config(harness, BROKER, "", "log.retention.ms", "7")
    found = entry(harness, BROKER, str(NODE_ID), "log.retention.ms")
    assert told(found) == (
        "7",
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
        [
            ("log.retention.ms", "7", ConfigSource.DYNAMIC_DEFAULT_BROKER),
            ("log.retention.hours", "24", ConfigSource.STATIC_BROKER),
            ("log.retention.hours", "168", ConfigSource.DEFAULT),
        ],
    )


def test_passwords_and_unknown_keys_are_never_shown(harness: Harness) -> None:
    for key in ("ssl.key.password", "my.own.key"):
        found = entry(harness, BROKER, str(NODE_ID), key)
        assert found.is_sensitive
        assert told(found) == (None, ConfigSource.STATIC_BROKER, [(key, None, ConfigSource.STATIC_BROKER)])


@pytest.mark.parametrize(
    ("key", "value", "source", "kind"),
    [
        ("kraft.wire.max.held.bytes", "5000", ConfigSource.STATIC_BROKER, ConfigType.LONG),
        ("kraft.wire.max.request.entries", "20000", ConfigSource.DEFAULT, ConfigType.INT),
        ("kraft.wire.answer.when.known.ms", "0", ConfigSource.DEFAULT, ConfigType.INT),
    ],
)
def test_keys_that_kafka_does_not_have_are_shown(
    key: str, value: str, source: ConfigSource, kind: ConfigType
) -> None:
    """A dynamic value has no effect: they are read at the start."""
    harness = Harness(static_configs={"kraft.wire.max.held.bytes": " 5000"})
    for name in (str(NODE_ID), ""):
        set_config(harness, BROKER, name, key, "7")
    resource = DescribeConfigsResource(BROKER, str(NODE_ID))
    request = DescribeConfigsRequest([resource], include_documentation=True)
    (result,) = harness.run(describe_configs, request, 4, DescribeConfigsResponse).results
    (found,) = (config for config in result.configs if config.name == key)
    assert (found.value, found.config_source, found.config_type) == (value, source, kind)
    assert (found.is_sensitive, found.read_only) == (False, True)
    assert found.documentation
    assert entry(harness, BROKER, str(NODE_ID), key).documentation is None
    assert describe(harness, BROKER, "").configs == []


@pytest.mark.parametrize(
    ("kind", "name", "key"),
    [
        (TOPIC, "t", "retention.ms"),
        (GROUP, "g", "share.isolation.level"),
        (METRICS, "m", "match"),
        (BROKER, str(NODE_ID), "node.id"),
        (BROKER, "", "log.retention.ms"),
    ],
)
@pytest.mark.parametrize("is_set", [True, False])
def test_the_documentation_of_a_key_is_returned_to_who_asks_for_it(
    harness: Harness, kind: int, name: str, key: str, is_set: bool
) -> None:
    if is_set or (kind, name) == (BROKER, ""):
        set_config(harness, kind, name, key, "7")
    resource = DescribeConfigsResource(kind, name, (key,))
    request = DescribeConfigsRequest([resource], include_documentation=True)
    (result,) = harness.run(describe_configs, request, 4, DescribeConfigsResponse).results
    (found,) = result.configs
    assert found.documentation == documentation_of(kind, key)
    assert found.documentation
    assert entry(harness, kind, name, key).documentation is None


def test_keys_without_any_value_are_there(harness: Harness) -> None:
    assert told(entry(harness, BROKER, str(NODE_ID), "log.flush.interval.ms")) == (
        None,
        ConfigSource.DEFAULT,
        [],
    )


def test_internal_keys_only_where_they_are_set(harness: Harness) -> None:
    names = {config.name for config in describe(harness, BROKER, str(NODE_ID)).configs}
    assert "log.initial.task.delay.ms" not in names
    harness = Harness(static_configs={"log.initial.task.delay.ms": "5"})
    assert entry(harness, BROKER, str(NODE_ID), "log.initial.task.delay.ms").value == "5"


@pytest.mark.parametrize(
    ("resource", "key", "value"),
    [
        (str(NODE_ID), "node.id", "5"),
        (str(NODE_ID), "num.io.threads", "many"),
        (str(NODE_ID), "log.cleaner.threads", "-1"),
        (str(NODE_ID), "log.retention.hours", "5"),
        (str(NODE_ID), "ssl.keystore.type", "JKS"),
        (str(NODE_ID), "listener.name.x.num.network.threads", "none"),
        ("", "node.id", "5"),
        ("", "cordoned.log.dirs", "/a"),
        ("", "listener.name.x.ssl.keystore.type", "JKS"),
    ],
)
def test_what_this_node_can_not_take_is_not_shown(
    harness: Harness, resource: str, key: str, value: str
) -> None:
    """As in Java, whose nodes show what they use."""
    before = describe(harness, BROKER, str(NODE_ID))
    set_config(harness, BROKER, resource, key, value)
    assert describe(harness, BROKER, str(NODE_ID)) == before
    assert describe(harness, BROKER, "").configs == []


@pytest.mark.parametrize(
    ("resource", "key", "value"),
    [
        (str(NODE_ID), "cordoned.log.dirs", "/a"),
        (str(NODE_ID), "listener.name.x.ssl.keystore.type", "JKS"),
        (str(NODE_ID), "unknown.to.kafka", "x"),
        (str(NODE_ID), "leader.replication.throttled.rate", "5"),
        ("", "num.io.threads", "5"),
        ("", "listener.name.x.num.network.threads", "5"),
    ],
)
def test_what_this_node_takes_is_shown(harness: Harness, resource: str, key: str, value: str) -> None:
    set_config(harness, BROKER, resource, key, value)
    source = ConfigSource.DYNAMIC_BROKER if resource else ConfigSource.DYNAMIC_DEFAULT_BROKER
    found = entry(harness, BROKER, str(NODE_ID), key)
    assert (found.synonyms[0].name, found.synonyms[0].source) == (key, source)


def test_a_nodes_id_may_be_written_as_java_reads_it(harness: Harness) -> None:
    assert describe(harness, BROKER, f"+{NODE_ID}").configs == describe(harness, BROKER, str(NODE_ID)).configs
    assert describe(harness, LOGGER, f"0{NODE_ID}").error_code == 0


def test_what_is_set_for_all_brokers(harness: Harness) -> None:
    assert describe(harness, BROKER, "").configs == []
    set_config(harness, BROKER, "", "log.segment.bytes", "2000000")
    set_config(harness, BROKER, str(NODE_ID), "log.segment.bytes", "3000000")
    (found,) = describe(harness, BROKER, "").configs
    assert told(found) == (
        "2000000",
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
        [("log.segment.bytes", "2000000", ConfigSource.DYNAMIC_DEFAULT_BROKER)],
    )


def test_loggers(harness: Harness) -> None:
    harness.state.log_levels = lambda: {"root": "INFO", "a": "DEBUG"}
    for config in describe(harness, LOGGER, str(NODE_ID)).configs:
        assert told(config) == (
            harness.state.log_levels()[config.name],
            ConfigSource.DYNAMIC_BROKER_LOGGER,
            [],
        )
        assert not config.read_only
    assert [config.name for config in describe(harness, LOGGER, str(NODE_ID)).configs] == ["root", "a"]


def test_loggers_of_many_resources_take_several_steps_and_are_made_once_in_each(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[None] = []

    def log_levels() -> dict[str, str]:
        asked.append(None)
        return {f"logger-{number}": "INFO" for number in range(50)}

    harness.state.log_levels = log_levels
    monkeypatch.setattr(describe_configs, "ENTRIES_PER_PIECE", 100)
    names = ["0" * zeros + str(NODE_ID) for zeros in range(20)]
    whole, count = pieces(harness, [DescribeConfigsResource(LOGGER, name, None) for name in names])
    assert [len(each.configs) for each in whole] == [50] * 20
    assert (count, len(asked)) == (10, 10)


def test_groups(harness: Harness) -> None:
    assert told(entry(harness, GROUP, "g", "consumer.session.timeout.ms")) == (
        "45000",
        ConfigSource.DEFAULT,
        [("group.consumer.session.timeout.ms", "45000", ConfigSource.DEFAULT)],
    )
    set_config(harness, GROUP, "g", "consumer.session.timeout.ms", "50000")
    assert told(entry(harness, GROUP, "g", "consumer.session.timeout.ms")) == (
        "50000",
        ConfigSource.GROUP,
        [
            ("consumer.session.timeout.ms", "50000", ConfigSource.GROUP),
            ("group.consumer.session.timeout.ms", "45000", ConfigSource.DEFAULT),
        ],
    )
    assert told(entry(harness, GROUP, "g", "share.auto.offset.reset")) == (
        "latest",
        ConfigSource.DEFAULT,
        [("share.auto.offset.reset", "latest", ConfigSource.DEFAULT)],
    )


def test_client_metrics(harness: Harness) -> None:
    assert told(entry(harness, METRICS, "m", "interval.ms")) == ("300000", ConfigSource.DEFAULT, [])
    set_config(harness, METRICS, "m", "interval.ms", "100")
    assert told(entry(harness, METRICS, "m", "interval.ms")) == (
        "100",
        ConfigSource.CLIENT_METRICS,
        [("interval.ms", "100", ConfigSource.CLIENT_METRICS)],
    )


def test_a_value_that_can_not_be_read_is_shown_as_it_is(harness: Harness) -> None:
    set_config(harness, TOPIC, "t", "segment.bytes", "huge")
    assert entry(harness, TOPIC, "t", "segment.bytes").value == "huge"


def test_keys_of_one_listener_stand_for_general_ones() -> None:
    assert broker_synonyms("listener.name.a.ssl.key.password") == (
        "listener.name.a.ssl.key.password",
        "ssl.key.password",
    )
    mechanism_key = "listener.name.a.scram-sha-256.sasl.jaas.config"
    assert broker_synonyms(mechanism_key) == (mechanism_key, "sasl.jaas.config")
    definition = broker_definition(mechanism_key)
    assert definition is not None
    assert definition.is_sensitive
    assert broker_definition("listener.name.a.no.such.key") is None


def test_a_resource_that_is_named_often_is_described_once_with_all_its_keys(harness: Harness) -> None:
    node = [
        DescribeConfigsResource(BROKER, str(NODE_ID), (key,)) for key in ("node.id", "log.retention.hours")
    ]
    request = DescribeConfigsRequest([*node, *node, DescribeConfigsResource(GROUP, "g", None)])
    results = harness.run(describe_configs, request, 4, DescribeConfigsResponse).results
    assert [(result.resource_type, result.resource_name) for result in results] == [
        (BROKER, str(NODE_ID)),
        (GROUP, "g"),
    ]
    assert [each.name for each in results[0].configs] == ["log.retention.hours", "node.id"]
    request = DescribeConfigsRequest([*node, DescribeConfigsResource(BROKER, str(NODE_ID), None)])
    (result,) = harness.run(describe_configs, request, 4, DescribeConfigsResponse).results
    assert len(result.configs) > 100


def many_topics(harness: Harness, count: int) -> list[str]:
    names = [f"t{number}" for number in range(count)]
    for number, name in enumerate(names):
        harness.replay([(TopicRecord(name=name, topic_id=uuid(900 + number)), 0)])
    return names


def pieces(
    harness: Harness, resources: list[DescribeConfigsResource]
) -> tuple[list[DescribeConfigsResult], int]:
    """Return the results, as the handler has them, and the number of pieces."""
    result = describe_configs.handle(
        harness.state, DescribeConfigsRequest(resources, include_synonyms=True), 4, harness.context()
    )
    response, count = rest_of(harness, result)
    assert isinstance(response, DescribeConfigsResponse)
    return response.results, count


def test_topics_share_the_entries_of_values_that_are_not_their_own(harness: Harness) -> None:
    names = many_topics(harness, 50)
    set_config(harness, TOPIC, "t7", "retention.ms", "5")
    set_config(harness, TOPIC, "t8", "retention.ms", "6")
    results, _ = pieces(harness, [DescribeConfigsResource(TOPIC, name, None) for name in names])
    values = [{each.name: each.value for each in result.configs}["retention.ms"] for result in results]
    assert values == ["86400000"] * 7 + ["5", "6"] + ["86400000"] * 41
    made = {id(entry) for result in results for entry in result.configs}
    assert len(made) == len(results[0].configs) + 2


@pytest.mark.parametrize("keys", [None, ("retention.ms",), ("flush.ms", "retention.ms", "flush.ms")])
def test_internal_keys_of_topics_only_where_they_are_set(
    harness: Harness, keys: tuple[str, ...] | None
) -> None:
    internal = "internal.segment.bytes"
    asked = None if keys is None else (*keys, internal)
    many_topics(harness, 1)
    set_config(harness, TOPIC, "t", internal, "2000000")
    (with_it, without), _ = pieces(
        harness, [DescribeConfigsResource(TOPIC, name, asked) for name in ("t", "t0")]
    )
    names = [entry.name for entry in with_it.configs]
    assert names == sorted(names) and internal in names
    assert [entry.name for entry in without.configs] == [name for name in names if name != internal]


def test_many_resources_are_described_in_pieces(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    names = many_topics(harness, 7)
    set_config(harness, TOPIC, "t3", "retention.ms", "5")
    resources = [
        DescribeConfigsResource(GROUP, "", None),
        *(DescribeConfigsResource(TOPIC, name, None) for name in names),
        DescribeConfigsResource(BROKER, str(NODE_ID), None),
    ]
    whole, count = pieces(harness, resources)
    assert count == 1
    monkeypatch.setattr(describe_configs, "RESOURCES_PER_PIECE", 2)
    assert pieces(harness, resources) == (whole, 5)


@pytest.mark.parametrize("asked", [None, ("retention.ms", "cleanup.policy", "file.delete.delay.ms")])
def test_a_piece_has_fewer_resources_if_these_have_many_values(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...] | None
) -> None:
    names = many_topics(harness, 20)
    for name in names:
        for key, value in (("retention.ms", "5"), ("cleanup.policy", "compact"), ("flush.ms", "7")):
            set_config(harness, TOPIC, name, key, value)
    resources = [DescribeConfigsResource(TOPIC, name, asked) for name in names]
    shared = len(describe(harness, TOPIC, "t").configs) + 1  # one key is internal
    monkeypatch.setattr(describe_configs, "ENTRIES_PER_PIECE", shared + 12)
    assert pieces(harness, resources)[1] == (5 if asked is None else 4)


def test_a_piece_has_fewer_resources_if_these_have_long_values(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = many_topics(harness, 4)
    for name in names:
        set_config(harness, TOPIC, name, "leader.replication.throttled.replicas", "1:1," * 5_000 + "1:1")
    resources = [DescribeConfigsResource(TOPIC, name, None) for name in names]
    monkeypatch.setattr(describe_configs, "ENTRIES_PER_PIECE", 300)
    assert pieces(harness, resources)[1] == 2


def test_a_node_id_of_many_digits_is_work_too(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe_configs, "ENTRIES_PER_PIECE", 100)
    resources = [DescribeConfigsResource(LOGGER, "0" * length, None) for length in range(600, 610)]
    assert pieces(harness, resources)[1] == 5


def test_only_the_keys_that_are_asked_for_are_looked_at(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("retention.ms", "flush.ms"):
        set_config(harness, TOPIC, "t", key, "5")
    read = []
    monkeypatch.setattr(config_entries.ConfigEntries, "_own_entry", lambda *given: read.append(given[2].name))
    entries = config_entries.ConfigEntries(harness.state, include_synonyms=True, include_documentation=False)
    entries.of(TOPIC, "t", {"retention.ms", "segment.bytes"})
    assert read == ["retention.ms"]
    made = entries.effort
    assert [each.name for each in entries.of(BROKER, str(NODE_ID), {"node.id"})] == ["node.id"]
    assert entries.effort == made + 1
