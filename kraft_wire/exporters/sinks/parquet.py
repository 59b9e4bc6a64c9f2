"""Write records to Parquet files: ``NAME-OFFSET-INDEX-TIME.parquet``, named after the first record and the
time of its export in nanoseconds. No name comes twice.

Nobody can read a Parquet file without its end. So each batch is a file of its own, which is on stable storage
under its name before its records count as exported. Many small files of about one size become one
(``folding.py``). A folded file names in its metadata what it holds: after a crash, what is left of that is
deleted.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kraft_wire.exporters.arrow_rows import (
    SCHEMA,
    SCHEMA_WITH_CHANGES,
    in_schema,
    table_of,
    table_with_changes,
)
from kraft_wire.exporters.records import ExportBatch
from kraft_wire.exporters.settings import ExporterSettings
from kraft_wire.exporters.sinks import SinkFailed
from kraft_wire.exporters.sinks.blocking import BlockingSink
from kraft_wire.exporters.sinks.files import FILE_MODE, lock
from kraft_wire.exporters.sinks.folding import FOLD, Folding
from kraft_wire.lake.flushing import flush

SUFFIX: Final = ".parquet"
FOLDED: Final = b"kraft.wire.folded"
REPEATED: Final = ("cluster", "type")
"""The columns with few different values."""


class ParquetSettings(msgspec.Struct, frozen=True, rename={"max_file_bytes": "max.file.bytes"}):
    """The options of this kind of sink (``kinds.py``)."""

    path: str
    max_file_bytes: int


def make_sink(exporter: ExporterSettings) -> ParquetFiles:
    """Return the sink of an exporter."""
    settings = msgspec.convert(exporter.options, ParquetSettings)
    return ParquetFiles(exporter.name, settings, with_changes=exporter.changes)


class ParquetFiles(BlockingSink):
    """A ``Sink`` of files in one folder. Another process that writes files of the same exporter there is an
    error."""

    def __init__(self, name: str, settings: ParquetSettings, *, with_changes: bool = False) -> None:
        self._name = name
        self._table_of = table_with_changes if with_changes else table_of
        self._settings = settings
        self._folder = Path(settings.path)
        self._lock = -1
        self._folding = self._no_folding()

    def _no_folding(self) -> Folding:
        return Folding(self._fold, self._settings.max_file_bytes)

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self._folder / f".{self._name}.lock")
        for path in self._folder.glob(f".{self._name}-*{SUFFIX}.part"):
            path.unlink()
        for path in self._files():
            if path.exists():
                self._delete_folded(path)
        for path in self._files()[1 - FOLD :]:
            if path.stat().st_size * FOLD <= self._settings.max_file_bytes:
                self._folding.add(path)

    def _close(self) -> None:
        folding, self._folding = self._folding, self._no_folding()
        try:
            folding.finish()
        finally:
            if self._lock >= 0:
                os.close(self._lock)
                self._lock = -1

    def _files(self) -> list[Path]:
        name = re.compile(re.escape(self._name) + r"-[0-9]{20}--?[0-9]+-[0-9]+" + re.escape(SUFFIX))
        return sorted(path for path in self._folder.iterdir() if name.fullmatch(path.name))

    def _delete_folded(self, path: Path) -> None:
        """Delete what is left of the files that a file was folded from."""
        try:
            metadata = pq.read_metadata(path).metadata or {}
        except pa.ArrowInvalid as error:
            raise SinkFailed(f"{path} is damaged: {error}; move it away") from None
        for name in msgspec.json.decode(metadata.get(FOLDED, b"[]"), type=list[str]):
            if name != path.name:
                (self._folder / name).unlink(missing_ok=True)

    def _export(self, batch: ExportBatch) -> None:
        self._folding.go_on()
        first = batch.records[0]
        place = f"{first.offset:020d}-{first.index}-{time.time_ns()}"
        path = self._folder / f"{self._name}-{place}{SUFFIX}"
        part = _part_of(path)
        table = self._table_of(batch)
        with _writer(part, table.schema) as writer:
            writer.write_table(table)
        self._publish(part, path)
        self._folding.add(path)

    def _publish(self, part: Path, path: Path) -> None:
        part.chmod(FILE_MODE)
        flush([part])
        part.replace(path)
        flush([self._folder])

    def _fold(self, files: list[Path]) -> Path:
        """Put files together into one with the name of the first, and return it."""
        path = files[0]
        part = _part_of(path)
        names = msgspec.json.encode([each.name for each in files])
        schema = SCHEMA_WITH_CHANGES if any(map(_has_changes, files)) else SCHEMA
        with _writer(part, schema.with_metadata({FOLDED: names})) as writer:
            for each in files:
                with pq.ParquetFile(each) as file:
                    for group in range(file.num_row_groups):
                        table = file.read_row_group(group).replace_schema_metadata(None)
                        writer.write_table(in_schema(table, schema))
        self._publish(part, path)
        self._delete_folded(path)
        return path


def _has_changes(path: Path) -> bool:
    """Whether a file has what records change: the exporter's key may have been set later."""
    return len(pq.read_schema(path)) == len(SCHEMA_WITH_CHANGES)


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=REPEATED)


def _part_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _locked(path: Path) -> int:
    """Make sure that nobody else writes files of this exporter. Returns the file that holds the lock."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        lock(fd, path, "files of this exporter")
    except BaseException:
        os.close(fd)
        raise
    return fd
