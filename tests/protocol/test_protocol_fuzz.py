"""Random and damaged bytes for every message at every version: a value or a typed error, within limits.

``make test`` always uses the same inputs. Other inputs, and more of them:

pytest tests/protocol -k fuzz -n 2 --fuzz-inputs 5000000 --fuzz-seed 7
"""

from __future__ import annotations

from functools import partial

import pytest

from kraft_wire.protocol.message import Message
from tests.protocol.codec_checks import (
    check_codec,
    check_inside,
    check_json,
    check_memory,
    check_steps,
    tracing_memory,
)
from tests.protocol.fuzzing import MESSAGES, OTHER_MESSAGES, VERSIONS, Fuzz, message_inputs

MEASURED_OF = 8
"""Work and memory are measured for one of this many inputs, and the slow checks are made."""
ENOUGH = 100
"""From this many inputs on, some must be messages and some must not: otherwise the inputs are of little
use."""
EVERY_MESSAGE = {cls.NAME: cls for cls in MESSAGES} | OTHER_MESSAGES


@pytest.mark.parametrize("cls", EVERY_MESSAGE.values(), ids=EVERY_MESSAGE)
def test_any_bytes_are_a_message_or_a_typed_error(cls: type[Message], pytestconfig: pytest.Config) -> None:
    fuzz = Fuzz(pytestconfig)
    random = fuzz.random(cls.NAME)
    count = -(-fuzz.inputs // VERSIONS)
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        decoded = 0
        for raw in message_inputs(random, cls, version, count):
            with fuzz.examining(f"{cls.NAME} version {version}", raw):
                decoded += check_codec(cls, version, raw)
        assert count < ENOUGH or count // 10 < decoded
        assert count < ENOUGH or decoded < count * 9 // 10 or not cls().encode(version)


@pytest.mark.parametrize("cls", EVERY_MESSAGE.values(), ids=EVERY_MESSAGE)
def test_fuzzed_messages_take_bounded_work_and_memory(
    cls: type[Message], pytestconfig: pytest.Config
) -> None:
    fuzz = Fuzz(pytestconfig)
    random = fuzz.random(cls.NAME)
    count = -(-fuzz.inputs // VERSIONS)
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        inputs = list(message_inputs(random, cls, version, count))[::MEASURED_OF]
        for raw in inputs:
            with fuzz.examining(f"{cls.NAME} version {version}", raw):
                check_inside(cls, version, raw)
                check_json(cls, version, raw)
                check_steps(partial(cls.decode, raw, version), len(raw))
        with tracing_memory():
            for raw in inputs:
                with fuzz.examining(f"{cls.NAME} version {version}", raw):
                    check_memory(partial(cls.decode, raw, version), len(raw))
