"""Write the results of Kafka's own classes for messages of every kind and version, valid and damaged, all
small.

From the project's root, after ``make kafka``:

python tests/protocol/java/make_verdicts.py > tests/protocol/data/java-4.4.0-verdicts.txt

A line is "name version hex verdict". The verdict is "error", or the hex of the message written again, the
number of bytes that were not read, and its JSON form. JavaFacts.java makes java-4.4.0-facts.txt.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[3]))

from compat.harness.kafka.jars import find_jars
from compat.judges.codec.java import JavaCodec
from compat.judges.codec.ours import java_name
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.topic_record import TopicRecord
from tests.support.random_messages import all_messages, random_message

KAFKA = "4.4.0"

CANDIDATES = 6
DAMAGED_PER_MESSAGE = 2
MALFORMED_TEXT = (
    "eda080", "edbfbf41", "eda0", "ed9fbf", "c080", "c1bf", "e08080", "e28241", "f0908d", "f09f9880",
    "f4908080", "80", "ff41fe",
)  # fmt: skip


def messages() -> Iterator[tuple[type[Message], int, bytes]]:
    for cls in all_messages():
        # Oldest, newest, and both sides of the change to compact types.
        turns = {cls.MIN_VERSION, cls.FLEXIBLE_FROM - 1, cls.FLEXIBLE_FROM, cls.MAX_VERSION}
        for version in sorted(turns & set(range(cls.MIN_VERSION, cls.MAX_VERSION + 1))):
            random = Random(f"{cls.NAME} {version}")
            candidates = [random_message(random, cls, version).encode(version) for _ in range(CANDIDATES)]
            chosen = sorted(candidates, key=len)[1]
            yield cls, version, chosen
            if version == cls.MAX_VERSION and chosen:
                for _ in range(DAMAGED_PER_MESSAGE):
                    yield cls, version, _damaged(random, chosen)
    for text in MALFORMED_TEXT:
        yield TopicRecord, 0, bytes.fromhex(f"{len(text) // 2 + 1:02x}{text}{bytes(17).hex()}")


def _damaged(random: Random, raw: bytes) -> bytes:
    if random.random() < 0.3:
        return raw[: random.randrange(len(raw))]
    changed = bytearray(raw)
    changed[random.randrange(len(raw))] = random.choice((0, 1, 2, 127, 128, 255))
    return bytes(changed)


def verdict(answer: list[str]) -> str:
    """Return the verdict from the answer of the codec judge."""
    if answer[0].startswith("!"):
        return "error"
    unread, _, written, shown = answer
    if written.startswith("!"):
        return "error"
    return f"{written} {unread} {json.dumps(json.loads(shown), ensure_ascii=False, separators=(',', ':'))}"


def main() -> None:
    """Print the lines."""
    given = list(messages())
    with (
        tempfile.TemporaryDirectory() as folder,
        JavaCodec(find_jars(KAFKA), Path(folder) / "java.log") as java,
    ):
        answers = java.ask([["read", java_name(cls), str(version), raw.hex()] for cls, version, raw in given])
    for (cls, version, raw), answer in zip(given, answers, strict=True):
        print(cls.NAME, version, raw.hex(), verdict(answer))


if __name__ == "__main__":
    main()
