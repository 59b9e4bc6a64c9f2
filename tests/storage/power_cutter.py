"""Cut the power of a store on its own ext4 at random moments: ``python power_cutter.py SEED CUTS``.

A child process writes, and reports through a pipe what it is about to do and what was acknowledged. The
parent shuts the file system down as a power cut would (nothing that isn't flushed reaches the disk), mounts
it again, and compares. Needs root, for the loop device and the mount.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kraft_wire.log.batch import split_batches
from kraft_wire.log.files import ElectionState, MetaProperties, meta_properties_text
from kraft_wire.log.snapshot import SnapshotId, encode_snapshot
from kraft_wire.storage.errors import DiskFailed
from kraft_wire.storage.log.metadata_log import LogConfig
from kraft_wire.storage.snapshots.incoming_snapshot import IncomingSnapshot
from kraft_wire.storage.store import Store
from tests.storage.storage_samples import data_batch, leader_change
from tests.support.power_disk import IN_MEMORY, PowerDisk

LONGEST_WRITING_S = 0.02
CONFIG = LogConfig(segment_bytes=6000, tail_cache_bytes=1000)


def batch_at(base_offset: int, epoch: int, *, first: bool) -> bytes:
    """Return the only batch that is ever written at this place."""
    if first:
        return leader_change(base_offset, epoch)
    size = 20_000 if (base_offset + epoch) % 41 == 0 else 20 + (base_offset * 13 + epoch) % 400
    return data_batch(base_offset, epoch, (base_offset * 7 + epoch) % 5 + 1, size)


class Writer:
    """The child: it does random things, and reports each one before and after."""

    def __init__(self, folder: Path, pipe: int, seed: int) -> None:
        self.chance = random.Random(seed)
        self.pipe = pipe
        self.store = Store.open(folder, node_id=1, config=CONFIG)
        self.epoch = max(
            self.store.log.epochs.latest_epoch or 0,
            0 if self.store.election is None else self.store.election.leader_epoch,
            *(snapshot_id.epoch for snapshot_id in self.store.snapshots.ids),
        )
        self.starts_epoch = True

    def say(self, what: str, *numbers: int) -> None:
        os.write(self.pipe, f"{what} {' '.join(map(str, numbers))}\n".encode())

    def run(self) -> None:
        actions: list[tuple[int, Callable[[], None]]] = [
            (60, self.append),
            (30, self.flush),
            (6, self.elect),
            (3, self.truncate),
            (3, self.snapshot),
            (2, self.trim),
            (1, self.install),
        ]
        self.elect()
        while True:
            (act,) = self.chance.choices([act for _, act in actions], [weight for weight, _ in actions])
            act()

    def append(self) -> None:
        log = self.store.log
        batches = []
        end = log.end_offset
        for _ in range(self.chance.randrange(1, 4)):
            batch = batch_at(end, self.epoch, first=self.starts_epoch)
            self.say("append", end, self.epoch, int(self.starts_epoch))
            self.starts_epoch = False
            batches.append(batch)
            end += int.from_bytes(batch[23:27], "big") + 1
        log.append(batches)

    def flush(self) -> None:
        self.say("flushed", self.store.log.flush())

    def elect(self) -> None:
        self.epoch += 1
        voted = self.chance.randrange(1, 4)
        self.say("voting", self.epoch, voted)
        self.store.write_election_state(ElectionState(-1, self.epoch, voted), kraft_version=0)
        self.say("voted", self.epoch, voted)
        self.starts_epoch = True

    def truncate(self) -> None:
        log = self.store.log
        starts = [
            batch.header.base_offset for batch in log.batches(max(log.start_offset, self._newest_end()))
        ]
        if starts:
            self.elect()  # a follower truncates for the leader of a later epoch
            offset = self.chance.choice(starts)
            self.say("truncating", offset)
            self.say("truncated", log.truncate_to(offset))

    def _newest_end(self) -> int:
        latest = self.store.snapshots.latest
        return 0 if latest is None else latest.end_offset

    def snapshot(self) -> None:
        log = self.store.log
        end = log.flushed_offset
        if end <= max(self._newest_end(), log.start_offset):
            return
        snapshot_id = SnapshotId(end, log.epochs.epoch_of(end - 1) or 0)
        self.store.snapshots.write(snapshot_id, encode_snapshot(snapshot_id, [], [b"state"] * 50, 0, 0))
        self.say("snapshot", *snapshot_id)

    def trim(self) -> None:
        self.store.log.delete_before(self._newest_end())
        for snapshot_id in self.store.snapshots.ids[:-1]:
            self.store.snapshots.delete(snapshot_id)

    def install(self) -> None:
        """Install a snapshot, as a follower does that fell behind."""
        self.elect()
        snapshot_id = SnapshotId(self.store.log.end_offset + self.chance.randrange(1, 50), self.epoch)
        data = b"".join(encode_snapshot(snapshot_id, [], [b"state"] * 50, 0, 0))
        incoming = IncomingSnapshot(self.store.snapshots, self.store.log)
        incoming.append(snapshot_id, 0, data[:100])
        incoming.append(snapshot_id, 100, data[100:])
        assert incoming.verify(snapshot_id) is not None
        self.say("installing", *snapshot_id)
        incoming.install(snapshot_id)
        self.say("installed", *snapshot_id)


class Expected:
    """The contents that the disk must have, and those that it may have, by the child's reports."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.batches: dict[int, bytes] = {}
        self.durable_end = 0
        self.election = (0, 0)
        self.voting = (0, 0)
        self.snapshot = SnapshotId(0, 0)
        self.installing: SnapshotId | None = None

    def hear(self, line: str) -> None:
        self.heard.append(line)
        what, *words = line.split()
        numbers = [int(word) for word in words]
        match what:
            case "append":
                base, epoch, first = numbers
                self.batches = {at: batch for at, batch in self.batches.items() if at < base}
                self.batches[base] = batch_at(base, epoch, first=bool(first))
            case "flushed":
                (self.durable_end,) = numbers
            case "voting":
                self.voting = (numbers[0], numbers[1])
            case "voted":
                self.election = (numbers[0], numbers[1])
            case "truncating":
                self.durable_end = min(self.durable_end, numbers[0])
            case "truncated":
                (self.durable_end,) = numbers
                self.batches = {at: batch for at, batch in self.batches.items() if at < self.durable_end}
            case "snapshot":
                self.snapshot = SnapshotId(*numbers)
            case "installing":
                self.installing = SnapshotId(*numbers)
            case "installed":
                self.snapshot, self.installing = SnapshotId(*numbers), None
                self.batches, self.durable_end = {}, self.snapshot.end_offset

    def check(self, store: Store) -> None:
        """Compare what was found after the cut."""
        log, latest = store.log, store.snapshots.latest or SnapshotId(0, 0)
        assert store.recovery.corrupt_quorum_state is None
        assert not store.recovery.corrupt_snapshots
        assert store.lost_below_offset is None, (store.recovery, self.heard[-20:])
        if self.installing is not None and latest == self.installing:
            assert (log.start_offset, log.end_offset) == (latest.end_offset, latest.end_offset)
        else:
            assert latest.end_offset >= self.snapshot.end_offset, (latest, self.snapshot)
            assert log.end_offset >= self.durable_end, (log.end_offset, self.durable_end)
            for batch in log.batches(log.start_offset):
                base_offset = batch.header.base_offset
                wanted = self.batches.get(base_offset, batch.data)
                if wanted != batch.data:
                    other = split_batches(wanted)[0][0].header
                    raise AssertionError(
                        f"found {batch.header}, not {other}, the last steps: {self.heard[-20:]}"
                    )
        if store.election is not None:
            found = (store.election.leader_epoch, store.election.voted_id)
            assert found in (self.election, self.voting), (found, self.election, self.voting)
        else:
            assert self.election == (0, 0)

    def continue_from(self, store: Store) -> None:
        """Expect from now on what was found."""
        self.heard.append("power cut")
        self.batches = {b.header.base_offset: b.data for b in store.log.batches(store.log.start_offset)}
        self.durable_end = store.log.end_offset
        self.snapshot, self.installing = store.snapshots.latest or SnapshotId(0, 0), None
        if store.election is not None:
            self.election = self.voting = (store.election.leader_epoch, store.election.voted_id)


class PowerCutter:
    """The parent."""

    def __init__(self, disk: PowerDisk, seed: int) -> None:
        self.disk = disk
        self.folder = disk.mount_point / "data"
        self.chance = random.Random(seed)
        self.expected = Expected()
        self.cuts_while_opening = 0

    def format(self) -> None:
        self.folder.mkdir()
        (self.folder / "meta.properties").write_text(meta_properties_text(MetaProperties("cluster", 1)))
        os.sync()

    def cycle(self) -> None:
        """Write for a moment, cut the power, and check."""
        readable, writable = os.pipe()
        seed = self.chance.randrange(2**32)
        child = os.fork()
        if child == 0:
            os.close(readable)
            _write_until_the_disk_fails(self.folder, writable, seed)
        os.close(writable)
        if self.chance.random() < 0.8:
            # Let the child open its folder first, so that most cuts happen while it writes.
            heard = os.read(readable, 1)
        else:
            heard = b""
        time.sleep(self.chance.uniform(0, LONGEST_WRITING_S))
        self.disk.cut_power()
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        with os.fdopen(readable, "rb") as said:
            lines = (heard + said.read()).decode().splitlines()
        self.disk.restore_power()
        if os.waitstatus_to_exitcode(status) not in (0, -signal.SIGKILL):
            raise AssertionError("the writer ended by itself")
        self.cuts_while_opening += not lines
        for line in lines:
            self.expected.hear(line)
        self._look()

    def _look(self) -> None:
        store = Store.open(self.folder, node_id=1, config=CONFIG)
        try:
            self.expected.check(store)
            self.expected.continue_from(store)
        finally:
            store.close()


def _write_until_the_disk_fails(folder: Path, pipe: int, seed: int) -> None:
    """Write for ever; never returns."""
    status = 1
    try:
        Writer(folder, pipe, seed).run()
    except (DiskFailed, OSError):
        status = 0  # as expected
    finally:
        if status:
            sys.excepthook(*sys.exc_info())
        os._exit(status)


def main(seed: int, cuts: int) -> None:
    scratch = Path(tempfile.mkdtemp(dir=IN_MEMORY if IN_MEMORY.is_dir() else None))
    try:
        disk = PowerDisk(scratch / "disk", scratch / "mount")
        try:
            cutter = PowerCutter(disk, seed)
            cutter.format()
            for number in range(cuts):
                try:
                    cutter.cycle()
                except BaseException:
                    print(f"seed {seed}, cut {number}", file=sys.stderr)
                    raise
            expected = cutter.expected
            print(cuts, cutter.cuts_while_opening, expected.durable_end, expected.election[0])
        finally:
            disk.unmount()
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
