"""Show a record as the JSON object that all sinks of text share."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kraft_wire.exporters.records import ExportRecord

_ENCODER: Final = msgspec.json.Encoder()


def json_fields(cluster: str, record: ExportRecord) -> dict[str, Any]:
    """Return the members of a record's object. A record that can't be decoded has its bytes, which become
    Base64, and the reason."""
    fields: dict[str, Any] = {
        "cluster": cluster,
        "offset": record.offset,
        "index": record.index,
        "epoch": record.epoch,
        "timestamp": record.timestamp_ms,
        "type": record.type,
        "version": record.version,
        "data": record.data,
    }
    if record.has_change:
        fields |= {"before": record.before, "after": record.after}
    if record.problem:
        fields |= {"undecoded": record.problem, "raw": record.value}
    return fields


def json_text(cluster: str, record: ExportRecord) -> bytes:
    """Return a record's object as one line of JSON, without the line's end."""
    return _ENCODER.encode(json_fields(cluster, record))


def image_text(image: dict[str, Any] | None) -> str | None:
    """Return the member ``before`` or ``after`` alone as JSON; None if there is none."""
    return None if image is None else _ENCODER.encode(image).decode()


def data_text(record: ExportRecord) -> str | None:
    """Return the member ``data`` alone as JSON; None if the record can't be decoded."""
    data = record.data
    return None if data is None else _ENCODER.encode(data).decode()
