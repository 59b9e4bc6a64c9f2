"""Prometheus sets off an alarm at slow flushes, full disks and missing snapshots, and ends it afterwards."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compat.harness.chaos.arena import scratch_in_memory
from compat.harness.kafka.nodes import Place
from compat.harness.prometheus import pause_between_scrapes
from compat.harness.strace import inject_into_flushes
from compat.interop.monitoring.watched import Alarms, Site, paused, sets_off, wait_for_child, write
from tests.support.power_disk import PowerDisk


@sets_off("KraftWireFlushHangs", "KraftWireFlushSlow")
def test_flushes_take_seconds(site: Site, alarms: Alarms) -> None:
    hangs, slow = alarms
    with site.led("flushing", 1) as quorum:
        (controller,) = quorum.running
        process = controller.running_process
        tracer = inject_into_flushes(quorum.workspace, "strace", process, "delay_enter=7000000")
        site.prometheus.wait_for("flushing", hangs)
        tracer.send_signal(signal.SIGINT)
        site.prometheus.wait_for("flushing", slow)
        site.prometheus.wait_until_over("flushing", *alarms)


@sets_off("KraftWireStepSlow")
def test_a_busy_controller_is_paused_again_and_again(site: Site, alarms: Alarms) -> None:
    with site.led("slow", 1) as quorum, ThreadPoolExecutor(1) as threads:
        (controller,) = quorum.running
        writing = threads.submit(write, controller, 4_000)
        while not site.is_set_off("slow", *alarms):
            assert not writing.done()
            with paused(controller):
                time.sleep(0.08)
            time.sleep(0.02)
        writing.result()
        site.prometheus.wait_until_over("slow", *alarms)


# Disks, logs and snapshots.


@sets_off("KraftWireDiskFills", "KraftWireDiskNearlyFull")
def test_another_process_fills_the_disk(site: Site, alarms: Alarms, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=scratch_in_memory(tmp_path)) as scratch:
        disk = PowerDisk(Path(scratch, "image"), Path(scratch, "disk"))
        try:
            with site.led("disk", 1, place=Place(folder=disk.mount_point)) as quorum:
                hog = disk.mount_point / "hog"
                for size_mib in range(5, 50, 5):
                    hog.write_bytes(bytes(size_mib << 20))
                    pause_between_scrapes()
                site.prometheus.wait_for("disk", *alarms)
                hog.unlink()
                site.prometheus.wait_until_over("disk", *alarms)
                assert quorum.leader()
        finally:
            disk.unmount("--lazy")


@sets_off("KraftWireLogGrows")
def test_clients_write_more_than_is_deleted(site: Site, alarms: Alarms) -> None:
    with site.led("growing", 1, properties={"metadata.max.idle.interval.ms": "0"}) as quorum:
        (controller,) = quorum.running
        while not site.is_set_off("growing", *alarms):
            write(controller, 20, 30_000)
        site.prometheus.wait_until_over("growing", *alarms)


@sets_off("KraftWireSnapshotOld", "KraftWireSnapshotFailed")
def test_no_snapshot_is_made_for_long_and_then_one_fails(site: Site, alarms: Alarms) -> None:
    old, failed = alarms
    with site.led("snapshots", 1, {"metadata.log.max.record.bytes.between.snapshots": "20000"}) as quorum:
        (controller,) = quorum.running
        site.prometheus.wait_for("snapshots", old)
        write(controller, 10, 3_000)
        controller.running_process.wait_for_log('"snapshot written"')
        site.prometheus.wait_until_over("snapshots", old)
        with ThreadPoolExecutor(1) as threads:
            child = threads.submit(wait_for_child, controller, "snapshotter")
            write(controller, 10, 3_000)
            os.kill(child.result(), signal.SIGKILL)
        site.prometheus.wait_for("snapshots", failed)
        site.prometheus.wait_until_over("snapshots", failed)
