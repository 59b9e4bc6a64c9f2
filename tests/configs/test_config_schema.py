"""Topic configuration: tables, layers and rules (KafkaConfigSchema, LogConfig)."""

from __future__ import annotations

import pytest

from kraft_wire.configs import schema
from kraft_wire.configs.types import ConfigSource, ConfigType
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.config_record import ConfigRecord
from tests.controller.controller_harness import NODE_ID, Harness

RETENTION = "retention.ms"
REMOTE = {"remote.log.storage.system.enable": "true"}


def set_config(harness: Harness, kind: ResourceType, name: str, key: str, value: str) -> None:
    record = ConfigRecord(resource_type=kind.value, resource_name=name, name=key, value=value)
    harness.replay([(record, 0)])


def effective(harness: Harness, key: str, overrides: dict[str, str] | None = None) -> schema.EffectiveConfig:
    found = [
        c
        for c in schema.effective_topic_configs(harness.state.config_layers, overrides or {})
        if c.name == key
    ]
    assert len(found) == 1
    return found[0]


def test_every_default_passes_its_own_checks() -> None:
    tables = [schema.topic_keys(), schema.broker_keys(), schema.group_keys(), schema.client_metrics_keys()]
    assert all(len(table) > 2 for table in tables)
    for table in tables:
        for name, key in table.items():
            assert key.name == name
            if key.default is not None:
                key.check(key.default)


def test_every_synonym_is_a_broker_key_of_the_same_kind() -> None:
    for topic_key in schema.topic_keys():
        for synonym in schema.topic_synonyms(topic_key):
            assert schema.broker_key(synonym.name) is not None
            assert synonym.name in schema.topic_fallback_keys()
    for group_key in schema.group_keys():
        if synonym_name := schema.group_synonym(group_key):
            assert schema.broker_key(synonym_name) is not None


def test_every_dynamic_key_is_a_broker_key() -> None:
    assert schema.is_dynamic_broker_key("min.insync.replicas")
    assert not schema.is_dynamic_broker_key("node.id")
    assert schema.broker_key("leader.replication.throttled.rate") is not None
    assert "leader.replication.throttled.rate" not in schema.broker_keys()
    assert schema.broker_key("no.such.key") is None


def test_which_keys_a_resource_has() -> None:
    assert schema.keys_of(ResourceType.TOPIC) is schema.topic_keys()
    assert schema.keys_of(ResourceType.BROKER) is schema.broker_keys()
    assert schema.keys_of(ResourceType.BROKER_LOGGER) == {}
    assert schema.keys_of(99) == {}


def test_layers_from_the_weakest_to_the_strongest() -> None:
    assert effective(Harness(), RETENTION).source is ConfigSource.DEFAULT
    harness = Harness(static_configs={"log.retention.hours": "2"})
    config = effective(harness, RETENTION)
    assert (config.value, config.source, config.synonym) == (
        "7200000",
        ConfigSource.STATIC_BROKER,
        "log.retention.hours",
    )
    set_config(harness, ResourceType.BROKER, "", "log.retention.ms", "3")
    assert effective(harness, RETENTION).value == "3"
    assert effective(harness, RETENTION).source is ConfigSource.DYNAMIC_DEFAULT_BROKER
    set_config(harness, ResourceType.BROKER, "1", "log.retention.ms", "99")
    assert effective(harness, RETENTION).value == "3"
    set_config(harness, ResourceType.BROKER, str(NODE_ID), "log.retention.ms", "4")
    assert effective(harness, RETENTION).value == "4"
    assert effective(harness, RETENTION).source is ConfigSource.DYNAMIC_BROKER
    config = effective(harness, RETENTION, {RETENTION: "5"})
    assert (config.value, config.source, config.synonym) == ("5", ConfigSource.TOPIC, RETENTION)
    assert config.type is ConfigType.LONG
    assert not config.read_only
    assert not config.sensitive


def test_the_first_synonym_wins_within_a_layer() -> None:
    harness = Harness(static_configs={"log.retention.hours": "1", "log.retention.minutes": "1"})
    assert effective(harness, RETENTION).value == "60000"


def test_configs_come_by_name_internal_ones_only_where_set() -> None:
    names = [config.name for config in schema.effective_topic_configs(Harness().state.config_layers, {})]
    assert names == sorted(names)
    assert "internal.segment.bytes" not in names
    overrides = {"internal.segment.bytes": "100"}
    names = [
        config.name for config in schema.effective_topic_configs(Harness().state.config_layers, overrides)
    ]
    assert "internal.segment.bytes" in names


def test_one_value_of_a_topic() -> None:
    harness = Harness()
    harness.add_topic("t", [0])
    assert schema.effective_topic_config(harness.state.config_layers, "t", "min.insync.replicas") == "1"
    set_config(harness, ResourceType.TOPIC, "t", "min.insync.replicas", "2")
    assert schema.effective_topic_config(harness.state.config_layers, "t", "min.insync.replicas") == "2"
    assert schema.effective_topic_config(harness.state.config_layers, "u", "min.insync.replicas") == "1"
    with pytest.raises(KeyError):
        schema.effective_topic_config(harness.state.config_layers, "t", "no.such.key")


def test_static_min_isr() -> None:
    assert schema.static_min_insync_replicas({}) == 1
    assert schema.static_min_insync_replicas({"min.insync.replicas": "3"}) == 3


def refusal(
    configs: dict[str, str | None],
    existing: dict[str, str] | None = None,
    static_configs: dict[str, str] | None = None,
) -> str:
    with pytest.raises(ApiError) as refused:
        schema.validate_topic_configs(configs, existing=existing, static_configs=static_configs)
    assert refused.value.code is ErrorCode.INVALID_CONFIG
    return refused.value.message


def test_good_topic_configs() -> None:
    schema.validate_topic_configs({})
    schema.validate_topic_configs(
        {
            "cleanup.policy": "compact,delete",
            RETENTION: "-1",
            "compression.type": "zstd",
            "segment.bytes": "1048576",
        }
    )


@pytest.mark.parametrize(
    ("configs", "mentions"),
    [
        ({"no.such.key": "1"}, "no.such.key"),
        ({RETENTION: None, "flush.ms": None}, "flush.ms, retention.ms"),
        ({RETENTION: "soon"}, "retention.ms=soon"),
        ({"segment.bytes": "1048575"}, "at least 1048576"),
        ({"cleanup.policy": "archive"}, "compact, delete"),
        ({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"}, "max.compaction.lag.ms, 9"),
    ],
)
def test_bad_topic_configs(configs: dict[str, str | None], mentions: str) -> None:
    assert mentions in refusal(configs)


def test_compaction_lags_are_compared_with_what_the_node_has() -> None:
    static = {"log.cleaner.max.compaction.lag.ms": "9"}
    assert "max.compaction.lag.ms, 9" in refusal({"min.compaction.lag.ms": "10"}, static_configs=static)
    schema.validate_topic_configs({"min.compaction.lag.ms": "9"}, static_configs=static)


@pytest.mark.parametrize(
    "configs",
    [
        {"cleanup.policy": "compact"},
        {"cleanup.policy": "compact,delete"},
        {"retention.ms": "10", "local.retention.ms": "11"},
        {"retention.ms": "10", "local.retention.ms": "-1"},
        {"retention.bytes": "10", "local.retention.bytes": "11"},
        {"retention.bytes": "10", "local.retention.bytes": "-1"},
        {"remote.log.copy.disable": "true", "retention.ms": "10", "local.retention.ms": "9"},
        {"remote.copy.lag.ms": "11", "local.retention.ms": "10"},
        {"remote.copy.lag.bytes": "11", "retention.bytes": "10"},
    ],
)
def test_what_remote_storage_does_not_go_with(configs: dict[str, str | None]) -> None:
    refusal({**configs, "remote.storage.enable": "true"}, static_configs=REMOTE)
    schema.validate_topic_configs({**configs, "remote.storage.enable": "false"}, static_configs=REMOTE)


@pytest.mark.parametrize(
    "configs",
    [
        {},
        {"cleanup.policy": "delete"},
        {"retention.ms": "10", "local.retention.ms": "10"},
        {"retention.bytes": "-1", "local.retention.bytes": "11"},
        {"retention.ms": "-1", "local.retention.ms": "-1"},
        {"remote.log.copy.disable": "true", "local.retention.ms": "-2"},
        {"remote.copy.lag.ms": "10", "local.retention.ms": "10"},
        {"remote.copy.lag.ms": "-1", "local.retention.ms": "10"},
    ],
)
def test_what_remote_storage_goes_with(configs: dict[str, str | None]) -> None:
    schema.validate_topic_configs({**configs, "remote.storage.enable": "true"}, static_configs=REMOTE)


def test_remote_storage_needs_a_cluster_that_has_it() -> None:
    assert "remote.log.storage.system.enable" in refusal({"remote.storage.enable": "true"})


def test_remote_storage_is_not_turned_off_by_accident() -> None:
    existing = {"remote.storage.enable": "true"}
    refusal({"remote.storage.enable": "false"}, existing)
    refusal({}, existing)
    schema.validate_topic_configs({"remote.log.delete.on.disable": "true"}, existing=existing)
