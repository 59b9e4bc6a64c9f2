"""Drive the raft core of a node, and sort its effects."""

from __future__ import annotations

from collections.abc import Callable

from kraft_wire.controller.node.following import LogFollower
from kraft_wire.controller.node.outbox import Outbox
from kraft_wire.raft import effects
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.events import Event, Tick

Reaction = effects.HighWatermarkAdvanced | effects.BecameLeader | effects.LostLeadership | effects.RoleChanged
"""An effect of the raft core that changes the state of the node."""


class RaftDriver:
    """The raft core as the rest of the node uses it. ``react`` is called with each ``Reaction``, and
    ``appended`` with each batch that is appended to the log."""

    def __init__(
        self,
        core: RaftCore,
        outbox: Outbox,
        follower: LogFollower,
        react: Callable[[Reaction], None],
        appended: Callable[[effects.AppendBatch], None],
    ) -> None:
        self._core = core
        self._outbox = outbox
        self._follower = follower
        self._react = react
        self._appended = appended
        self._uncommitted_bytes = 0

    def drive(self, event: Event) -> None:
        """Pass an event to the core, pass its effects on, then react to them.

        The reactions come last, so that the controller appends after everything that the core appended.
        """
        reactions: list[Reaction] = []
        for effect in self._core.step(event, self._outbox.now):
            match effect:
                case (
                    effects.HighWatermarkAdvanced()
                    | effects.BecameLeader()
                    | effects.LostLeadership()
                    | effects.RoleChanged()
                ):
                    reactions.append(effect)
                    continue
                case effects.Reply(token, response):
                    self._outbox.reply(token, response)
                    continue
                case effects.AppendBatch(data=data):
                    self._uncommitted_bytes += len(data)
                    self._appended(effect)
                case effects.InstallSnapshot(snapshot_id):
                    self._follower.snapshot_installed(snapshot_id)
            self._outbox.emit(effect)
        for reaction in reactions:
            self._react(reaction)

    def run_overdue_timers(self) -> None:
        """Let the core process overdue deadlines before anything is decided.

        After a pause this node may no longer be the leader. Without this it would find out in the middle of
        a decision, by its own proposal.
        """
        deadline_ms = self._core.next_timer_ms()
        if deadline_ms is not None and deadline_ms <= self._outbox.now.monotonic_ms:
            self.drive(Tick())

    def take_uncommitted_bytes(self) -> int:
        """Return the size of the batches appended since the last call."""
        size_bytes, self._uncommitted_bytes = self._uncommitted_bytes, 0
        return size_bytes
