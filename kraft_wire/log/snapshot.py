"""Snapshots: their ids and their file names."""

from __future__ import annotations

from typing import NamedTuple


class SnapshotId(NamedTuple):
    """What a snapshot covers: every record below ``end_offset`` (exclusive), the last of them of ``epoch``."""

    end_offset: int
    epoch: int


BOOTSTRAP_SNAPSHOT_ID = SnapshotId(0, 0)
"""The checkpoint that format writes. It is read locally and never served to anybody."""
