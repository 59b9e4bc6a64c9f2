"""Say which log, and which part of it, a page of batches comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kraft_wire.columnar.page import Page


class SnapshotPlace(NamedTuple):
    """The snapshot that a page comes from. ``timestamp_ms`` is that of the last record that the snapshot
    covers; None if the snapshot's header can't be read."""

    end_offset: int
    epoch: int
    timestamp_ms: int | None


class LogPlace(NamedTuple):
    """The log that a page comes from, and the records of the page that are wanted.

    Records below ``committed_end_offset`` are known to be committed; None if nothing is known. ``snapshot``
    is set for a page of a snapshot; all records of a snapshot are committed. Of a page of the log, only
    records from ``start_offset`` up to, but not including, ``end_offset`` are wanted.
    """

    cluster: str
    committed_end_offset: int | None = None
    snapshot: SnapshotPlace | None = None
    start_offset: int = 0
    end_offset: int | None = None


class PlacedPage(NamedTuple):
    """Some batches and the log that they belong to. ``source`` names where they were read, for errors."""

    page: Page
    place: LogPlace
    source: str
