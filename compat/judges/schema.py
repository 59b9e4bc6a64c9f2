"""Ask Kafka's message generator and its checker of schema changes whether they accept schemas."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from compat.harness.kafka.jars import java, schema_judge_class_path

DEADLINE_S = 120


def verdicts(schemas: Sequence[Any], *folder: str) -> list[str]:
    """Return one line for every schema: accepted or refused.

    For a list of two schemas, the line says whether the first may be changed to the second. If a ``folder``
    is given, the Java code of the accepted schemas is written there.
    """
    done = subprocess.run(
        [java(), "-cp", schema_judge_class_path(), "org.apache.kafka.message.SchemaJudge", *folder],
        input="".join(json.dumps(schema) + "\n" for schema in schemas),
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(schemas)
    return lines
