"""Write records to files of JSON lines: ``NAME-OFFSET.jsonl``, named after the offset of the first record.

A line is on stable storage before its record counts as exported. A crash may leave a torn line at a file's
end; it is cut off when the exporter starts again. What was written but not acknowledged is written once more.
"""

from __future__ import annotations

import os
import re
import stat
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from kraft_wire.exporters.columns import ColumnRecords
from kraft_wire.exporters.json_form import json_text
from kraft_wire.exporters.records import ExportBatch, ExportRecord
from kraft_wire.exporters.settings import ExporterSettings
from kraft_wire.exporters.sinks.blocking import BlockingSink
from kraft_wire.exporters.sinks.files import FILE_MODE, lock
from kraft_wire.lake.flushing import flush
from kraft_wire.storage.disk import read_at

SUFFIX: Final = ".jsonl"
_BLOCK_BYTES: Final = 64 * 1024


class JsonLinesSettings(
    msgspec.Struct,
    frozen=True,
    rename={"max_file_bytes": "max.file.bytes", "max_file_age_ms": "max.file.age.ms"},
):
    """The options of this kind of sink (``kinds.py``)."""

    path: str
    max_file_bytes: int
    max_file_age_ms: int


def make_sink(exporter: ExporterSettings) -> JsonLines:
    """Return the sink of an exporter."""
    return JsonLines(exporter.name, msgspec.convert(exporter.options, JsonLinesSettings))


def line_of(cluster: str, record: ExportRecord) -> bytes:
    """Return a record as a line."""
    return json_text(cluster, record) + b"\n"


class JsonLines(BlockingSink):
    """A ``Sink`` of files in one folder. Another process that writes files of the same exporter there is an
    error."""

    def __init__(self, name: str, settings: JsonLinesSettings) -> None:
        self._name = name
        self._settings = settings
        self._folder = Path(settings.path)
        self._file: _File | None = None
        self._has_arrow = find_spec("pyarrow") is not None

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        files = self._files()
        if files:
            _cut_torn_lines(max(files, key=lambda path: path.stat().st_mtime_ns))

    def _files(self) -> list[Path]:
        name = re.compile(re.escape(self._name) + "-[0-9]{20}" + re.escape(SUFFIX))
        return [path for path in self._folder.iterdir() if name.fullmatch(path.name)]

    def _export(self, batch: ExportBatch) -> None:
        data = self._lines(batch)
        if self._file is not None and self._is_full(self._file):
            self._close()
        if self._file is None:
            path = self._folder / f"{self._name}-{batch.first_offset:020d}{SUFFIX}"
            _cut_torn_lines(path)
            self._file = _File(path)
        self._file.append(data)

    def _lines(self, batch: ExportBatch) -> bytes:
        if self._has_arrow and isinstance(batch.records, ColumnRecords):
            from kraft_wire.exporters.arrow_lines import lines_of

            return lines_of(batch)
        return b"".join([line_of(batch.cluster, record) for record in batch.records])

    def _is_full(self, file: _File) -> bool:
        age_ms = (time.monotonic() - file.opened_s) * 1000
        return file.size_bytes >= self._settings.max_file_bytes or age_ms >= self._settings.max_file_age_ms

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


class _File:
    """A file that this process appends to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE_MODE)
        self.opened_s = time.monotonic()
        self._failed = False
        try:
            lock(self._fd, path, "it")
            status = os.fstat(self._fd)
            self.size_bytes = status.st_size
            self._is_regular = stat.S_ISREG(status.st_mode)
            flush([path.parent])
        except BaseException:
            os.close(self._fd)
            raise

    def append(self, data: bytes) -> None:
        """Write and flush. After an error what was written is cut off again."""
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._fd, left) :]
            if self._is_regular:
                os.fdatasync(self._fd)
        except BaseException:
            self._failed = True
            raise
        self.size_bytes += len(data)

    def close(self) -> None:
        try:
            if self._failed and self._is_regular:
                os.ftruncate(self._fd, self.size_bytes)
        finally:
            os.close(self._fd)


def _cut_torn_lines(path: Path) -> None:
    """Cut off what a crash left at the end of a file: bytes without a line's end, lines that aren't JSON."""
    if not path.is_file():
        return
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        lock(fd, path, "it")
        size_bytes = os.fstat(fd).st_size
        end = _end_of_lines(fd, size_bytes)
        if end < size_bytes:
            os.ftruncate(fd, end)
            os.fdatasync(fd)
    finally:
        os.close(fd)


def _end_of_lines(fd: int, size_bytes: int) -> int:
    """Return where the last whole line ends; 0 if there is none."""
    end = _after_newline(fd, size_bytes)
    while end:
        begin = _after_newline(fd, end - 1)
        try:
            msgspec.json.decode(read_at(fd, begin, end - begin))
        except (msgspec.DecodeError, UnicodeDecodeError):
            end = begin
        else:
            break
    return end


def _after_newline(fd: int, before: int) -> int:
    """Return the position after the last line feed before a position; 0 if there is none."""
    end = before
    while end:
        begin = max(0, end - _BLOCK_BYTES)
        found = read_at(fd, begin, end - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0
