"""Ask a generated message's own codec and the careful one, and insist that they agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraft_wire.protocol.errors import DecodeError, ProtocolError
from kraft_wire.protocol.message import Message, decode_message_carefully, encode_message_carefully


def read(cls: type[Message], raw: bytes, version: int) -> Any:
    """The message that ``raw`` is from its first byte to its last."""
    fast = cls.decode_from(raw, version, 0)
    careful = decode_message_carefully(cls, raw, version, 0)
    # By its repr, because not-a-number equals nothing.
    assert repr(fast) == repr(careful)
    assert fast[1] == len(raw)
    return fast[0]


def written(message: Message, version: int) -> bytes:
    """The message's bytes."""
    out: list[bytes] = []
    encode_message_carefully(message, out, version)
    raw = message.encode(version)
    assert b"".join(out) == raw
    return raw


def unreadable(cls: type[Message], raw: bytes, version: int) -> tuple[str, int, str]:
    """Where and why ``raw`` is no such message: field, offset, reason."""
    fast = _error(lambda: cls.decode_from(raw, version, 0))
    careful = _error(lambda: decode_message_carefully(cls, raw, version, 0))
    assert isinstance(fast, DecodeError)
    assert str(fast) == str(careful)
    assert fast.message == cls.NAME
    assert 0 <= fast.offset <= len(raw)
    return fast.field, fast.offset, fast.reason


def unwritable(message: Message, version: int) -> ProtocolError:
    """Why the message can't be written."""
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
    raise AssertionError(f"no error, but {outcome!r}")
