"""Replay scenarios from transcripts: each command is followed by its output.

# A comment, and an empty line between two commands. elect ---- node 2 leads epoch 1

A test runs the commands and compares the outputs. ``python -m tests.sim.transcript tests/scripts/*.txt``
writes the current outputs into the files; read them as a diff. Every invariant of the simulator is checked at
each step.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.incremental_alter_configs_response import (
    IncrementalAlterConfigsResponse,
)
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.sim.checkers.checkers import ALL
from kraft_wire.sim.checkers.violations import Violation
from kraft_wire.sim.machines.controller_node import ControllerNode
from kraft_wire.sim.machines.disk import Disk
from kraft_wire.sim.machines.metadata_state import state_hash
from kraft_wire.sim.machines.node import SimNode
from kraft_wire.sim.machines.rot import flipped
from tests.sim.commands import set_broker_configs
from tests.sim.scenario import Scenario

CONFIGS_VERSION = 1
SETTING = "ssl.keystore.location"
SEPARATOR = "----"
CHECKERS = {checker.__name__: checker for checker in ALL}


class Transcript:
    """A simulated quorum that executes commands. Each command returns the lines of its output."""

    def __init__(self) -> None:
        self._scenario: Scenario | None = None
        self._leader_id = 0
        self._asked: list[str] = []
        self._commands: dict[str, Callable[..., Iterator[str]]] = {
            "cluster": self._cluster,
            "start": self._start,
            "elect": self._elect,
            "commit": self._commit,
            "propose": self._propose,
            "configure": self._configure,
            "answers": self._answers,
            "run": self._run,
            "isolate": self._isolate,
            "cut": self._cut,
            "heal": self._heal,
            "kill": self._kill,
            "power-cut": self._power_cut,
            "pause": self._pause,
            "shut-down": self._shut_down,
            "stall-disk": self._stall_disk,
            "fail-fsync": self._fail_fsync,
            "flip-bit": self._flip_bit,
            "garble": self._garble,
            "lose-quorum-state": self._lose_quorum_state,
            "delete-snapshots": self._delete_snapshots,
            "new-disk": self._new_disk,
            "snapshot": self._snapshot,
            "unroutable": self._unroutable,
            "state": self._state,
            "applied": self._applied,
            "log": self._log,
            "quorum-state": self._quorum_state,
            "snapshots": self._snapshots,
        }

    def execute(self, line: str) -> list[str]:
        """Run one command and return its output. A violation is part of the output."""
        name, *words = line.split()
        settings = dict(word.split("=") for word in words if "=" in word)
        numbers = [self._number(word) for word in words if "=" not in word and ">" not in word]
        pairs = [tuple(int(id) for id in word.split(">")) for word in words if ">" in word]
        arguments: dict[str, Any] = {"numbers": numbers, "pairs": pairs, "settings": settings}
        try:
            return list(self._commands[name](**arguments))
        except Violation as violation:
            return [str(violation)]

    def _number(self, word: str) -> int:
        """Return a node's id. ``leader`` is the node that was elected last; it may be down by then."""
        return self._leader_id if word == "leader" else int(word)

    @property
    def scenario(self) -> Scenario:
        assert self._scenario is not None, "the first command is `cluster`"
        return self._scenario

    def _nodes(self, numbers: list[int]) -> list[SimNode]:
        return [self.scenario.cluster.nodes[id] for id in numbers] if numbers else self.scenario.nodes

    # Life.

    def _cluster(self, settings: dict[str, str], **_: Any) -> Iterator[str]:
        """Build a cluster. ``without`` names invariants that the scenario itself breaks."""
        without = [CHECKERS[name] for name in settings.pop("without", "").split(",") if name]
        values: dict[str, Any] = {name: int(value) for name, value in settings.items()}
        self._scenario = Scenario(values.pop("seed", 1), without=without, **values)
        yield from ()

    def _start(self, numbers: list[int], **_: Any) -> Iterator[str]:
        for node in self._nodes(numbers):
            node.start()
        yield from ()

    def _kill(self, numbers: list[int], **_: Any) -> Iterator[str]:
        for node in self._nodes(numbers):
            node.kill()
        yield from ()

    def _power_cut(self, numbers: list[int], **_: Any) -> Iterator[str]:
        """Cut the power: everything that isn't flushed is lost."""
        for node in self._nodes(numbers):
            node.disk.lose_unflushed()
            node.lose_power(self.scenario.chance)
        yield from ()

    def _pause(self, numbers: list[int], settings: dict[str, str], **_: Any) -> Iterator[str]:
        for node in self._nodes(numbers):
            node.pause(int(settings["ms"]) * 1000)
        yield from ()

    def _shut_down(self, numbers: list[int], **_: Any) -> Iterator[str]:
        began_us = self.scenario.cluster.scheduler.now_us
        for node in self._nodes(numbers):
            node.shut_down()
            self.scenario.until(lambda node=node: not node.is_up)  # type: ignore[misc]
        took_ms = (self.scenario.cluster.scheduler.now_us - began_us) // 1000
        yield "stopped at once" if took_ms < 500 else "stopped late"

    # Time.

    def _run(self, numbers: list[int], **_: Any) -> Iterator[str]:
        self.scenario.run_for(numbers[0])
        yield from ()

    def _elect(self, **_: Any) -> Iterator[str]:
        """Run until there is a leader and every node that it can reach knows it."""
        self.scenario.until(lambda: self._settled_leader() is not None)
        leader = self._settled_leader()
        assert leader is not None
        self._leader_id = leader.id
        yield f"node {leader.id} leads epoch {leader.raft.epoch}"

    def _commit(self, numbers: list[int], **_: Any) -> Iterator[str]:
        """Run exactly until a leader has committed everything below an offset."""

        def is_committed() -> bool:
            leader = self.scenario.cluster.leader
            return leader is not None and (leader.raft.high_watermark or 0) >= numbers[0]

        self.scenario.until(is_committed, poll_us=50)
        self._leader_id = self.scenario.leader.id
        yield from self._state([self._leader_id])

    def _settled_leader(self) -> SimNode | None:
        leader = self.scenario.cluster.leader
        if leader is None or leader.raft.high_watermark != leader.disk.end_offset:
            return None
        return leader

    def _propose(self, numbers: list[int], settings: dict[str, str], **_: Any) -> Iterator[str]:
        """Propose so many batches of one record each, a few milliseconds apart."""
        node = self._nodes([self._number(settings.get("to", "leader"))])[0]
        for _number in range(numbers[0]):
            if not self.scenario.workload.propose_to(node, 1, 0):
                yield f"node {node.id} takes no proposals"
                return
            self.scenario.run_for(20)
        if not node.is_up:
            yield f"node {node.id} is down"
            return
        yield f"node {node.id} has {node.raft.log_end_offset}, high watermark {node.raft.high_watermark}"

    def _configure(self, numbers: list[int], settings: dict[str, str], **_: Any) -> Iterator[str]:
        """Change the brokers' default configs so many times: ``settings`` of them in one request, each
        ``bytes`` long."""
        node = self._nodes([self._number(settings.get("to", "leader"))])[0]
        assert isinstance(node, ControllerNode), "cores alone take no requests: `cluster controllers=1`"
        for _number in range(numbers[0]):
            value = str(len(self._asked)).rjust(int(settings.get("bytes", 1)), "0")
            self._asked.append("waits")
            node.on_answer = self._take_answer
            request = _change_of_defaults(int(settings.get("settings", 1)), value)
            if not node.ask((len(self._asked) - 1,), request, CONFIGS_VERSION):
                self._asked[-1] = "is refused by a standby"
            self.scenario.run_for(20)
        yield from self._answers()

    def _take_answer(self, token: tuple[int], response: Message) -> None:
        assert isinstance(response, IncrementalAlterConfigsResponse)
        self._asked[token[0]] = f"is answered {ErrorCode.of(response.responses[0].error_code).name}"

    def _answers(self, **_: Any) -> Iterator[str]:
        """Show the results of the requests of ``configure``."""
        for said, count in Counter(self._asked).items():
            yield f"{count} {said}"

    # The network.

    def _isolate(self, numbers: list[int], **_: Any) -> Iterator[str]:
        for node in self._nodes(numbers):
            self.scenario.isolate(node)
        yield from ()

    def _cut(self, pairs: list[tuple[int, int]], **_: Any) -> Iterator[str]:
        self.scenario.cut(pairs)
        yield from ()

    def _heal(self, **_: Any) -> Iterator[str]:
        self.scenario.heal()
        yield from ()

    def _unroutable(self, numbers: list[int], pairs: list[tuple[int, int]], **_: Any) -> Iterator[str]:
        """Let the first node of each pair, before it starts, reach the second only at a bootstrap server's
        address, not at its advertised one."""
        for one, other in pairs:
            self.scenario.make_unroutable(self.scenario.cluster.nodes[one], other)
        yield from ()

    def _garble(self, numbers: list[int], settings: dict[str, str], **_: Any) -> Iterator[str]:
        for node in self._nodes(numbers):
            self.scenario.cluster.garble(node, int(settings["ms"]) * 1000, self.scenario.chance)
        yield from ()

    # Disks.

    def _stall_disk(self, numbers: list[int], settings: dict[str, str], **_: Any) -> Iterator[str]:
        for node in self._nodes(numbers):
            until_us = self.scenario.cluster.scheduler.now_us + int(settings["ms"]) * 1000
            node.disk_stalled_until_us = until_us
        yield from ()

    def _fail_fsync(self, numbers: list[int], **_: Any) -> Iterator[str]:
        for node in self._nodes(numbers):
            node.next_flush_fails = True
        yield from ()

    def _flip_bit(self, numbers: list[int], settings: dict[str, str], **_: Any) -> Iterator[str]:
        """Flip one bit of the batch at an offset."""
        for node in self._nodes(numbers):
            index = node.disk.bases.index(int(settings["offset"]))
            batch = node.disk.batches[index]
            rotten = flipped(batch.data, self.scenario.chance)
            node.disk.batches[index] = msgspec.structs.replace(batch, data=rotten)
            node.disk.is_suspect = True
        yield from ()

    def _lose_quorum_state(self, numbers: list[int], **_: Any) -> Iterator[str]:
        for node in self._nodes(numbers):
            node.disk.lose_election_state()
        yield from ()

    def _delete_snapshots(self, numbers: list[int], **_: Any) -> Iterator[str]:
        for node in self._nodes(numbers):
            node.disk.snapshots.clear()
            node.disk.is_suspect = True
        yield from ()

    def _new_disk(self, numbers: list[int], settings: dict[str, str], **_: Any) -> Iterator[str]:
        """Replace the disk by one as at first; or, with ``directory``, by one with that id and without
        voters."""
        for node in self._nodes(numbers):
            if "directory" in settings:
                directory_id = Uuid(bytes([int(settings["directory"])] * 16))
                node.config = msgspec.structs.replace(node.config, directory_id=directory_id)
                node.disk = Disk(None)
            else:
                node.disk = self.scenario.cluster.formatted_disk(node.id)
        yield from ()

    def _snapshot(self, numbers: list[int], **_: Any) -> Iterator[str]:
        for node in self._nodes(numbers):
            node.take_snapshot()
        self.scenario.run_for(600)
        yield from self._snapshots(numbers)

    # Looking.

    def _snapshots(self, numbers: list[int], **_: Any) -> Iterator[str]:
        for node in self._nodes(numbers):
            names = ", ".join(f"{id.end_offset}-{id.epoch}" for id in sorted(node.disk.snapshots))
            yield f"node {node.id} begins at {node.disk.start_offset}, snapshots {names or 'none'}"

    def _state(self, numbers: list[int], **_: Any) -> Iterator[str]:
        for node in self._nodes(numbers):
            if not node.is_up:
                yield f"node {node.id} is down"
                continue
            raft = node.raft
            leader = "nobody" if raft.leader_id is None else f"node {raft.leader_id}"
            lost = "" if node.disk.lost_below is None else f", lost records below {node.disk.lost_below}"
            yield (
                f"node {node.id}: {raft.role.value}, epoch {raft.epoch} of {leader},"
                f" log {raft.log_start_offset} to {raft.log_end_offset},"
                f" high watermark {raft.high_watermark}{lost}"
            )

    def _applied(self, numbers: list[int], **_: Any) -> Iterator[str]:
        """Show which nodes have the same state, including records that aren't committed."""
        alike: dict[bytes, list[int]] = {}
        for node in self._nodes(numbers):
            if node.is_up:
                alike.setdefault(_state_of(node), []).append(node.id)
        for ids in alike.values():
            yield f"the same state: {', '.join(f'node {id}' for id in ids)}"

    def _log(self, numbers: list[int], **_: Any) -> Iterator[str]:
        for node in self._nodes(numbers):
            runs: list[list[int]] = []
            for batch in node.disk.batches:
                if runs and runs[-1][0] == batch.epoch:
                    runs[-1][2] = batch.last_offset
                else:
                    runs.append([batch.epoch, batch.base_offset, batch.last_offset])
            text = ", ".join(f"{first} to {last} of epoch {epoch}" for epoch, first, last in runs)
            yield f"node {node.id}: {text or 'empty'}, flushed {node.disk.flushed_offset}"

    def _quorum_state(self, numbers: list[int], **_: Any) -> Iterator[str]:
        for node in self._nodes(numbers):
            state = node.disk.election
            if state is None:
                yield f"node {node.id}: none"
            else:
                leader, vote = state.leader_id, state.voted_id
                yield f"node {node.id}: epoch {state.leader_epoch}, leader {leader}, voted for {vote}"


def _change_of_defaults(settings: int, value: str) -> IncrementalAlterConfigsRequest:
    names = (f"listener.name.l{number}.{SETTING}" for number in range(settings))
    return set_broker_configs("", dict.fromkeys(names, value))


def _state_of(node: SimNode) -> bytes:
    return state_hash(node.metadata) if isinstance(node, ControllerNode) else node.digest


def replay(text: str) -> str:
    """Return the transcript with its current outputs."""
    transcript = Transcript()
    lines: list[str] = []
    is_output = False
    for line in text.splitlines():
        if not line or line.startswith("#"):
            is_output = False
            lines.append(line)
        elif line == SEPARATOR:
            is_output = True
        elif not is_output:
            lines += [line, *_below(transcript.execute(line))]
    return "\n".join(lines) + "\n"


def _below(output: list[str]) -> list[str]:
    return [SEPARATOR, *output] if output else []


def main(paths: list[str]) -> None:
    """Write the current outputs into each file."""
    for path in map(Path, paths):
        path.write_text(replay(path.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
