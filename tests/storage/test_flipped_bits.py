"""Flip a bit of any file while a voter of a quorum of three is down. When it starts again, it has all its
data, or knows what it lacks, or refuses to start and names the file. Starting once more gives the same
result."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import msgspec
import pytest

from kraft_wire.log.control import encode_control_batch
from kraft_wire.log.files import ElectionState, MetaProperties, meta_properties_text
from kraft_wire.log.snapshot import SnapshotId, encode_snapshot
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.voters_record import Voter, VotersRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.server.assembly import bootstrap_of, durable_state
from kraft_wire.storage.errors import CorruptFile
from kraft_wire.storage.log.metadata_log import LogConfig
from kraft_wire.storage.recovery.vote_guards import LOST_BELOW, NO_VOTE_UP_TO, guard_text
from kraft_wire.storage.store import Store
from tests.storage.storage_samples import all_bytes, data_batch, epoch_batches, flip

NODE_ID: Final = 1
PROPERTIES: Final = MetaProperties("q3YRw3NrQz6yVPNUPcbbDA", NODE_ID, Uuid.parse("AAAAAAAAAAAAAAAAAAAACg"))
ELECTION: Final = ElectionState(2, 7, 2, Uuid.parse("AAAAAAAAAAAAAAAAAAAACw"))
VOTERS: Final = VotersRecord(voters=[Voter(voter_id=id) for id in (1, 2, 3)])
CONTROL: Final = (KRaftVersionRecord(kraft_version=1), VOTERS)
MAY_REFUSE: Final = {"meta.properties"}
"""Files whose contents no other node has."""

FLIPS_A_FILE: Final = 24


class Found(msgspec.Struct):
    """The state that a node starts with."""

    properties: MetaProperties
    election: ElectionState | None
    no_vote_up_to_epoch: int
    lost_below_offset: int
    start_offset: int
    end_offset: int
    log: bytes
    snapshots: dict[SnapshotId, bytes]


def open_store(path: Path) -> Store:
    return Store.open(path, node_id=NODE_ID, config=LogConfig(segment_bytes=1500))


def find(path: Path) -> Found:
    """Start on a folder."""
    store = open_store(path)
    try:
        durable_state(store)
        bootstrap_of(store)
        return Found(
            store.properties,
            store.election,
            store.no_vote_up_to_epoch,
            store.lost_below_offset or 0,
            store.log.start_offset,
            store.log.end_offset,
            all_bytes(store.log),
            {id: store.snapshots.path(id).read_bytes() for id in store.snapshots.ids},
        )
    finally:
        store.close()


def write_folder(path: Path, remembered: dict[str, int]) -> None:
    """Write records up to offset 60 in several segments and epochs, snapshots, and all other files."""
    path.mkdir()
    (path / "meta.properties").write_text(meta_properties_text(PROPERTIES))
    store = open_store(path)
    store.write_election_state(ELECTION, kraft_version=1)
    store.log.append(epoch_batches(0, 1, []))
    store.log.append([encode_control_batch(1, 1, 0, CONTROL)])
    store.log.append([data_batch(offset, 1) for offset in range(3, 20)])
    store.log.append(epoch_batches(20, 3, [1] * 19))
    store.log.append(epoch_batches(40, 7, [1] * 19))
    for snapshot_id in (SnapshotId(0, 0), SnapshotId(20, 1), SnapshotId(40, 3)):
        values = [b"value %d" % number for number in range(snapshot_id.end_offset)]
        store.snapshots.write(snapshot_id, encode_snapshot(snapshot_id, CONTROL, values, 0, 0))
        store.snapshots.path(snapshot_id).chmod(0o600)
    store.close()
    legacy = encode_snapshot(SnapshotId(0, 0), [], [b"value"], 0, 0)
    (path / "bootstrap.checkpoint").write_bytes(b"".join(legacy))
    for name, number in remembered.items():
        (path / "__cluster_metadata-0" / name).write_text(guard_text(number))


def problems(found: Found, before: Found) -> list[str]:
    """Return what a node must not start with."""
    loss = before.end_offset if found.end_offset < before.end_offset else before.lost_below_offset
    newest = max(found.snapshots, default=SnapshotId(0, 0))
    forgot_votes = found.election is None and found.no_vote_up_to_epoch < ELECTION.leader_epoch
    held = {
        "another identity": found.properties != before.properties,
        "another vote": found.election not in (None, before.election) or forgot_votes,
        "votes where it must not": found.no_vote_up_to_epoch < before.no_vote_up_to_epoch,
        "forgets what it lost": found.lost_below_offset < loss,
        "other records": found.log not in before.log,
        "other snapshots": not found.snapshots.items() <= before.snapshots.items(),
        "records are missing in between": newest.end_offset < found.start_offset,
    }
    return [problem for problem, holds in held.items() if holds]


FILES: Final = [
    "meta.properties",
    "bootstrap.checkpoint",
    *(
        f"__cluster_metadata-0/{name}"
        for name in (
            "00000000000000000000-0000000000.checkpoint",
            "00000000000000000020-0000000001.checkpoint",
            "00000000000000000040-0000000003.checkpoint",
            "00000000000000000000.log",
            "00000000000000000020.log",
            "00000000000000000040.log",
            "00000000000000000000.timeindex",
            "durable-floor",
            "leader-epoch-checkpoint",
            "lost-below",
            "no-vote-up-to",
            "partition.metadata",
            "quorum-state",
        )
    ),
]


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip flushes, which take most of the time: no power is cut here."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)


@pytest.mark.parametrize(
    "remembered", [{}, {LOST_BELOW: 70, NO_VOTE_UP_TO: 1008}], ids=["sound", "with losses"]
)
@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_changes_nothing_that_others_rely_on(
    tmp_path: Path, name: str, remembered: dict[str, int]
) -> None:
    whole, flipped = tmp_path / "whole", tmp_path / "flipped"
    write_folder(whole, remembered)
    before = find(Path(shutil.copytree(whole, tmp_path / "before")))
    assert (before.end_offset, before.lost_below_offset) == (60, remembered.get(LOST_BELOW, 0))
    if not (whole / name).exists():
        assert not remembered
        return
    bits = 8 * (whole / name).stat().st_size
    for number in range(0, bits, max(1, bits // FLIPS_A_FILE) | 1):
        shutil.copytree(whole, flipped)
        flip(flipped / name, number // 8, number % 8)
        for start in ("first", "second"):
            try:
                found = find(flipped)
            except CorruptFile as refusal:
                assert name in MAY_REFUSE and str(flipped / name) in str(refusal), number
            else:
                assert problems(found, before) == [], (start, number)
        shutil.rmtree(flipped)
