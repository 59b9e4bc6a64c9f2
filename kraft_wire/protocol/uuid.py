"""Kafka's 16-byte ids (org.apache.kafka.common.Uuid)."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from typing import ClassVar, Final, Self

SIZE_BYTES: Final = 16
_MAX_TEXT_LENGTH: Final = 24
_ALPHABET: Final = re.compile(r"[A-Za-z0-9_-]*")


class Uuid(bytes):
    """A 16-byte id: the raw bytes in network order, printed as unpadded URL-safe base64.

    ``Uuid()`` is the zero id, which Kafka uses for "none". Any other length raises ValueError. Ids are
    ordered by their raw bytes, unsigned.
    """

    __slots__ = ()

    ZERO: ClassVar[Uuid]
    ONE: ClassVar[Uuid]
    """Reserved; the id of the topic ``__cluster_metadata`` and of a lost log directory."""

    def __new__(cls, raw: bytes = bytes(SIZE_BYTES)) -> Self:
        if len(raw) != SIZE_BYTES:
            raise ValueError(f"an id has {SIZE_BYTES} bytes, got {len(raw)}")
        return bytes.__new__(cls, raw)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the base64 form, with full padding or without any. Raises ValueError for anything else."""
        if len(text) > _MAX_TEXT_LENGTH:
            raise ValueError(
                f"id {text[:_MAX_TEXT_LENGTH]!r}... is longer than {_MAX_TEXT_LENGTH} characters"
            )
        try:
            raw = urlsafe_b64decode(_strict_alphabet(text))
        except Base64Error as error:
            raise ValueError(f"id {text!r} is not URL-safe base64: {error}") from None
        if len(raw) != SIZE_BYTES:
            raise ValueError(f"id {text!r} holds {len(raw)} bytes instead of {SIZE_BYTES}")
        return cls(raw)

    @classmethod
    def from_random(cls, sixteen_bytes: bytes) -> Self:
        """Return a version 4 id (RFC 9562) from random bytes.

        If the result is reserved or its text begins with "-", the caller must draw again, as Kafka does.
        """
        raw = bytearray(sixteen_bytes)
        if len(raw) != SIZE_BYTES:
            raise ValueError(f"an id needs {SIZE_BYTES} random bytes, got {len(raw)}")
        raw[6] = (raw[6] & 0x0F) | 0x40
        raw[8] = (raw[8] & 0x3F) | 0x80
        return cls(bytes(raw))

    def __str__(self) -> str:
        return urlsafe_b64encode(self).decode("ascii").rstrip("=")

    def __repr__(self) -> str:
        return f"Uuid({self})"

    def __bool__(self) -> bool:
        """Whether this is not the zero id."""
        return self != _ZERO_BYTES


def _strict_alphabet(text: str) -> bytes:
    body = text.rstrip("=")
    # Padding may be missing, but not incomplete.
    if not _ALPHABET.fullmatch(body) or (body != text and len(text) % 4):
        raise ValueError(f"id {text!r} is not URL-safe base64")
    return body.encode("ascii") + b"=" * (-len(body) % 4)


_ZERO_BYTES: Final = bytes(SIZE_BYTES)
Uuid.ZERO = Uuid()
Uuid.ONE = Uuid(bytes(15) + b"\x01")
