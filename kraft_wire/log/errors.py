"""Errors in the bytes or the text of a log folder's files."""

from __future__ import annotations


class LogError(Exception):
    """An error in a log folder's contents."""


class CorruptBatch(LogError):
    """Bytes that should be a record batch and are not.

    ``position`` is counted in bytes from the start of the buffer or file that was read. ``offset`` is the
    record offset that the batch has, or should have; -1 if it isn't known.
    """

    def __init__(self, position: int, offset: int, reason: str) -> None:
        super().__init__(position, offset, reason)
        self.position = position
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return f"record batch at byte {self.position} (offset {self.offset}): {self.reason}"


class CutOffBatch(CorruptBatch):
    """A batch that is longer than the bytes that are left for it."""


class NewerControlRecord(CorruptBatch):
    """A control record of a type that this release doesn't know, in a batch whose checksum is right. It is no
    damage: a newer release wrote it."""


class MalformedFile(LogError):
    """A small file whose text is invalid. ``file_name`` is the file's usual name."""

    def __init__(self, file_name: str, reason: str) -> None:
        super().__init__(file_name, reason)
        self.file_name = file_name
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.file_name}: {self.reason}"


class BadSnapshot(LogError):
    """A snapshot without header or footer, or whose batches don't follow each other."""


class BatchTooLarge(LogError):
    """Records that would make a batch above the limit. Nothing was written."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(size_bytes, limit_bytes)
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        return f"a batch of {self.size_bytes} bytes is above the limit of {self.limit_bytes}"
