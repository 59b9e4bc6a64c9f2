"""The inputs of the fuzzing tests, and how to repeat one that fails."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from odd_wire import OddWriter, mutate
from random_messages import all_messages

from kraft_wire.protocol.message import Message

MESSAGES = all_messages()
VERSIONS = sum(cls.MAX_VERSION - cls.MIN_VERSION + 1 for cls in MESSAGES)
ODDITIES = (0.0, 0.0, 0.01, 0.05, 0.3)
POOL = 24
"""So many messages are written by the schema at a time; those that are damaged are made of them."""
RANDOM = 4
DAMAGED = 3 * POOL
SHORT_BYTES = 300


class Fuzz:
    """How much is to be tried, and from which seed."""

    def __init__(self, config: pytest.Config) -> None:
        self.inputs: int = config.getoption("--fuzz-inputs")
        self.seed: int = config.getoption("--fuzz-seed")

    def random(self, name: str) -> Random:
        return Random(f"{self.seed} {name}")

    @contextmanager
    def examining(self, what: str, raw: bytes) -> Iterator[None]:
        """Adds to whatever goes wrong inside how it came about."""
        try:
            yield
        except BaseException as error:
            error.add_note(f"{what} of {_literal(raw)}, found with --fuzz-seed {self.seed}")
            raise


def _literal(raw: bytes) -> str:
    """An expression that makes the bytes; long ones repeat themselves."""
    if len(raw) <= SHORT_BYTES:
        return f"bytes.fromhex('{raw.hex()}')"
    return f"zlib.decompress(b64decode('{b64encode(zlib.compress(raw)).decode()}'))"


def message_inputs(random: Random, cls: type[Message], version: int, count: int) -> Iterator[bytes]:
    """Messages as the schema has them, more or less; damaged ones; and a few that are nothing but random."""
    stranger = random.choice(MESSAGES)
    strange = [OddWriter(random, stranger.MAX_VERSION, 0.0).write(stranger) for _ in range(3)]
    while count > 0:
        pool = [OddWriter(random, version, random.choice(ODDITIES)).write(cls) for _ in range(POOL)]
        inputs = pool + [random.randbytes(random.randrange(40)) for _ in range(RANDOM)]
        others = pool + strange
        inputs += [mutate(random, random.choice(pool), others) for _ in range(DAMAGED)]
        yield from inputs[:count]
        count -= len(inputs)
