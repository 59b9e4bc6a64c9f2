"""Read the derived tables of the pipeline from Parquet, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kraft_wire.lake.files import LakeFiles
from kraft_wire.lake.report.figures import TABLES, Figures, Reader, Table, figures_of
from kraft_wire.log.errors import LogError

_TRIES: Final = 5


class NoTables(LogError):
    """A lake lacks the tables of the report. The text names what is missing."""


class LakeTables:
    """The tables of the report, below the folder or address that the pipeline writes to. A missing table is
    empty.

    Raises NoTables, OSError, and pyarrow.ArrowInvalid for files that aren't Parquet.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._datasets: dict[str, ds.Dataset] = {}
        self._look()

    def _look(self) -> None:
        files = LakeFiles(self._target, [table.name for table in TABLES])
        found = {table.name: self._open(files, table) for table in TABLES}
        self._datasets = {name: dataset for name, dataset in found.items() if dataset is not None}
        if not self._datasets:
            names = ", ".join(found)
            raise NoTables(
                f"{self._target} has none of the tables {names}: give the target of `pipeline run`"
            )

    def clusters(self) -> list[str]:
        """Return the clusters in any of the tables."""
        found: set[str] = set()
        for dataset in self._datasets.values():
            for batch in dataset.to_batches(columns=["cluster"]):
                found.update(batch.column(0).unique().to_pylist())
        return sorted(found)

    def figures(self, cluster: str) -> Figures:
        """Compute the numbers of a cluster. Start again if a running pipeline replaces files meanwhile."""
        for _ in range(_TRIES - 1):
            try:
                return figures_of(cluster, self._reader(cluster))
            except FileNotFoundError:
                self._look()
        return figures_of(cluster, self._reader(cluster))

    def _reader(self, cluster: str) -> Reader:
        def read(table: Table) -> Iterator[pa.RecordBatch]:
            dataset = self._datasets.get(table.name)
            if dataset is None:
                return iter(())
            batches: Iterator[pa.RecordBatch] = dataset.to_batches(
                columns=list(table.columns), filter=pc.field("cluster") == cluster
            )
            return batches

        return read

    def _open(self, files: LakeFiles, table: Table) -> ds.Dataset | None:
        dataset = files.dataset(table.name)
        missing = [name for name in table.columns if dataset is not None and name not in dataset.schema.names]
        if missing:
            raise NoTables(
                f"{self._target}/{table.name} has no {', '.join(missing)}: `pipeline run` didn't write it"
            )
        return dataset
