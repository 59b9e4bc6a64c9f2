"""What can be wrong with the bytes or the text of a log folder."""

from __future__ import annotations


class LogError(Exception):
    """Anything wrong with a log folder's contents."""


class CorruptBatch(LogError):
    """Bytes that should be a record batch and are not.

    ``position`` counts bytes from the start of the buffer that was read, ``offset`` is the record offset
    that the batch has, or should have, as far as it is known (-1 otherwise).
    """

    def __init__(self, position: int, offset: int, reason: str) -> None:
        super().__init__(position, offset, reason)
        self.position = position
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return f"record batch at byte {self.position} (offset {self.offset}): {self.reason}"


class MalformedFile(LogError):
    """The text of one of the small files does not say what it must. ``file_name`` is its usual name."""

    def __init__(self, file_name: str, reason: str) -> None:
        super().__init__(file_name, reason)
        self.file_name = file_name
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.file_name}: {self.reason}"


class BadSnapshot(LogError):
    """A snapshot whose batches do not begin with a header, end with a footer, or hold together in between."""


class BatchTooLarge(LogError):
    """Records that would make a batch above the limit; nothing was written."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(size_bytes, limit_bytes)
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        return f"a batch of {self.size_bytes} bytes is above the limit of {self.limit_bytes}"
