"""Many small files of a cluster's table become one, as a part of a batch that adds to them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow.parquet import ParquetFile, write_table

from kraft_wire.spark.pipeline.lake import CLUSTER_FOLDER, PART

SMALL_BYTES: Final = 2**20
MANY: Final = 16
"""So many small files are folded; what comes of it is soon not small any more."""
_MOST: Final = 4 * MANY
_ORDER: Final = ("offset", "epoch")


def fold_small_files(target: Path, staging: Path) -> list[Path]:
    """Stage one file each in place of many small ones, where tables of the target are about to get more.

    Returns the files that go when the batch is complete.
    """
    folded: list[Path] = []
    for folder in sorted(_growing(staging)):
        small = _small_files(target / folder)
        if len(small) >= MANY:
            _write_as_one(small, staging / folder / "folded.parquet")
            folded += small
    return folded


def _growing(staging: Path) -> set[Path]:
    """The folders of clusters' tables, below the target, that rows were staged for which stay."""
    return {
        folder.relative_to(staging)
        for folder in staging.glob(f"[!_]*/{CLUSTER_FOLDER}*")
        if any(folder.glob("*.parquet")) or folder.joinpath(f"kraft_part={PART}").is_dir()
    }


def _small_files(folder: Path) -> list[Path]:
    files = sorted(folder.glob(f"{PART}-*.parquet"))
    return [file for file in files if file.stat().st_size < SMALL_BYTES][:_MOST]


def _write_as_one(files: Sequence[Path], into: Path) -> None:
    """In the order of the log, as far as the table has any."""
    rows = pa.concat_tables(map(_rows_of, files), promote_options="default")
    keys = [(name, "ascending") for name in _ORDER if name in rows.column_names]
    if keys:
        rows = rows.sort_by(keys)
    write_table(rows, into, compression="zstd")


def _rows_of(file: Path) -> pa.Table:
    """Without what Spark has written of the columns beside them: it may not hold for the other files."""
    with ParquetFile(file) as parquet:
        return parquet.read().replace_schema_metadata(None)
