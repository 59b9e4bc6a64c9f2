"""Bugs in the controller that the invariants of the metadata have to find."""

from __future__ import annotations

from typing import Any

import msgspec

from kraft_wire.controller.brokers import broker_heartbeat, broker_registration
from kraft_wire.controller.brokers.leaving import BrokerLeaving
from kraft_wire.controller.cluster import allocate_producer_ids
from kraft_wire.controller.decision.context import ControllerState, Result, Round
from kraft_wire.controller.decision.sessions import BrokerSessions
from kraft_wire.controller.decision.work import WorkKind
from kraft_wire.controller.node import periodic_tasks
from kraft_wire.controller.node.decisions import Decisions
from kraft_wire.controller.node.digests import Digests
from kraft_wire.controller.node.events import ApiRequest
from kraft_wire.controller.node.node import Node
from kraft_wire.controller.node.raft_driver import RaftDriver
from kraft_wire.controller.node.speculative_writes import Released, SpeculativeWrites
from kraft_wire.controller.partitions import (
    alter_partition,
    cluster_view,
    column_change,
    column_rules,
    partition_change,
)
from kraft_wire.controller.partitions.elections import Elections
from kraft_wire.controller.partitions.partition_change import NO_RECOVERY_CHANGE, Rules
from kraft_wire.controller.partitions.slices import Slices
from kraft_wire.controller.topics import delete_topics
from kraft_wire.metadata.configs import Configs
from kraft_wire.metadata.partitions.partition import Partition
from kraft_wire.metadata.topics import Topics
from tests.sim import planted_bugs
from tests.sim.planting import Bugs, Patch

CONTROLLER = Bugs()
bug = CONTROLLER.bug
planted = CONTROLLER.planted


# Responses, and reverted changes.


@bug("ConsistentRead")
def answers_do_not_wait_for_the_commit(patch: Patch) -> None:
    def release(self: SpeculativeWrites, response: Released) -> Released:
        return response

    patch.attribute(SpeculativeWrites, "release_when_committed", release)


@bug("ConsistentRead")
def reads_do_not_wait_for_what_they_show(patch: Patch) -> None:
    """KAFKA-15048."""
    real = Decisions._seen_end

    def seen_end(self: Decisions, result: Result) -> int:
        return real(self, result) if result.records or result.session_changes else 0

    patch.attribute(Decisions, "_seen_end", seen_end)


@bug("EqualDigest")
def a_digest_is_told_before_its_commit(patch: Patch) -> None:
    real = Digests.go_on

    def go_on(self: Digests, committed_end: int, *, is_active: bool) -> None:
        real(self, self._core.log_end_offset, is_active=is_active)

    patch.attribute(Digests, "go_on", go_on)


@bug("EqualState", "NoDefect")  # a state that is ahead refuses what is replayed
def what_is_lost_with_leadership_is_not_undone(patch: Patch) -> None:
    real = SpeculativeWrites.revert

    def revert(self: SpeculativeWrites) -> list[ApiRequest]:
        metadata = self._state.metadata
        undo_to = metadata.undo_to
        metadata.undo_to = lambda offset: metadata.forget_below(offset)  # type: ignore[method-assign]
        try:
            return real(self)
        finally:
            metadata.undo_to = undo_to  # type: ignore[method-assign]

    patch.attribute(SpeculativeWrites, "revert", revert)


@bug("EqualState", "NoDefect")  # a topic that is missing cannot be changed
def a_removed_topic_is_not_put_back(patch: Patch) -> None:
    """The inverse of one kind of change is missing."""
    real = Topics.remove_all

    def remove(self: Topics, topics: Any) -> None:
        was, self._journal.recording = self._journal.recording, False
        real(self, topics)
        self._journal.recording = was

    patch.attribute(Topics, "remove_all", remove)


@bug("NoDefect")  # the core refuses a proposal that ends its leadership
def a_leader_that_stood_still_decides_first(patch: Patch) -> None:
    patch.attribute(RaftDriver, "run_overdue_timers", lambda self: None)


@bug("ConsistentRead")
def refused_requests_are_confirmed(patch: Patch) -> None:
    """Leadership is lost, and waiting requests get a success response."""
    real = Decisions.deactivate

    def deactivate(self: Decisions) -> None:
        parked = list(self._writes._parked)
        self._writes._parked.clear()
        real(self)
        for waiting in parked:
            self._outbox.reply(waiting.request.token, waiting.response)

    patch.attribute(Decisions, "deactivate", deactivate)


# Raft, under a whole node.


@bug("VoteIsDurable")
def answers_leave_before_quorum_state_is_written(patch: Patch) -> None:
    planted_bugs.answers_leave_before_quorum_state_is_written(patch)


@bug("VoteIsDurable")
def a_vote_is_not_persisted(patch: Patch) -> None:
    planted_bugs.a_vote_is_not_persisted(patch)


@bug("NoDefect")  # a state refuses what it has replayed already
def what_was_remembered_is_replayed_again(patch: Patch) -> None:
    real = Node.catch_up

    def catch_up(self: Node, batches: Any, now: Any) -> None:
        applied_end = self._follower.applied_end
        real(self, batches, now)
        self._follower.applied_end = applied_end

    patch.attribute(Node, "catch_up", catch_up)


@bug("EqualState", "NoDefect")  # what is missing cannot be changed
def what_was_remembered_is_taken_for_applied(patch: Patch) -> None:
    def catch_up(self: Node, batches: Any, now: Any) -> None:
        ends = [batch.header.next_offset for batch in batches]
        self._follower.applied_end = max([self._follower.applied_end, *ends])

    patch.attribute(Node, "catch_up", catch_up)


# Brokers.


@bug("EventuallyFenced")
def a_silent_broker_is_not_noticed_after_failover(patch: Patch) -> None:
    """KAFKA-18138."""
    real = BrokerSessions.activate

    def activate(self: BrokerSessions, brokers: Any, now_ms: int) -> None:
        real(self, (), now_ms)

    patch.attribute(BrokerSessions, "activate", activate)


@bug("EventuallyFenced")
def silent_brokers_are_not_fenced(patch: Patch) -> None:
    patch.attribute(periodic_tasks, "fence_one_stale_broker", lambda state, context: Round())


@bug("EventuallyUnfenced")
def a_fenced_broker_is_never_unfenced_on_a_busy_log(patch: Patch) -> None:
    """KAFKA-13959: a broker counts as caught up only at the log end offset."""
    current: list[ControllerState] = []
    real = broker_heartbeat.handle

    def handle(state: ControllerState, *arguments: Any) -> Any:
        current[:] = [state]
        return real(state, *arguments)

    def is_caught_up(broker: Any, request: Any) -> bool:
        return bool(request.current_metadata_offset >= current[0].next_offset - 1)

    patch.attribute(broker_heartbeat, "handle", handle)
    patch.attribute(broker_heartbeat, "is_caught_up", is_caught_up)


@bug("ValidControllerState")
def a_fenced_broker_keeps_its_places_in_isrs(patch: Patch) -> None:
    _leave_no_isr(patch, WorkKind.FENCE)


@bug("ShutdownLeavesIsrs")
def a_broker_in_controlled_shutdown_keeps_its_places(patch: Patch) -> None:
    _leave_no_isr(patch, WorkKind.SHUT_DOWN)


def _leave_no_isr(patch: Patch, kind: WorkKind) -> None:
    real = BrokerLeaving.decide

    def decide(self: BrokerLeaving, state: ControllerState, context: Any) -> Any:
        return self._close(state, context, 0) if self.key.kind is kind else real(self, state, context)

    patch.attribute(BrokerLeaving, "decide", decide)


@bug("ValidBrokerState")
def two_incarnations_share_an_epoch(patch: Patch) -> None:
    real = broker_registration._registration

    def registration(state: ControllerState, request: Any, amended: Any) -> Any:
        return real(state, request, amended or state.metadata.brokers.get(request.broker_id))

    patch.attribute(broker_registration, "_registration", registration)


@bug("ConsistentRead", "NoDefect", "EventuallyUnfenced")
def heartbeats_of_former_incarnations_count(patch: Patch) -> None:
    # NoDefect: the broker of a late heartbeat may not be registered any more.
    def check(state: ControllerState, broker_id: int, epoch: int) -> Any:
        return state.metadata.brokers[broker_id]

    patch.attribute(broker_heartbeat, "check_broker_epoch", check)


@bug("ConsistentRead")
def two_brokers_get_the_same_producer_ids(patch: Patch) -> None:
    """The handler ignores the block that the last request got."""

    def handle(state: ControllerState, request: Any, version: int, context: Any) -> Any:
        result = real(state, request, version, context)
        response: Any = result.response
        response.producer_id_start = max(0, state.metadata.producer_ids.next_producer_id - 1000)
        return result

    real = allocate_producer_ids.handle
    patch.attribute(allocate_producer_ids, "handle", handle)


# Time.


@bug("StepWithinFetchTimeout")
def a_work_is_done_in_one_step(patch: Patch) -> None:
    """All partitions of a broker are decided in one step of the event loop, which may take seconds."""
    real = Decisions.continue_work

    def continue_work(self: Decisions) -> None:
        while self.is_active and self._next_work() is not None:
            real(self)

    patch.attribute(Decisions, "continue_work", continue_work)


# Partitions.


@bug("ConsistentRead", "ValidControllerState")
def a_fenced_replica_joins_the_isr(patch: Patch) -> None:
    """KAFKA-13916."""
    patch.attribute(alter_partition._Alteration, "_is_eligible", lambda self, member: True)


@bug("ConsistentRead")
def a_replica_of_a_former_incarnation_joins_the_isr(patch: Patch) -> None:
    """KAFKA-14617."""
    real = alter_partition._Alteration._is_eligible

    def is_eligible(self: Any, member: Any) -> bool:
        return real(self, msgspec.structs.replace(member, broker_epoch=-1))

    patch.attribute(alter_partition._Alteration, "_is_eligible", is_eligible)


@bug("ConsistentRead")
def a_leaders_old_view_is_believed(patch: Patch) -> None:
    patch.attribute(alter_partition._Alteration, "_stale", lambda self, partition, proposal: None)


@bug("ConsistentRead")
def an_answer_tells_of_the_partition_as_it_was(patch: Patch) -> None:
    real = alter_partition._answer

    def answer(index: int, partition: Partition, change: Any) -> Any:
        return real(index, partition, None)

    patch.attribute(alter_partition, "_answer", answer)


@bug("LeaderCandidateCompleteness")
def anybody_may_be_elected(patch: Patch) -> None:
    def election(target: Any, partition: Partition, election: Any, rules: Rules) -> Any:
        able = [replica for replica in target.replicas if rules.can_lead(replica)]
        return partition_change._Elected(able[0] if able else -1)

    patch.attribute(partition_change, "_election", election)


@bug("LeaderInIsr", "ValidControllerState")
def whoever_is_down_may_lead(patch: Patch) -> None:
    real = partition_change.partition_change
    real_online = column_rules.online_replicas

    def change(ref: Any, partition: Partition, goal: Any, rules: Rules) -> Any:
        return real(ref, partition, goal, msgspec.structs.replace(rules, can_lead=lambda broker_id: True))

    def all_online(view: Any, rows: Any) -> Any:
        online, is_known = real_online(view, rows)
        return online | True, is_known

    patch.attribute(cluster_view, "partition_change", change)
    patch.attribute(column_change, "online_replicas", all_online)


@bug("ValidControllerState", "ShutdownLeavesIsrs")
def a_broker_that_has_arrived_counts_as_active_for_ever(patch: Patch) -> None:
    """It may be fenced again before the last of the elections that its arrival began."""
    patch.attribute(Elections, "next_slice", Slices.next_slice)


@bug("ValidControllerIsrAndElr")
def an_elr_outlives_a_large_enough_isr(patch: Patch) -> None:
    def move(self: Any, partition: Partition, goal: Any, rules: Rules) -> None:
        gone = {*self.isr, *goal.unclean_shutdown}
        self.elr = tuple(sorted({*self.elr, *partition.isr} - gone))

    patch.attribute(partition_change._Target, "move_leavers_to_elr", move)


@bug("ValidControllerIsrAndElr")
def an_elr_keeps_who_is_back_in_sync(patch: Patch) -> None:
    def move(self: Any, partition: Partition, goal: Any, rules: Rules) -> None:
        if len(self.isr) < rules.min_isr:
            self.elr = tuple(sorted({*self.elr, *partition.isr}))
        else:
            self.elr = ()

    patch.attribute(partition_change._Target, "move_leavers_to_elr", move)


@bug("LeaderCandidateCompleteness")
def unclean_leaders_are_not_told_to_recover(patch: Patch) -> None:
    real = partition_change._elect

    def elect(record: Any, target: Any, partition: Partition, election: Any, rules: Rules) -> None:
        real(record, target, partition, election, rules)
        if record.leader_recovery_state == 1:
            record.leader_recovery_state = -1

    patch.attribute(partition_change, "_elect", elect)
    patch.attribute(column_change, "RECOVERING", NO_RECOVERY_CHANGE)


# Topics.


@bug("NoDefect")  # a state refuses to remove what is not there
def a_topic_is_removed_twice(patch: Patch) -> None:
    real = delete_topics.handle

    def handle(state: ControllerState, *arguments: Any) -> Any:
        result = real(state, *arguments)
        result.records = [*result.records, *result.records]
        return result

    patch.attribute(delete_topics, "handle", handle)


@bug("NoDanglingRecord")
def a_removed_topics_settings_stay(patch: Patch) -> None:
    """They are back when the topic is created again; a snapshot doesn't contain them."""
    patch.attribute(Configs, "remove_topics", lambda self, names: None)
