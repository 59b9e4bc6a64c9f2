"""Run controllers under load through a quiet time, through outsiders' and through claimants' attacks; restart
a follower and then all of them while claimants go on, all of them again and again while outsiders go on, and
once more when all is over."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import msgspec

from compat.campaigns.strangers import rules
from compat.campaigns.strangers.active_controller import ActiveController, NoController
from compat.campaigns.strangers.load import CREATED, ONE_PARTITION, Figures, Load, create
from compat.campaigns.strangers.plan import ATTACKING, Deeds, Kind, Plan, Target, read_deeds
from compat.campaigns.strangers.rules import Leadership, Sighting
from compat.campaigns.strangers.watch import LogReader, Watch, watching
from compat.harness.chaos.cluster_topics import read_files, topics_in
from compat.harness.kafka.quorum import Controller, ControllerQuorum, connect, directory_id
from compat.harness.paths import ROOT
from compat.harness.processes import ManagedProcess, ProcessFailed
from compat.harness.waiting import WaitTimeout, wait_until
from compat.harness.wire import describe_quorum
from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.messages.describe_quorum_response import PartitionData

ATTACKERS: Final = "compat.campaigns.strangers.attackers"
LISTENING: Final = '"listening"'
PATIENCE_S: Final = 120.0
LOOK_EVERY_S: Final = 0.25
FOLLOWER_RESTARTS_EVERY_S: Final = 3.0
STARTS_APART_S: Final = 1.0
ATTACKS: Final = ("outsiders", "claimants", "one restarts", "restarted", "leaderless")
"""The phases with strangers. A lone controller has no follower that could restart."""


def attacks_on(nodes: int) -> tuple[str, ...]:
    """Return the names of the phases in which strangers attack so many controllers."""
    return tuple(name for name in ATTACKS if nodes > 1 or name != "one restarts")


class Phase(msgspec.Struct):
    """One phase; ``deeds`` is None for the quiet one. ``seed`` is that of its strangers. ``restarts`` counts
    the kills and starts of nodes. ``cores`` and ``strangers_cores`` are the processor
    time that the controllers and the strangers took, in cores. ``looks`` counts the answers about leader and
    epoch. ``well_after_s`` is the time from the strangers' last request until all was well, and
    ``well_after_starts_s`` the longest from the start of the last node, where that is measured."""

    name: str
    took_s: float
    figures: Figures
    leaderships: list[Leadership]
    epochs: tuple[int, int]
    looks: int
    cores: float
    restarts: int = 0
    seed: int | None = None
    deeds: Deeds | None = None
    strangers_cores: float = 0.0
    well_after_s: float | None = None
    well_after_starts_s: float | None = None


class Trial(msgspec.Struct):
    """What became of one quorum. ``leaderships`` are the last one before a follower restarts, and those while
    it restarts. ``violations`` are those of rules without times."""

    name: str
    phases: list[Phase] = []
    leaderships: list[Leadership] = []
    well_after_restart_s: float | None = None
    acknowledged: int = 0
    unknown: int = 0
    is_compared: bool = False
    violations: list[str] = []


class Attack(msgspec.Struct):
    """Running strangers, and what they did once they have ended."""

    process: ManagedProcess
    seed: int
    deeds: Deeds = msgspec.field(default_factory=Deeds)
    cores: float = 0.0


class Trials:
    """The phases of one quorum, one after the other."""

    def __init__(self, quorum: ControllerQuorum, name: str, phase_s: float, rate: float, seed: int) -> None:
        self._quorum = quorum
        self._phase_s = phase_s
        self._rate = rate
        self._seed = seed
        self._logs = LogReader(list(quorum.controllers.values()))
        self._leaderships: list[Leadership] = []
        self._killed_cpu_s = 0.0
        self._attacks = 0
        self._phase_name = ""
        self._well_topics: list[str] = []
        self.trial = Trial(name)

    def run(self) -> Trial:
        """Run all phases. What breaks the trial off is a violation, too."""
        try:
            self._run()
        except (ProcessFailed, WaitTimeout, NoController, ProtocolError, OSError) as failure:
            self._violated(self._phase_name, [f"broken off: {type(failure).__name__}: {failure}"])
        return self.trial

    def _run(self) -> None:
        quorum, trial = self._quorum, self.trial
        quorum.format()
        quorum.start()
        quorum.leader()
        with watching(list(quorum.controllers.values())) as watch:
            wait_until(lambda: self._agree(watch), "all nodes to name the leader", PATIENCE_S)
            with Load(list(quorum.ports.values()), quorum.cluster_id) as load:
                load.wait_until_steady()
                self._quiet(load, watch)
                self._outsiders(load, watch)
                self._claimants(load, watch)
                if "one restarts" in attacks_on(len(quorum.controllers)):
                    self._one_restarts(load, watch)
                self._restarted(load, watch)
                self._leaderless(load, watch)
                trial.well_after_restart_s = self._restart()
        self._count_topics(load)
        self._violated("at the end", [*self._lost(load), *self._unasked()])

    def _agree(self, watch: Watch) -> bool:
        seen = watch.latest().values()
        told = {(sighting.leader_id, sighting.epoch) for sighting in seen}
        return len(seen) == len(self._quorum.controllers) and len(told) == 1

    def _violated(self, when: str, lines: list[str]) -> None:
        named = ", ".join(word for word in (self.trial.name, when) if word)
        if lines:
            print(f"{named}: violations: {len(lines)}, the first: {lines[0]}", flush=True)
        self.trial.violations += [f"{named}: {line}" for line in lines]

    # Phases.

    def _quiet(self, load: Load, watch: Watch) -> None:
        with self._phase("quiet", load, watch, self._phase_s):
            self._let_pass(watch, self._phase_s)

    def _outsiders(self, load: Load, watch: Watch) -> None:
        before = watch.latest()
        with (
            self._phase("outsiders", load, watch, self._phase_s) as (phase, sightings),
            self._attack("outsiders") as attack,
        ):
            self._let_pass(watch, self._phase_s)
        _note(phase, attack)
        self._violated("outsiders", rules.changed(before, sightings, phase.leaderships))
        self._violated("outsiders", rules.misplaced(self._quorum.ports, self._voters_ports()))

    def _claimants(self, load: Load, watch: Watch) -> None:
        before = watch.latest()
        with (
            self._phase("claimants", load, watch, self._phase_s) as (phase, sightings),
            self._attack("claimants") as attack,
        ):
            self._let_pass(watch, self._phase_s)
        _note(phase, attack)
        self._wait_until_well_again(phase)
        self._violated("claimants", rules.changed(before, sightings, phase.leaderships))

    def _one_restarts(self, load: Load, watch: Watch) -> None:
        """Kill a follower and start it again and again while claimants go on; the two others go on."""
        self._read_leaderships()
        before = len(self._leaderships) - 1
        try:
            with (
                self._phase("one restarts", load, watch, self._phase_s) as (phase, _),
                self._attack("claimants") as attack,
            ):
                self._restart_followers(phase, watch)
            _note(phase, attack)
            self._wait_until_well_again(phase)
        finally:  # what was seen is judged also if the trial is broken off
            self._read_leaderships()
            self.trial.leaderships = self._leaderships[before:]

    def _restart_followers(self, phase: Phase, watch: Watch) -> None:
        """Restart the same follower during the phase, or another once it leads."""
        end_s = time.monotonic() + self._phase_s
        while time.monotonic() < end_s:
            leader = self._quorum.leader()
            follower = next(each for each in self._quorum.controllers.values() if each is not leader)
            self._kill(follower)
            follower.start()
            phase.restarts += 1
            self._let_pass(watch, FOLLOWER_RESTARTS_EVERY_S)

    def _restarted(self, load: Load, watch: Watch) -> None:
        """Kill all nodes and start them again while claimants go on: nobody leads, so more is believed."""
        with self._attack("claimants") as attack:
            for controller in self._quorum.controllers.values():
                self._kill(controller)
            self._quorum.start()
            with self._phase("restarted", load, watch, self._phase_s) as (phase, _):
                phase.restarts = len(self._quorum.controllers)
                self._let_pass(watch, self._phase_s)
        _note(phase, attack)
        self._wait_until_well_again(phase)

    def _leaderless(self, load: Load, watch: Watch) -> None:
        """Kill all nodes and start them one after the other, again and again while outsiders go on: nobody
        leads, and they must delay no election."""
        with (
            self._phase("leaderless", load, watch, self._phase_s) as (phase, _),
            self._attack("outsiders") as attack,
        ):
            end_s = time.monotonic() + self._phase_s
            while time.monotonic() < end_s:
                well_after_s = self._restart_in_turn(f"leaderless-{phase.restarts}")
                phase.restarts += len(self._quorum.controllers)
                phase.well_after_starts_s = max(phase.well_after_starts_s or 0.0, well_after_s)
        _note(phase, attack)

    def _restart_in_turn(self, topic: str) -> float:
        """Return the seconds from when the last node listened until all was well."""
        controllers = list(self._quorum.controllers.values())
        for controller in controllers:
            self._kill(controller)
        for controller in controllers:
            controller.start()
            time.sleep(STARTS_APART_S)
        for controller in controllers:
            controller.running_process.wait_for_log(LISTENING, PATIENCE_S)
        listening_s = time.monotonic()
        return self._wait_until_well(topic) - listening_s

    def _kill(self, controller: Controller) -> None:
        """Kill a controller, and read what only its process knew."""
        self._killed_cpu_s += controller.running_process.cpu_seconds()
        controller.kill()
        self._read_leaderships()

    def _wait_until_well_again(self, phase: Phase) -> None:
        assert phase.deeds is not None
        first = len(self._leaderships)
        topic = f"after-{phase.name.replace(' ', '-')}"
        phase.well_after_s = self._wait_until_well(topic) - phase.deeds.last_request_s
        self._read_leaderships()
        phase.leaderships += self._leaderships[first:]
        self._violated(phase.name, rules.misplaced(self._quorum.ports, self._voters_ports()))

    @contextmanager
    def _phase(
        self, name: str, load: Load, watch: Watch, phase_s: float
    ) -> Iterator[tuple[Phase, list[Sighting]]]:
        """Run a phase; what it gives is complete when the block has ended."""
        print(f"{self.trial.name}, {name}: {phase_s:.0f} s ...", flush=True)
        self._phase_name = name
        load.take()
        watch.take()
        self._read_leaderships()
        first = len(self._leaderships)
        epoch, cpu_s, began_s = _highest_epoch(watch), self._cpu_seconds(), time.monotonic()
        phase = Phase(name, 0.0, Figures(), [], (epoch, epoch), 0, 0.0)
        sightings: list[Sighting] = []
        yield phase, sightings
        phase.took_s = time.monotonic() - began_s
        phase.cores = (self._cpu_seconds() - cpu_s) / phase.took_s
        phase.figures, (seen, phase.looks) = load.take(), watch.take()
        sightings += seen
        self._read_leaderships()
        phase.leaderships = self._leaderships[first:]
        phase.epochs = epoch, _highest_epoch(watch)
        self._count_topics(load)
        self.trial.phases.append(phase)

    def _count_topics(self, load: Load) -> None:
        ledger = load.ledger
        self.trial.acknowledged, self.trial.unknown = ledger.acknowledged_count, ledger.unknown_count

    def _read_leaderships(self) -> None:
        self._leaderships += self._logs.take()

    def _let_pass(self, watch: Watch, phase_s: float) -> None:
        end_s = time.monotonic() + phase_s
        while not (ended := watch.ended()):
            if time.monotonic() >= end_s:
                return
            time.sleep(LOOK_EVERY_S)
        raise ProcessFailed("\n".join(ended))

    @contextmanager
    def _attack(self, kind: Kind) -> Iterator[Attack]:
        """Let strangers attack during the block."""
        quorum = self._quorum
        targets = [Target(id, directory_id(id), port) for id, port in quorum.ports.items()]
        seed = self._seed + self._attacks  # strangers don't repeat themselves
        self._attacks += 1
        plan = Plan(kind, targets, quorum.cluster_id, self._rate, seed)
        command = [sys.executable, "-m", ATTACKERS, msgspec.json.encode(plan).decode()]
        process = quorum.workspace.start(kind, command, {"PYTHONPATH": str(ROOT)})
        process.wait_for_log(ATTACKING)
        attack, began_s = Attack(process, seed), time.monotonic()
        yield attack
        if not attack.process.running:
            raise ProcessFailed(f"the strangers ended too early\n{attack.process.tail()}")
        attack.cores = attack.process.cpu_seconds() / (time.monotonic() - began_s)
        attack.process.terminate()
        try:
            attack.deeds = read_deeds(attack.process.log_text())
        except ValueError as error:
            raise ProcessFailed(f"{error}\n{attack.process.tail()}") from None

    def _cpu_seconds(self) -> float:
        running = (each.running_process.cpu_seconds() for each in self._quorum.controllers.values())
        return self._killed_cpu_s + sum(running)

    # Afterwards.

    def _wait_until_well(self, topic: str) -> float:
        """Create a topic, wait until all voters have fetched it, and return the monotonic time of that."""
        client = ActiveController(list(self._quorum.ports.values()), "well")
        try:
            error = create(client, topic, PATIENCE_S)
        finally:
            client.close()
        if error not in CREATED:
            raise ProcessFailed(f"{topic} was not created: {error.name}")
        self._well_topics.append(topic)
        end_offset = wait_until(self._high_watermark, "a leader", PATIENCE_S)
        wait_until(lambda: self._all_have(end_offset), f"all voters to fetch {topic}", PATIENCE_S)
        return time.monotonic()

    def _high_watermark(self) -> int:
        """Return the leader's high watermark, 0 if nobody leads."""
        described = self._describe()
        return 0 if described is None else described.high_watermark

    def _all_have(self, end_offset: int) -> bool:
        described = self._describe()
        if described is None:
            return False
        return all(voter.log_end_offset >= end_offset for voter in described.current_voters)

    def _voters_ports(self) -> dict[int, list[int]]:
        """Return where the leader seeks the voters."""
        with connect(self._quorum.leader()) as client:
            nodes = describe_quorum(client).nodes
        return {node.node_id: [each.port for each in node.listeners] for node in nodes}

    def _describe(self) -> PartitionData | None:
        """Return the quorum as its leader describes it; None if nobody leads."""
        leader = self._quorum.leader_now()
        with suppress(OSError):  # it may have stopped meanwhile
            if leader is not None:
                with connect(leader) as client:
                    partition = describe_quorum(client).topics[0].partitions[0]
                return None if partition.error_code else partition
        return None

    def _restart(self) -> float:
        """Stop all controllers, start them, and return the seconds from then until all was well."""
        print(f"{self.trial.name}: restart ...", flush=True)
        self._phase_name = "restart"
        for controller in self._quorum.controllers.values():
            controller.stop()
        began_s = time.monotonic()
        self._quorum.start()
        return self._wait_until_well("after-restart") - began_s

    def _unasked(self) -> list[str]:
        """Return a line if no leader has looked for a voter where strangers said that it is. A lone leader
        has no other voter."""
        deeds = (phase.deeds for phase in self.trial.phases)
        questions = sum(each.questions for each in deeds if each is not None)
        is_lone = len(self._quorum.controllers) == 1
        return [] if questions or is_lone else ["no leader has looked for a voter at the fake leader"]

    def _lost(self, load: Load) -> list[str]:
        """Stop all controllers, and compare their files with what was acknowledged."""
        end_offset = wait_until(self._high_watermark, "a leader", PATIENCE_S)
        wait_until(lambda: self._all_have(end_offset), "all voters to have everything", PATIENCE_S)
        for name in self._well_topics:
            load.ledger.acknowledged(name, ONE_PARTITION)
        lines = []
        for controller in self._quorum.controllers.values():
            controller.stop()
            files = read_files(controller.data_folder, end_offset)
            if files is None:
                lines.append(f"the files of node {controller.node_id} don't reach offset {end_offset}")
                continue
            wrong = load.ledger.violations(topics_in(files.state))
            lines += [f"node {controller.node_id}: {line}" for line in wrong]
        self.trial.is_compared = True
        return lines


def timed_violations(trial: Trial) -> list[str]:
    """Return what violates the rules about times."""
    lines = rules.hurried(trial.leaderships)
    for phase in trial.phases:
        if phase.well_after_s is not None:
            lines += rules.late(phase.well_after_s, "the last request")
        if phase.well_after_starts_s is not None:
            lines += rules.late(phase.well_after_starts_s, "all nodes were started")
        if phase.name == "one restarts":
            figures = phase.figures
            lines += rules.stalled(figures.creations_ms, figures.failures, figures.waits_ms)
    return [f"{trial.name}: {line}" for line in lines]


def _note(phase: Phase, attack: Attack) -> None:
    phase.seed, phase.deeds, phase.strangers_cores = attack.seed, attack.deeds, attack.cores


def _highest_epoch(watch: Watch) -> int:
    return max(sighting.epoch for sighting in watch.latest().values())
