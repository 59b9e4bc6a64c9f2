"""The pipeline's benchmark: what it measures is right, whatever the figures are."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.bench_spark.decoding import measure_decoding
from compat.bench_spark.dump_log import measure_dump_log
from compat.bench_spark.logs import KINDS, write_log
from compat.bench_spark.through_spark import Sparks


@pytest.mark.parametrize("kind", KINDS)
def test_every_record_of_a_log_is_decoded(tmp_path: Path, kind: str) -> None:
    segment = write_log(tmp_path, kind, 4_000)
    speed = measure_decoding(segment, 1)
    assert (speed.records, speed.size_bytes) == (4_000, segment.stat().st_size)


def test_spark_and_kafkas_own_reader_take_the_log(tmp_path: Path) -> None:
    segment = write_log(tmp_path, "mix", 2_000)
    with Sparks(1) as spark:
        assert spark.measure(segment, "mix") > 0
    assert measure_dump_log(segment) > 0
