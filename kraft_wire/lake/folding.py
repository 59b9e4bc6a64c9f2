"""Fold many small files of a cluster's table into one, as part of a batch that adds to them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow.parquet import ParquetFile, write_table

from kraft_wire.lake.protocol import CLUSTER_FOLDER, PART

SMALL_BYTES: Final = 2**20
MANY: Final = 16
"""This many small files are folded into one, which soon isn't small any more."""
_MOST: Final = 4 * MANY
_ORDER: Final = ("offset", "epoch")


def fold_small_files(target: Path, staging: Path) -> list[Path]:
    """Stage one file in place of many small ones, for each table that the batch adds to.

    Returns the files to delete when the batch is complete.
    """
    folded: list[Path] = []
    for folder in sorted(_growing(staging)):
        files = sorted((target / folder).glob(f"{PART}-*.parquet"))
        small = enough_to_fold(list(filter(is_small, files)))
        if small:
            fold(small, staging / folder)
            folded += small
    return folded


def is_small(file: Path) -> bool:
    return file.stat().st_size < SMALL_BYTES


def enough_to_fold(small: Sequence[Path]) -> Sequence[Path]:
    """Return the small files that are folded now: none if there are too few."""
    return small[:_MOST] if len(small) >= MANY else []


def fold(files: Sequence[Path], staged: Path) -> None:
    """Stage one file with the rows of others, in the order of the log if the table has one. Who can read the
    first of them can read it."""
    rows = pa.concat_tables(map(_rows_of, files), promote_options="default")
    keys = [(name, "ascending") for name in _ORDER if name in rows.column_names]
    if keys:
        rows = rows.sort_by(keys)
    into = staged / "folded.parquet"
    write_table(rows, into, compression="zstd")
    into.chmod(files[0].stat().st_mode)


def _growing(staging: Path) -> set[Path]:
    """Return the folders of clusters' tables, below the target, with staged rows that will stay."""
    return {
        folder.relative_to(staging)
        for folder in staging.glob(f"[!_]*/{CLUSTER_FOLDER}*")
        if any(folder.glob("*.parquet")) or folder.joinpath(f"kraft_part={PART}").is_dir()
    }


def _rows_of(file: Path) -> pa.Table:
    """Read a file without Spark's metadata about its columns, which may not be true for the other files."""
    with ParquetFile(file) as parquet:
        return parquet.read().replace_schema_metadata(None)
