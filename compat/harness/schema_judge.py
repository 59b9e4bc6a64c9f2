"""What Kafka's own message generator and its checker of changes say of schemas."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from compat.harness.jars import java, schema_judge_class_path

DEADLINE_S = 120


def verdicts(schemas: Sequence[Any], *folder: str) -> list[str]:
    """What it says of every schema: accepted or refused. A folder takes the Java of those that it accepts.

    Of two in a list it says whether the first may become the second.
    """
    done = subprocess.run(
        [java(), "-cp", schema_judge_class_path(), "org.apache.kafka.message.SchemaJudge", *folder],
        input="".join(json.dumps(schema) + "\n" for schema in schemas),
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    told = done.stdout.splitlines()
    assert len(told) == len(schemas)
    return told
