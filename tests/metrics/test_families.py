"""The families that prometheus_client prints, read back by its parsers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kraft_wire.metrics.definitions import DEFINITIONS
from kraft_wire.metrics.families import families
from kraft_wire.metrics.process import Value
from kraft_wire.metrics.windows import Histogram
from tests.metrics.counted import active
from tests.support.scrapes import PARSERS, parsed


class Families(Collector):
    def __init__(self, values: dict[str, Value]) -> None:
        self._values = values

    def collect(self) -> Iterator[Metric]:
        return families(self._values)


FORMATS = pytest.mark.parametrize("content_type", PARSERS)


def printed(values: dict[str, Value], content_type: str) -> dict[str, Metric]:
    encode, _ = choose_encoder(content_type)
    return parsed(encode(Families(values)).decode(), content_type)


@FORMATS
def test_every_name_of_every_metric_can_be_read(content_type: str) -> None:
    found = printed(active().values(), content_type)
    samples = {sample.name for family in found.values() for sample in family.samples}
    for definition in DEFINITIONS.values():
        assert all(name in found or name.removesuffix("_total") in found for name in definition.names.all)
        if not definition.labels:
            assert set(definition.names.all) <= samples
            assert {definition.name, f"{definition.name}_count"} & samples
        assert found[definition.name.removesuffix("_total")].type == definition.kind.value


@FORMATS
def test_a_dialect_has_its_own_unit_and_label(content_type: str) -> None:
    found = printed(
        {"snapshot_age_seconds": 1.5, "finalized_level": {"kraftVersion": 1}, "leader_changes": 3},
        content_type,
    )
    (age,) = found["kafka_server_snapshotemitter_latestsnapshotgeneratedagems"].samples
    assert age.value == 1500
    (level,) = found["kafka_server_metadataloader_finalizedlevel"].samples
    assert level.labels == {"featureName": "kraftVersion"}
    assert found["kafka_controller_kafkacontroller_newactivecontrollerscount"].type == "gauge"


@FORMATS
def test_a_histogram_adds_its_classes_up(content_type: str) -> None:
    histogram = Histogram((1, 10))
    for value in (1, 5, 5, 100):
        histogram.add(value)
    family = printed({"step_duration_seconds": histogram}, content_type)["kraft_wire_step_duration_seconds"]
    buckets = {each.labels["le"]: each.value for each in family.samples if each.name.endswith("_bucket")}
    assert buckets == {"0.001": 1, "0.01": 3, "+Inf": 4}
    assert [each.value for each in family.samples if each.name.endswith("_sum")] == [0.111]
