"""Write the input of JavaVerdicts: messages of every kind and version, whole and damaged, small and seeded.

From the project's root, KAFKA being a folder of Kafka's jars:

    python tests/protocol/java/make_input.py > in.txt
    javac -cp "$KAFKA/*" -d out tests/protocol/java/JavaVerdicts.java
    java -cp "$KAFKA/*:out" JavaVerdicts < in.txt > tests/protocol/data/java-4.4.0-verdicts.txt

JavaFacts makes java-4.4.0-facts.txt in the same way, without input.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[2]))

from random_messages import all_messages, random_message

CANDIDATES = 6
DAMAGED_PER_MESSAGE = 2
MALFORMED_TEXT = (
    "eda080", "edbfbf41", "eda0", "ed9fbf", "c080", "c1bf", "e08080", "e28241", "f0908d", "f09f9880",
    "f4908080", "80", "ff41fe",
)  # fmt: skip


def lines() -> Iterator[str]:
    for cls in all_messages():
        # Oldest, newest, and both sides of the change to compact types.
        turns = {cls.MIN_VERSION, cls.FLEXIBLE_FROM - 1, cls.FLEXIBLE_FROM, cls.MAX_VERSION}
        for version in sorted(turns & set(range(cls.MIN_VERSION, cls.MAX_VERSION + 1))):
            random = Random(f"{cls.NAME} {version}")
            candidates = [random_message(random, cls, version).encode(version) for _ in range(CANDIDATES)]
            chosen = sorted(candidates, key=len)[1]
            yield f"{cls.NAME} {version} {chosen.hex()}"
            if version == cls.MAX_VERSION and chosen:
                for _ in range(DAMAGED_PER_MESSAGE):
                    yield f"{cls.NAME} {version} {_damaged(random, chosen).hex()}"
    for text in MALFORMED_TEXT:
        yield f"TopicRecord 0 {len(text) // 2 + 1:02x}{text}{bytes(17).hex()}"


def _damaged(random: Random, raw: bytes) -> bytes:
    if random.random() < 0.3:
        return raw[: random.randrange(len(raw))]
    changed = bytearray(raw)
    changed[random.randrange(len(raw))] = random.choice((0, 1, 2, 127, 128, 255))
    return bytes(changed)


if __name__ == "__main__":
    for line in lines():
        print(line)
