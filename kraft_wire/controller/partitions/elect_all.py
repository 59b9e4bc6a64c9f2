"""Elect a leader for every partition that needs one: the work of an ElectLeaders without a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from kraft_wire.controller.decision.context import Context, ControllerState
from kraft_wire.controller.decision.records import Columns, Records, VersionedRecord
from kraft_wire.controller.decision.work import ALL_BROKERS, Piece, WorkKey, WorkKind
from kraft_wire.controller.partitions.election_results import failure, success
from kraft_wire.controller.partitions.elections import Elections
from kraft_wire.controller.partitions.partition_change import Election
from kraft_wire.metadata.partitions.column_changes import PartitionChanges
from kraft_wire.metadata.partitions.partitions import Partitions
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.cells import Mask, Rows

RESULTS_PER_PIECE: Final = 20_000
"""The topics and partitions of the response that one piece lists."""


class ElectAll:
    """The work of electing a leader for every partition without its preferred leader, or without any leader.

    The response lists all topics, with those partitions that needed an election.
    """

    def __init__(self, election: Election) -> None:
        self.key = WorkKey(WorkKind.ELECT, ALL_BROKERS)
        self._election = election
        self._slices: Elections | None = None
        self._results: dict[Uuid, list[PartitionResult]] = {}
        self._unlisted: list[Uuid] | None = None
        self._listed: list[ReplicaElectionResult] = []

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """Hold the next elections, or list the next topics of the response."""
        if self._unlisted is not None:
            return self._list_topics(state, self._unlisted)
        records = Records([])
        is_complete = True
        if len(state.metadata.partitions):
            if self._slices is None:
                self._slices = Elections(self._election, everywhere=True)
            held = self._slices.next_slice(state)
            records, is_complete = held.records, held.is_complete
            self._note_results(state.metadata, self._slices, records)
        if not is_complete:
            return Piece(records, is_last=False)
        self._unlisted = state.metadata.topics.ids()
        self._unlisted.reverse()
        listed = self._list_topics(state, self._unlisted)
        return Piece(records, listed.is_last, response=listed.response)

    def _note_results(self, metadata: MetadataState, slices: Elections, records: Records) -> None:
        changed = [_changed_rows(metadata, part) for part in records.parts]
        elected = np.concatenate([np.empty(0, np.intp), *changed])
        for rows in slices.considered:
            self._note(metadata.partitions, rows, np.isin(rows, elected))

    def _note(self, partitions: Partitions, rows: Rows, elected: Mask) -> None:
        places = partitions.places(rows)
        replicas = iter(partitions.replicas_in(rows[~elected]))
        results = [
            success(index) if is_elected else failure(index, self._election, next(replicas))
            for index, is_elected in zip(places.indexes.tolist(), elected.tolist(), strict=True)
        ]
        end = 0
        for topic, count in zip(places.topics, places.counts.tolist(), strict=True):
            start, end = end, end + count
            self._results.setdefault(topic.id, []).extend(results[start:end])

    def _list_topics(self, state: ControllerState, unlisted: list[Uuid]) -> Piece:
        left = RESULTS_PER_PIECE
        while unlisted and left > 0:
            topic = state.metadata.topics.find_rows(topic_id := unlisted.pop())
            left -= 1
            if topic is not None:
                # A topic that got partitions meanwhile may have moved to later rows, and come again.
                latest = {result.partition_id: result for result in self._results.get(topic_id, ())}
                results = list(latest.values())
                left -= len(results)
                self._listed.append(ReplicaElectionResult(topic=topic.name, partition_result=results))
        if unlisted:
            return Piece((), is_last=False)
        response = ElectLeadersResponse(replica_election_results=self._listed)
        return Piece((), is_last=True, response=response)


def _changed_rows(metadata: MetadataState, part: Sequence[VersionedRecord] | Columns) -> Rows:
    if not isinstance(part, Sequence):
        assert isinstance(part, PartitionChanges), "elections only change partitions"
        return part.places.rows()
    changes = [record for record, _ in part if isinstance(record, PartitionChangeRecord)]
    topics = metadata.topics.find_all([change.topic_id for change in changes])
    return metadata.partitions.rows_of(
        topics, np.array([change.partition_id for change in changes], np.int32)
    )
