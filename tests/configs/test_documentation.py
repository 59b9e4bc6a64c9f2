"""The texts about configuration keys."""

from __future__ import annotations

import pytest

from kraft_wire.configs import schema
from kraft_wire.configs.documentation import (
    client_metrics,
    controllers,
    coordinators,
    documentation_of,
    groups,
    logs,
    network,
    replication,
    security,
    tiered_storage,
    topics,
)
from kraft_wire.configs.own_keys import OWN_KEYS
from kraft_wire.configs.tables import BROKER_DYNAMIC_ONLY
from kraft_wire.metadata.configs import ResourceType

BROKERS = controllers, network, logs, replication, coordinators, tiered_storage, security


@pytest.mark.parametrize(
    ("resource_type", "texts"),
    [
        (ResourceType.TOPIC, topics.TEXTS),
        (ResourceType.GROUP, groups.TEXTS),
        (ResourceType.CLIENT_METRICS, client_metrics.TEXTS),
    ],
)
def test_every_key_has_a_text_and_every_text_a_key(
    resource_type: ResourceType, texts: dict[str, str]
) -> None:
    assert texts.keys() == schema.keys_of(resource_type).keys()
    for name, text in texts.items():
        assert documentation_of(resource_type, name) == text


def test_every_broker_key_has_one_text_in_one_area() -> None:
    names = [name for area in BROKERS for name in area.TEXTS]
    dynamic_only = [key.name for key in BROKER_DYNAMIC_ONLY]
    assert sorted(names) == sorted([*schema.broker_keys(), *dynamic_only])
    for name in [*names, *OWN_KEYS]:
        assert documentation_of(ResourceType.BROKER, name)


@pytest.mark.parametrize("area", [*BROKERS, topics, groups, client_metrics])
def test_texts_are_sentences(area: object) -> None:
    texts: dict[str, str] = vars(area)["TEXTS"]
    assert [text for text in texts.values() if not text.endswith(".") or "  " in text] == []


def test_a_key_that_does_not_exist_has_no_text() -> None:
    assert documentation_of(ResourceType.BROKER, "no.such.key") is None
    assert documentation_of(ResourceType.BROKER_LOGGER, "ROOT") is None
    assert documentation_of(ResourceType.TOPIC, "node.id") is None
