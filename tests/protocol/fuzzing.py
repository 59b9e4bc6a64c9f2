"""The inputs of the fuzzing tests, and how to repeat one that fails."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest

from kraft_wire.protocol.message import Message
from tests.support.odd_wire import OddWriter, mutate
from tests.support.random_messages import all_messages, messages_of
from tests.support.schema_samples import field, generated, message

KINDS = ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid")
SIZED_KINDS = ("string", "bytes", "records")


def sample_of(kind: str) -> type[Message]:
    """Return a message with fields of this kind at every possible place, also those that Kafka's schemas
    don't use."""
    array = "[]bytes" if kind == "records" else f"[]{kind}"
    maybe_null = {} if kind in KINDS else {"nullableVersions": "0+"}
    last = {"versions": "2+", "taggedVersions": "2+"}
    inside = [field(name="Only", type=kind), field(name="More", type=array)]
    fields = [
        field(name="Plain", type=kind),
        field(name="Array", type=array),
        field(name="Late", type=kind, versions="1+", ignorable=True),
        field(name="Part", type="SamplePart", fields=inside),
        field(name="MaybeNull", type=kind, **maybe_null),
        field(name="MaybeArray", type=array, nullableVersions="0+"),
        field(name="MaybePart", type="OtherPart", nullableVersions="1+", fields=inside),
        field(name="Parts", type="[]LastPart", versions="0+", fields=inside),
        field(name="TaggedPlain", type="bytes" if kind == "records" else kind, tag=1, **last),
        field(name="TaggedArray", type=array, tag=0, nullableVersions="2+", **last),
        field(name="TaggedPart", type="LatePart", tag=2, nullableVersions="2+", fields=inside, **last),
    ]
    found: type[Message] = generated(message(fields=fields)).SampleRequest
    return found


MESSAGES = all_messages()
OTHER_MESSAGES = {
    **{f"sample of {kind}": sample_of(kind) for kind in (*KINDS, *SIZED_KINDS)},
    **{f"kip_853 {cls.NAME}": cls for cls in messages_of("kraft_wire.raft.membership.kip_853")},
}
"""Messages that can be generated but aren't among Kafka's."""
VERSIONS = sum(cls.MAX_VERSION - cls.MIN_VERSION + 1 for cls in MESSAGES)
ODDITIES = (0.0, 0.0, 0.01, 0.05, 0.3)
POOL = 24
"""The number of messages that the schema writes at a time; damaged messages are made from them."""
RANDOM = 4
DAMAGED = 3 * POOL
SHORT_BYTES = 300


class Fuzz:
    """The number of inputs to try, and the seed."""

    def __init__(self, config: pytest.Config) -> None:
        self.inputs: int = config.getoption("--fuzz-inputs")
        self.seed: int = config.getoption("--fuzz-seed")

    def random(self, name: str) -> Random:
        return Random(f"{self.seed} {name}")

    @contextmanager
    def examining(self, what: str, raw: bytes) -> Iterator[None]:
        """Add the input, and how to repeat it, to any error inside."""
        try:
            yield
        except BaseException as error:
            error.add_note(f"{what} of {_literal(raw)}, found with --fuzz-seed {self.seed}")
            raise


def _literal(raw: bytes) -> str:
    """Return an expression for the bytes; repetitions in long ones are shortened."""
    if len(raw) <= SHORT_BYTES:
        return f"bytes.fromhex('{raw.hex()}')"
    return f"zlib.decompress(b64decode('{b64encode(zlib.compress(raw)).decode()}'))"


def message_inputs(random: Random, cls: type[Message], version: int, count: int) -> Iterator[bytes]:
    """Yield messages that mostly follow the schema, damaged ones, and a few of random bytes."""
    stranger = random.choice(MESSAGES)
    strange = [OddWriter(random, stranger.MAX_VERSION, 0.0).write(stranger) for _ in range(3)]
    while count > 0:
        pool = [OddWriter(random, version, random.choice(ODDITIES)).write(cls) for _ in range(POOL)]
        inputs = pool + [random.randbytes(random.randrange(40)) for _ in range(RANDOM)]
        others = pool + strange
        inputs += [mutate(random, random.choice(pool), others) for _ in range(DAMAGED)]
        yield from inputs[:count]
        count -= len(inputs)
