"""Run three controllers with exporters of all kinds, and end, pause and cut off one after the other."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec

from compat.campaigns.exporters import rules, sinks
from compat.campaigns.exporters.hooks import Behaviour, Hangs, Hook, every_tenth_fails, steady
from compat.campaigns.exporters.rules import Exported, Look, Span
from compat.harness import clients
from compat.harness.chaos import faults
from compat.harness.chaos.arena import Arena, scratch_in_memory
from compat.harness.chaos.faults import Fault
from compat.harness.chaos.ledger import TopicContent
from compat.harness.chaos.workload import Workload
from compat.harness.kafka.quorum import Controller
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import segments
from compat.harness.processes import Workspace
from compat.harness.waiting import WaitTimeout, wait_until
from kraft_wire.exporters.positions import POSITIONS_FILE
from kraft_wire.log.batch import iter_records, split_batches
from kraft_wire.log.control import decode_control_record
from kraft_wire.log.files import PARTITION_FOLDER
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record

TOPIC: Final = "metadata-trail"
FILES, ROWS, TRAIL, LAKE, AWAY = "files", "rows", "trail", "lake", "away"
LONGEST_FAULT_S: Final = 8.0
SHORTEST_CALM_S: Final = 6.0
"""A controller that was cut off asks for positions again within two seconds, and every second."""
SETTLING_S: Final = 180.0
HANG_S: Final = 6.0
PREFIX: Final = "kraft.wire.exporter."


@contextmanager
def stopped(arena: Arena, victim: Controller) -> Iterator[None]:
    """Stop the victim with SIGTERM, and start it again afterwards."""
    victim.stop()
    yield
    victim.start()


FAULTS: Final[Mapping[str, Fault]] = {
    "killed": faults.killed,
    "stopped": stopped,
    "paused": faults.paused,
    "isolated": faults.isolated,
    "muted": faults.muted,
    "deafened": faults.deafened,
    "without power": faults.without_power,
}


class Outcome(msgspec.Struct):
    """What happened."""

    spans: list[Span] = []
    on_leaders: int = 0
    committed: int = 0
    got: dict[str, tuple[int, int]] = {}
    """By sink, how many records it got, and how many of them again."""
    looks: int = 0
    acknowledged_changes: int = 0
    violations: list[str] = []


def run(tools: ToolServer, workspace: Workspace, count: int, interval_s: float, seed: int) -> Outcome:
    """Inject so many faults, one each interval. Returns what happened, and which rules were violated."""
    folder = scratch_in_memory(workspace.folder)
    with tempfile.TemporaryDirectory(dir=folder) as scratch, ExitStack() as stack:
        trial = Trial(random.Random(seed), stack)
        arena = stack.enter_context(
            Arena(workspace, tools, Path(scratch), disk_mib=512, prepare=trial.prepare)
        )
        trial.run(arena, count, interval_s)
        return trial.outcome


class Trial:
    """The cluster and its sinks. ``stack`` ends them."""

    def __init__(self, chance: random.Random, stack: ExitStack) -> None:
        self.outcome = Outcome()
        self._chance = chance
        self._stack = stack
        self._hooks: dict[str, Hook] = {}
        self._looks: list[Look] = []

    def prepare(self, arena: Arena) -> None:
        """Give the controllers their exporters."""
        behaviours: dict[str, Behaviour] = {
            "steady": steady,
            "tenth": every_tenth_fails,
            "hangs": Hangs(HANG_S),
            AWAY: steady,
        }
        for name, behave in behaviours.items():
            self._hooks[name] = self._stack.enter_context(Hook(arena.clients_address, behave))
            if name != AWAY:
                self._hooks[name].listen()
        for controller in arena.quorum.controllers.values():
            controller.change_properties(self._keys(arena, controller))

    def _keys(self, arena: Arena, controller: Controller) -> dict[str, str]:
        folder = arena.disk(controller).mount_point
        exporters: dict[str, dict[str, str]] = {
            FILES: {"type": "jsonl", "path": str(folder / FILES), "max.file.bytes": "1000000"},
            ROWS: {"type": "parquet", "path": str(folder / ROWS)},
            LAKE: {"type": "lake", "path": str(_lake_of(arena))},
            TRAIL: {
                "type": "kafka",
                "topic": TOPIC,
                "bootstrap.servers": arena.quorum.bootstrap,
                "timeout.ms": "5000",
            },
        }
        for name, hook in self._hooks.items():
            exporters[name] = {"type": "http", "url": hook.url, "timeout.ms": "3000"}
        keys = {"kraft.wire.exporters": ",".join(exporters)}
        for name, options in exporters.items():
            keys |= {f"{PREFIX}{name}.{key}": value for key, value in {**options, "start": "0"}.items()}
        return keys

    def run(self, arena: Arena, count: int, interval_s: float) -> None:
        """Inject the faults, bring the sink back that is away, and judge."""
        configs = {"min.insync.replicas": "1"}
        clients.create_topic(arena.quorum.admin(), TOPIC, 1, 2, configs)
        arena.ledger.acknowledged(TOPIC, TopicContent((0,), configs))
        with Workload(arena.quorum.bootstrap, arena.ledger, 0):
            for _ in range(count):
                began_s = time.monotonic()
                self._fault(arena)
                self._look(arena)
                time.sleep(max(SHORTEST_CALM_S, began_s + interval_s - time.monotonic()))
        arena.check()
        committed = self._committed(arena)
        self._hooks[AWAY].listen()
        self._settle(arena, max(committed))
        self._look(arena)
        self._judge(arena, committed)

    def _fault(self, arena: Arena) -> None:
        name = self._chance.choice(list(FAULTS))
        leader = arena.quorum.leader()
        is_leader = self._chance.random() < 2 / 3
        victim = leader if is_leader else self._chance.choice(arena.quorum.followers())
        self.outcome.on_leaders += is_leader
        self.outcome.spans.append(Span(f"{victim.name} {name}", time.monotonic()))
        with FAULTS[name](arena, victim):
            time.sleep(self._chance.uniform(0.2, LONGEST_FAULT_S))
            self._look(arena)

    def _look(self, arena: Arena) -> None:
        """Note the positions in the files of all controllers. A disk without power has none."""
        for controller in arena.quorum.controllers.values():
            try:
                text = _positions_file(controller).read_bytes()
            except OSError:
                continue
            found = msgspec.json.decode(text)["positions"]
            at_s = time.monotonic()
            self._looks += [Look(at_s, controller.name, name, position) for name, position in found.items()]

    def _committed(self, arena: Arena) -> dict[int, Exported]:
        """Return the log of the leader. The sink that is away has kept it from being trimmed."""
        leader = arena.quorum.leader()
        data = b"".join(path.read_bytes() for path in segments(leader.data_folder))
        found = {}
        for batch in split_batches(data)[0]:
            for record in iter_records(batch):
                if batch.header.is_control:
                    message, version = decode_control_record(record), 0
                else:
                    message, version = decode_metadata_record(record.value)
                if message.NAME != NoOpRecord.NAME:
                    text = msgspec.json.encode(message.to_json(version))
                    found[record.offset] = Exported(record.offset, 0, message.NAME, text)
        assert min(found) == 0, f"the log of {leader.name} was trimmed to {min(found)}"
        return found

    def _settle(self, arena: Arena, last: int) -> None:
        """Wait until all exporters have passed an offset."""

        def have_passed() -> bool:
            text = _positions_file(arena.quorum.leader()).read_bytes()
            positions = msgspec.json.decode(text)["positions"]
            return all(positions.get(name, 0) > last for name in (FILES, ROWS, LAKE, TRAIL, *self._hooks))

        try:
            wait_until(have_passed, f"all exporters to pass offset {last}", SETTLING_S)
        except WaitTimeout as late:
            self.outcome.violations.append(str(late))

    def _judge(self, arena: Arena, committed: Mapping[int, Exported]) -> None:
        outcome = self.outcome
        outcome.committed, outcome.looks = len(committed), len(self._looks)
        outcome.acknowledged_changes = arena.ledger.acknowledged_count
        folders = [arena.disk(each).mount_point for each in arena.quorum.controllers.values()]
        lines = chain.from_iterable(sinks.lines_in(folder / FILES) for folder in folders)
        rows = chain.from_iterable(sinks.rows_in(folder / ROWS) for folder in folders)
        self._judge_records(FILES, committed, _by_offset(lines))
        self._judge_records(ROWS, committed, _by_offset(rows))
        self._judge_records(LAKE, committed, list(sinks.records_in(_lake_of(arena), arena.quorum.cluster_id)))
        outcome.violations += rules.doubled(LAKE, outcome.got[LAKE][1])
        self._judge_records(TRAIL, committed, sinks.messages_in(arena.quorum.bootstrap, TOPIC))
        for name, hook in self._hooks.items():
            deliveries = list(hook.deliveries)
            got = [record for delivery in deliveries for record in delivery.records]
            self._judge_records(name, committed, got)
            looks = [look for look in self._looks if look.exporter == name]
            outcome.violations += rules.repeated_too_late(name, deliveries, outcome.spans)
            outcome.violations += rules.ahead_of_acknowledgement(committed, deliveries, looks)

    def _judge_records(self, sink: str, committed: Mapping[int, Exported], got: list[Exported]) -> None:
        """Judge what a sink has. What was committed after ``committed`` was read doesn't count."""
        known = [record for record in got if record.offset <= max(committed)]
        self.outcome.got[sink] = (len(known), rules.repetitions(known))
        self.outcome.violations += rules.incomplete(sink, committed, known)


def _positions_file(controller: Controller) -> Path:
    return controller.data_folder / PARTITION_FOLDER / POSITIONS_FILE


def _lake_of(arena: Arena) -> Path:
    """Return the lake, which all controllers share."""
    return arena.quorum.workspace.folder / LAKE


def _by_offset(records: Iterator[Exported]) -> list[Exported]:
    """Return the records of several folders, each of which has only a part, in the order of the log."""
    return sorted(records, key=lambda record: record.offset)
