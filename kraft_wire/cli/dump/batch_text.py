"""Print batches and records in the lines of Kafka's DumpLogSegments."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_wire.cli.dump.java_json import message_json, metadata_json
from kraft_wire.log.batch import Batch, BatchHeader, Record, iter_records, record_values
from kraft_wire.log.control import CONTROL_RECORD_VERSION, ControlType, control_type, decode_control_record
from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.metadata_record import decode_metadata_record

_COMPRESSION = 0x07
_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_DELETE_HORIZON = 0x40
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_MAX_SEQUENCE = 2**31 - 1
_NO_SEQUENCE = -1

_CONTROL_LABELS = {
    ControlType.LEADER_CHANGE: "LeaderChange:",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlType.KRAFT_VERSION: "KRaftVersion",
    ControlType.KRAFT_VOTERS: "KRaftVoters",
}


def batch_line(header: BatchHeader, position: int, *, is_valid: bool) -> str:
    """Return a batch's own line; ``position`` is the byte of the file at which the batch begins."""
    attributes = header.attributes
    codec = attributes & _COMPRESSION
    horizon = f"[{header.base_timestamp}]" if attributes & _DELETE_HORIZON else ".empty"
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.record_count}"
        f" baseSequence: {header.base_sequence}"
        f" lastSequence: {_sequence(header, header.last_offset_delta)}"
        f" producerId: {header.producer_id} producerEpoch: {header.producer_epoch}"
        f" partitionLeaderEpoch: {header.leader_epoch}"
        f" isTransactional: {_java(attributes & _TRANSACTIONAL)} isControl: {_java(header.is_control)}"
        f" deleteHorizonMs: OptionalLong{horizon} position: {position}"
        f" {_time_kind(header)}: {header.max_timestamp} size: {header.size_bytes} magic: 2"
        f" compresscodec: {_CODECS[codec] if codec < len(_CODECS) else codec}"
        f" crc: {header.crc} isvalid: {_java(is_valid)}"
    )


class RecordText:
    """The printer of a batch's records: offsets, times and sizes (metadata), and values (contents).

    ``decode`` reads data records as metadata; without it their bytes are printed as UTF-8 text.
    """

    def __init__(self, *, with_metadata: bool, with_contents: bool, decode: bool) -> None:
        self._with_metadata = with_metadata
        self._with_contents = with_contents
        self._decode = decode

    def lines(self, batch: Batch) -> Iterator[str]:
        """Yield one line per record. Raises CorruptBatch, with the position counted in the batch."""
        header = batch.header
        if self._with_metadata:
            for record in iter_records(batch):
                yield self._record_line(header, record)
        elif header.is_control or not self._with_contents:
            # Java prints an empty line for each of them.
            yield from ("" for _ in iter_records(batch))
        elif self._decode:
            for offset, value in enumerate(record_values(batch), header.base_offset):
                yield f"| payload: {_metadata_text(value, offset)}"
        else:
            for record in iter_records(batch):
                yield f"|{self._contents(record)}"

    def _record_line(self, header: BatchHeader, record: Record) -> str:
        key_size = -1 if record.key is None else len(record.key)
        line = (
            f"| offset: {record.offset} {_time_kind(header)}: {record.timestamp}"
            f" keySize: {key_size} valueSize: {len(record.value)}"
            f" sequence: {_sequence(header, record.offset - header.base_offset)} headerKeys: []"
        )
        if header.is_control:
            return line + _control_text(record)
        return line + self._contents(record) if self._with_contents else line

    def _contents(self, record: Record) -> str:
        if self._decode:
            return f" payload: {_metadata_text(record.value, record.offset)}"
        key = "" if record.key is None else f" key: {_utf8(record.key)}"
        return f"{key} payload: {_utf8(record.value)}"


def _metadata_text(value: bytes, offset: int) -> str:
    try:
        return metadata_json(*decode_metadata_record(value))
    except ProtocolError as error:
        return f"Error at {offset}, skipping. {error}"


def _control_text(record: Record) -> str:
    label = _CONTROL_LABELS[control_type(record)]
    return f" {label} {message_json(decode_control_record(record), CONTROL_RECORD_VERSION)}"


def _time_kind(header: BatchHeader) -> str:
    return "LogAppendTime" if header.attributes & _APPEND_TIME else "CreateTime"


def _sequence(header: BatchHeader, delta: int) -> int:
    if header.base_sequence == _NO_SEQUENCE:
        return _NO_SEQUENCE
    return (header.base_sequence + delta) & _MAX_SEQUENCE


def _java(flag: int) -> str:
    return "true" if flag else "false"


def _utf8(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
