"""Check changes of the voters (the TLA+ specification of KRaft's reconfiguration)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kraft_wire.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kraft_wire.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.raft.membership.voters import ReplicaKey, Voter, voters_of_record
from kraft_wire.sim.checkers.checker import Checked, Checker, Recovered
from kraft_wire.sim.machines.control_records import control_records, voters_among
from kraft_wire.sim.machines.snapshot_file import SnapshotFile

Keys = frozenset[ReplicaKey]


class VotersOfLogs(Checker):
    """Follows the voter sets in every node's log, for the checkers below."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._sets: dict[int, list[tuple[int, Keys]]] = {}
        self._recovered_epochs: set[int] = set()

    def recovered(self, recovery: Recovered) -> None:
        self._recovered_epochs.add(recovery.plan.epoch)

    def started(self, node: Checked) -> None:
        self._read(node)

    def installed(self, node: Checked, snapshot: SnapshotFile) -> None:
        self._read(node)

    def _read(self, node: Checked) -> None:
        records = node.disk.voters_records()
        self._sets[node.id] = [(offset, _keys(record)) for offset, record in records]

    def truncated(self, node: Checked, removed: Sequence[AppendBatch], end_offset: int) -> None:
        self._sets[node.id] = [known for known in self._sets.get(node.id, []) if known[0] < end_offset]

    def appended(self, node: Checked, batch: AppendBatch) -> None:
        for offset, keys in _sets_in(batch):
            known = self._sets.setdefault(node.id, [])
            if known and batch.epoch not in self._recovered_epochs:
                self.changed(node, known, keys)
            known.append((offset, keys))

    def changed(self, node: Checked, known: Sequence[tuple[int, Keys]], keys: Keys) -> None:
        """Check a voter set that a node appends after those that are in its log."""


class OverlappingMajorities(VotersOfLogs):
    """Two voter sets in a row differ by one voter at most, so that any two majorities of them overlap."""

    def changed(self, node: Checked, known: Sequence[tuple[int, Keys]], keys: Keys) -> None:
        before = known[-1][1]
        if len(before ^ keys) > 1:
            self.fail(node, f"the voters go from {_show(before)} to {_show(keys)}")


class OneUncommittedChange(VotersOfLogs):
    """A leader changes the voters only when its last change is committed, in its own epoch."""

    def changed(self, node: Checked, known: Sequence[tuple[int, Keys]], keys: Keys) -> None:
        offset, before = known[-1]
        leading = node.leading
        if leading is None or before == keys:
            return
        if offset >= node.high_watermark:
            self.fail(node, f"changes the voters to {_show(keys)}, the set at {offset} isn't committed")
        if node.high_watermark <= leading[1]:
            self.fail(node, f"changes the voters to {_show(keys)} before it has committed in its epoch")


class AnsweredChangeIsCommitted(VotersOfLogs):
    """A change of the voters is committed when its client is answered, unless the client doesn't want to wait
    for that."""

    def answering(self, node: Checked, token: int, response: Message) -> None:
        if not isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse) or response.error_code:
            return
        request = node.request_of(token)
        if isinstance(request, AddRaftVoterRequest) and not request.ack_when_committed:
            return
        offset, keys = self._sets[node.id][-1]
        if offset >= node.high_watermark:
            self.fail(node, f"answers that {_show(keys)} vote, the set at offset {offset} isn't committed")


class EntriesAreWanted(Checker):
    """A leader gives a voter only an entry that the voter itself wants, now or in an earlier life, or that is
    in the log from the beginning."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._wanted: set[Voter] = set()
        self._recovered_epochs: set[int] = set()

    def recovered(self, recovery: Recovered) -> None:
        self._recovered_epochs.add(recovery.plan.epoch)

    def started(self, node: Checked) -> None:
        self._wanted.add(node.config.voter)
        # A node may move before its first start: then only the folder has the entry of its format.
        for _, record in node.disk.voters_records():
            self._wanted.update(voters_of_record(record).voters)

    def appended(self, node: Checked, batch: AppendBatch) -> None:
        if node.leading is None or batch.epoch in self._recovered_epochs:
            return
        for offset, record in voters_among(control_records([batch])):
            self._wanted.update(each.config.voter for each in self.nodes.values())
            unwanted = [voter for voter in voters_of_record(record).voters if voter not in self._wanted]
            if unwanted:
                self.fail(node, f"has entries at offset {offset} that no voter wants: {unwanted}")


class RemovedLeaderResigns(Checker):
    """A leader that isn't one of the committed voters doesn't lead on."""

    def stepped(self, node: Checked) -> None:
        if node.leading is None or node.raft.is_voter:
            return
        offset = node.raft.voters_offset
        if offset is not None and offset < node.high_watermark:
            self.fail(node, f"leads, but the voters without it, at offset {offset}, are committed")


def _sets_in(batch: AppendBatch) -> list[tuple[int, Keys]]:
    return [(offset, _keys(record)) for offset, record in voters_among(control_records([batch]))]


def _keys(record: VotersRecord) -> Keys:
    return frozenset(voter.key for voter in voters_of_record(record).voters)


def _show(keys: Keys) -> str:
    return str(sorted(key.id for key in keys))
