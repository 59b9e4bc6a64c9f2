"""The base class of all generated messages."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self, TypeVar

from kraft_wire.protocol.careful_decode import decode_carefully
from kraft_wire.protocol.careful_encode import encode_carefully
from kraft_wire.protocol.errors import UnsupportedVersion
from kraft_wire.protocol.json_form import structure_from_json, structure_to_json
from kraft_wire.protocol.schema import Structure


class Message(Structure, gc=False):
    """A message of Kafka's protocol, at any of its versions.

    Fields that a version lacks hold their defaults. Arrays of structs are decoded to lists, all other arrays
    to tuples. Lists and tuples can both be encoded, but a tuple and a list are not equal. Every method that
    takes a version raises UnsupportedVersion outside MIN_VERSION..MAX_VERSION. The codec in this class works
    from the field table; generated classes replace it by a faster one.
    """

    NAME: ClassVar[str] = ""
    API_KEY: ClassVar[int] = -1
    """The RPC's key, the metadata record's id or the coordinator record's type; -1 for other messages."""
    KIND: ClassVar[str] = ""
    """request, response, header, data, metadata, coordinator-key or coordinator-value."""
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = -1

    @classmethod
    def decode(cls, data: bytes, version: int) -> Self:
        """Read a message from the beginning of ``data``. Bytes after it are ignored, as in Java.

        ``data`` must be bytes. Other types raise TypeError, unless they could be read without noticing.
        Raises DecodeError (with the field and its offset) or UnsupportedVersion.
        """
        return cls.decode_from(data, version, 0)[0]

    @classmethod
    def decode_from(cls, data: bytes, version: int, pos: int) -> tuple[Self, int]:
        """Read a message that begins at ``pos``. Returns it and the position after it.

        Raises the errors of ``decode``, and ValueError if ``pos`` is negative.
        """
        return decode_message_carefully(cls, data, version, pos)

    def encode(self, version: int) -> bytes:
        """Return the message's bytes at this version. Raises EncodeError (with the field) or
        UnsupportedVersion.

        A bool may be any integer of one byte: all but 0 are true.
        """
        out: list[bytes] = []
        self.encode_into(out, version)
        return b"".join(out)

    def encode_into(self, out: list[bytes], version: int) -> None:
        """Append the message's bytes, in pieces, to ``out``. After an exception ``out`` is unchanged."""
        encode_message_carefully(self, out, version)

    def to_json(self, version: int) -> dict[str, Any]:
        """Return the message in Kafka's own JSON form, that of its JsonConverter classes and kafka-dump-log.

        Raises EncodeError or UnsupportedVersion.
        """
        check_version(type(self), version)
        return structure_to_json(self, self.NAME, version)

    @classmethod
    def from_json(cls, obj: dict[str, Any], version: int) -> Self:
        """Read Kafka's own JSON form. Raises DecodeError (naming the field) or UnsupportedVersion."""
        check_version(cls, version)
        return structure_from_json(cls, obj, cls.NAME, version)


M = TypeVar("M", bound=Message)


def decode_message_carefully(cls: type[M], data: bytes, version: int, pos: int) -> tuple[M, int]:
    """Do what ``decode_from`` does, for any message. Generated decoders call it when they fail."""
    check_version(cls, version)
    if not isinstance(data, bytes):
        raise TypeError(
            f"{cls.NAME} is decoded from bytes, not from {type(data).__name__}; bytes(...) copies it"
        )
    if pos < 0:
        refuse_position(pos)
    return decode_carefully(cls, cls.NAME, data, version, pos)


def refuse_position(pos: int) -> NoReturn:
    """Refuse a negative position, which Python would count from the end."""
    raise ValueError(f"position {pos} is negative; messages begin at 0 or later")


def encode_message_carefully(message: Message, out: list[bytes], version: int) -> None:
    """Do what ``encode_into`` does, for any message. Generated encoders call it when they fail."""
    check_version(type(message), version)
    pieces: list[bytes] = []
    encode_carefully(message, message.NAME, pieces, version)
    out += pieces


def check_version(cls: type[Message], version: int) -> None:
    """Raise UnsupportedVersion for a version that the message does not have."""
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        exists = cls.MIN_VERSION <= cls.MAX_VERSION
        known = f"known are {cls.MIN_VERSION} to {cls.MAX_VERSION}" if exists else "it has no version"
        raise UnsupportedVersion(cls.NAME, version, known)
