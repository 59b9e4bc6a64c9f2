"""Measure decoding a segment to the Arrow batches of its typed tables, in one process with the environment of
Spark's workers: ``python -m compat.benches.spark.decoding SEGMENT RUNS``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from compat.harness.processes import ProcessFailed, die_with_parent
from kraft_wire.log.files import LOG_SUFFIX
from kraft_wire.logs.pages import pages_of
from kraft_wire.logs.places import LogPlace, PlacedPage
from kraft_wire.logs.splits import FilePiece
from kraft_wire.logs.store import Damage
from kraft_wire.protocol.registry import metadata_record_class
from kraft_wire.spark.sessions import WORKER_ENVIRONMENT
from kraft_wire.tabular.record_tables import typed_batches

_PLACE: Final = LogPlace("4L6g3nShT-eMCtK--X86sw", 1_000_000)
_RUNS: Final = 3


class Speed(msgspec.Struct, frozen=True):
    """The time for reading all of a segment, in the best of several runs, and the process's peak memory in
    all runs."""

    records: int
    size_bytes: int
    process_s: float
    wall_s: float
    peak_rss_bytes: int = 0

    @property
    def records_a_core_and_s(self) -> float:
        return self.records / self.process_s


def measure_decoding(segment: Path, runs: int = _RUNS) -> Speed:
    """Decode every record of the segment to the table of its type, with all columns. Raises ProcessFailed."""
    argv = [sys.executable, "-m", "compat.benches.spark.decoding", str(segment), str(runs)]
    environment = {**os.environ, **WORKER_ENVIRONMENT}
    done = subprocess.run(argv, env=environment, capture_output=True, preexec_fn=die_with_parent, check=False)
    if done.returncode:
        raise ProcessFailed(f"{argv}: exit code {done.returncode}\n{done.stderr.decode(errors='replace')}")
    return msgspec.json.decode(done.stdout, type=Speed)


def _once(segment: Path) -> Speed:
    base_offset = int(segment.name.removesuffix(LOG_SUFFIX))
    piece = FilePiece(_PLACE.cluster, str(segment), 0, segment.stat().st_size, base_offset)
    process_s, wall_s = time.process_time(), time.perf_counter()
    records = sum(_rows(found) for found in pages_of(piece))
    return Speed(records, piece.size_bytes, time.process_time() - process_s, time.perf_counter() - wall_s)


def _rows(found: PlacedPage | Damage) -> int:
    assert isinstance(found, PlacedPage), f"the segment is damaged: {found}"
    page, rows = found.page, 0
    for api_key in {kind.api_key for kind in page.kinds}:
        rows += sum(len(batch) for batch in typed_batches(page, metadata_record_class(api_key), _PLACE))
    return rows


def main(arguments: list[str]) -> None:
    segment, runs = Path(arguments[0]), int(arguments[1])
    fastest = min((_once(segment) for _ in range(runs)), key=lambda speed: speed.process_s)
    sys.stdout.write(msgspec.json.encode(replace(fastest, peak_rss_bytes=_peak_rss_bytes())).decode())


def _peak_rss_bytes() -> int:
    """Return VmHWM of this process; getrusage would include the process that it was forked from."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main(sys.argv[1:])
