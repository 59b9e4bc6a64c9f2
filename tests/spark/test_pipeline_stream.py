"""What a failed stream tells its user."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from kraft_wire.spark.pipeline.stream import failed


@pytest.mark.parametrize(
    "stack",
    (
        "\n\nJVM stacktrace:\norg.apache.spark.SparkException\n\tat org.apache.spark.api.Runner",
        "\n=== Streaming Query ===\nIdentifier: [id = 1]",
    ),
)
def test_a_failed_stream_is_told_without_the_stacks_of_spark(stack: str) -> None:
    error = failed(Path("lake"), PySparkException(f"Python worker failed to connect back.{stack}"))
    assert str(error) == "lake: the stream that fills it failed: Python worker failed to connect back."
