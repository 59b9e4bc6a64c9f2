"""Run a message's generated codec and the careful one, and check that they agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraft_wire.protocol.errors import DecodeError, ProtocolError
from kraft_wire.protocol.message import Message, decode_message_carefully, encode_message_carefully


def read(cls: type[Message], raw: bytes, version: int) -> Any:
    """Decode ``raw``, which must be exactly one message."""
    fast = cls.decode_from(raw, version, 0)
    careful = decode_message_carefully(cls, raw, version, 0)
    # Compare by repr, because NaN doesn't equal itself.
    assert repr(fast) == repr(careful)
    assert fast[1] == len(raw)
    return fast[0]


def written(message: Message, version: int) -> bytes:
    """Encode the message."""
    out: list[bytes] = []
    encode_message_carefully(message, out, version)
    raw = message.encode(version)
    assert b"".join(out) == raw
    return raw


def unreadable(cls: type[Message], raw: bytes, version: int) -> tuple[str, int, str]:
    """Return field, offset and reason of the error from decoding ``raw``."""
    fast = _error(lambda: cls.decode_from(raw, version, 0))
    careful = _error(lambda: decode_message_carefully(cls, raw, version, 0))
    assert isinstance(fast, DecodeError)
    assert str(fast) == str(careful)
    assert fast.message == cls.NAME
    assert 0 <= fast.offset <= len(raw)
    return fast.field, fast.offset, fast.reason


def unwritable(message: Message, version: int) -> ProtocolError:
    """Return the error from encoding the message."""
    out = [b"before"]
    fast = _error(lambda: message.encode_into(out, version))
    careful = _error(lambda: encode_message_carefully(message, out, version))
    assert repr(fast) == repr(careful)
    assert out == [b"before"]
    return fast


def _error(call: Callable[[], object]) -> ProtocolError:
    try:
        outcome = call()
    except ProtocolError as error:
        return error
    raise AssertionError(f"no error was raised; the result is {outcome!r}")
