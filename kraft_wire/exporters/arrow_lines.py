"""Write many records as JSON lines, whole columns at a time: the same bytes as ``json_form`` writes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_wire.exporters.arrow_rows import table_of
from kraft_wire.exporters.json_form import json_text
from kraft_wire.exporters.records import ExportBatch


def lines_of(batch: ExportBatch) -> bytes:
    """Return the records as lines, each with its line feed."""
    table = table_of(batch).combine_chunks()
    if table["data"].null_count:
        return b"".join([json_text(batch.cluster, record) + b"\n" for record in batch.records])
    lines = pc.binary_join_element_wise(
        '{"cluster":"',
        _column(table, "cluster"),
        '","offset":',
        _column(table, "offset"),
        ',"index":',
        _column(table, "index"),
        ',"epoch":',
        _column(table, "epoch"),
        ',"timestamp":',
        _column(table, "timestamp"),
        ',"type":"',
        _column(table, "type"),
        '","version":',
        _column(table, "version"),
        ',"data":',
        _column(table, "data"),
        "}\n",
        "",
    )
    return _bytes_of(lines)


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table[name].chunk(0)
    if name == "timestamp":
        column = column.cast(pa.int64())
    return column if column.type == pa.string() else column.cast(pa.string())


def _bytes_of(texts: pa.Array) -> bytes:
    """Return all texts, one after the other."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return bytes(memoryview(data)[int(ends[0]) : int(ends[-1])])
