"""The base of every generated message: what all of them can do."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import msgspec


class Message(msgspec.Struct, gc=False):
    """One message of Kafka's protocol, at any of its versions.

    Fields that a version lacks hold their defaults. Every method that takes a version raises UnsupportedVersion
    outside MIN_VERSION..MAX_VERSION.
    """

    NAME: ClassVar[str] = ""
    API_KEY: ClassVar[int] = -1
    """The RPC's key, the metadata record's id or the coordinator record's type; -1 where there is none."""
    KIND: ClassVar[str] = ""
    """request, response, header, data, metadata, coordinator-key or coordinator-value."""
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = -1
    FLEXIBLE_FROM: ClassVar[int] = 32768
    """The first version with compact lengths and tagged fields; 32768 where there is none."""

    @classmethod
    def decode(cls, data: bytes, version: int) -> Self:
        """Read a message from the beginning of ``data``; bytes behind it are ignored, as Java does.

        Raises DecodeError (with the field and its offset) or UnsupportedVersion.
        """
        return cls.decode_from(data, version, 0)[0]

    @classmethod
    def decode_from(cls, data: bytes, version: int, pos: int) -> tuple[Self, int]:
        """Read a message that begins at ``pos``; returns it and the position behind it."""
        raise NotImplementedError

    def encode(self, version: int) -> bytes:
        """The message's bytes at this version. Raises EncodeError or UnsupportedVersion."""
        out: list[bytes] = []
        self.encode_into(out, version)
        return b"".join(out)

    def encode_into(self, out: list[bytes], version: int) -> None:
        """Append the message's bytes, in pieces, to ``out``."""
        raise NotImplementedError

    def to_json(self, version: int) -> dict[str, Any]:
        """The message in Kafka's own JSON form, as its JsonConverter classes and kafka-dump-log print it."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, obj: dict[str, Any], version: int) -> Self:
        """Read Kafka's own JSON form. Raises DecodeError naming the field."""
        raise NotImplementedError
