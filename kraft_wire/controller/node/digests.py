"""Answer StateDigest (10003): a digest of the state at the first end of a batch at or after a given offset,
which is where the state is now, or later.

Kafka has no such API. Batches are the same on every node, so nodes that are asked for the same offset answer
for the same state. The digest is made beside the event loop, of the state as it is after the step that
reaches the offset:

- A standby applies no further batch in that step (``LogFollower.pause_at``).
- The active controller may append more in that step, and none of it is committed: whoever makes the digest
  undoes what comes after the end of the batch. The answer waits until the batch is committed. If the
  leadership is lost before, there is none.

Strangers can't make a node busy with digests. One is in work at a time, a pause follows it, and who asks for
the offset of the last one gets that.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, cast

import msgspec

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.node.effects import MakeDigest
from kraft_wire.controller.node.events import ApiRequest, DigestFailed, DigestMade
from kraft_wire.controller.node.following import LogFollower
from kraft_wire.controller.node.outbox import Outbox
from kraft_wire.metadata.digest import FORMULA
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.own_messages.state_digest_request import StateDigestRequest
from kraft_wire.protocol.own_messages.state_digest_response import StateDigestResponse
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.effects import AppendBatch

WAIT_MS: Final = 3_000
"""How long a request waits for its offset. NoOpRecords come twice a second."""

MOST_AHEAD: Final = 100_000
"""How far after the end of the log an offset may lie: no node gets there within the wait."""

PAUSE_FACTOR: Final = 4
"""The pause after a digest, in times of what it took: digests use a fifth of one core at most."""

Problem = tuple[ErrorCode, str]


class _Asked(msgspec.Struct):
    """The request in work. ``end_offset`` is that of the batch, once its digest is being made; ``made`` is
    the digest. Nobody waits for the answer any more if it ``is_abandoned``."""

    token: Hashable
    offset: int
    deadline_ms: int
    end_offset: int | None = None
    begun_ms: int = 0
    made: DigestMade | None = None
    is_abandoned: bool = False


class _Answered(msgspec.Struct, frozen=True):
    """The last answer. It is the right one for each offset from ``offset`` to ``end_offset``."""

    offset: int
    end_offset: int
    made: DigestMade


class Digests:
    """The digests of one node's state."""

    def __init__(self, core: RaftCore, state: ControllerState, outbox: Outbox, follower: LogFollower) -> None:
        self._core = core
        self._state = state
        self._outbox = outbox
        self._follower = follower
        self._asked: _Asked | None = None
        self._last: _Answered | None = None
        self._paused_until_ms = 0

    def serve(self, request: ApiRequest) -> None:
        """Answer a request, let it wait for its offset, or refuse it."""
        asked = cast(StateDigestRequest, request.request)
        last, now_ms = self._last, self._outbox.now.monotonic_ms
        problem = self._mistake(asked)
        if problem is None and last is not None and last.offset <= asked.offset <= last.end_offset:
            self._reply(request.token, last)
            return
        problem = problem or self._hindrance()
        if problem is not None:
            self._refuse(request.token, problem)
            return
        self._asked = _Asked(request.token, asked.offset, now_ms + WAIT_MS)
        self._follower.pause_at = asked.offset

    def next_deadline_ms(self) -> int | None:
        """Return the time at which the request has waited long enough for its offset."""
        asked = self._asked
        return asked.deadline_ms if asked is not None and asked.end_offset is None else None

    def abandon(self, token: Hashable) -> None:
        """Drop the request of a client that has gone. A digest that has begun is completed."""
        if self._asked is not None and self._asked.token == token:
            self._drop(self._asked)

    def appended(self, batch: AppendBatch) -> None:
        """Begin if the active controller appends, and has applied, the batch that the request waits for."""
        asked = self._asked
        if asked is None or asked.end_offset is not None:
            return
        if batch.base_offset < asked.offset <= batch.last_offset + 1:
            self._begin(asked, batch.last_offset + 1)

    def took(self, event: DigestMade | DigestFailed) -> None:
        """Take the digest that was made, or the reason why there is none."""
        asked, now_ms = self._asked, self._outbox.now.monotonic_ms
        assert asked is not None, "nothing else is asked while a digest is being made"
        self._paused_until_ms = now_ms + PAUSE_FACTOR * (now_ms - asked.begun_ms)
        if isinstance(event, DigestMade) and not asked.is_abandoned:
            asked.made = event
            return
        if isinstance(event, DigestFailed) and not asked.is_abandoned:
            self._refuse(asked.token, (ErrorCode.UNKNOWN_SERVER_ERROR, event.reason))
        self._asked = None

    def lost_leadership(self, committed_end: int) -> None:
        """Refuse a request whose digest shows what was never committed."""
        asked = self._asked
        if asked is None or asked.is_abandoned or asked.end_offset is None:
            return
        if asked.end_offset > committed_end:
            text = "the leadership moved before this was committed"
            self._give_up(asked, (ErrorCode.LEADER_NOT_AVAILABLE, text))

    def go_on(self, committed_end: int, *, is_active: bool) -> None:
        """Do what is due at the end of a step. All below ``committed_end`` is committed and applied."""
        asked = self._asked
        if asked is None:
            return
        if asked.end_offset is None:
            self._wait(asked, self._core.log_end_offset if is_active else self._follower.applied_end)
        elif asked.made is not None and asked.end_offset <= committed_end:
            self._last = _Answered(asked.offset, asked.end_offset, asked.made)
            self._reply(asked.token, self._last)
            self._asked = None

    # Whether a request may wait.

    def _mistake(self, asked: StateDigestRequest) -> Problem | None:
        cluster_id, log_end = self._state.cluster_id, self._core.log_end_offset
        if asked.cluster_id not in (None, cluster_id):
            text = f"this is cluster {cluster_id}, and the request is of {asked.cluster_id}"
            return ErrorCode.INCONSISTENT_CLUSTER_ID, text
        if asked.offset < 1:
            return ErrorCode.INVALID_REQUEST, f"there is no state before offset {asked.offset}"
        if asked.offset > log_end + MOST_AHEAD:
            text = f"offset {asked.offset} is more than {MOST_AHEAD} after the end of the log, {log_end}"
            return ErrorCode.INVALID_REQUEST, text
        return None

    def _hindrance(self) -> Problem | None:
        pause_ms = self._paused_until_ms - self._outbox.now.monotonic_ms
        if self._asked is not None:
            text = "this node answers one request for a digest at a time"
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED, text
        if pause_ms > 0:
            text = f"this node has just made a digest, and makes the next one in {pause_ms} ms"
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED, text
        return None

    # The request in work.

    def _wait(self, asked: _Asked, applied_end: int) -> None:
        """Begin, wait on or give up. All below ``applied_end`` is applied."""
        batch, stopped = self._follower.paused_after, self._follower.stopped
        if batch is not None:
            self._begin(asked, batch.next_offset)
        elif stopped is not None:
            text = f"replay is stopped at offset {stopped.offset}"
            self._give_up(asked, (ErrorCode.UNSUPPORTED_VERSION, text))
        elif applied_end == asked.offset:
            self._begin(asked, applied_end)
        elif applied_end > asked.offset:
            text = f"the state is at offset {applied_end} already"
            self._give_up(asked, (ErrorCode.OFFSET_OUT_OF_RANGE, text))
        elif self._outbox.now.monotonic_ms >= asked.deadline_ms:
            text = f"in {WAIT_MS} ms the state came to offset {applied_end} only"
            self._give_up(asked, (ErrorCode.REQUEST_TIMED_OUT, text))

    def _begin(self, asked: _Asked, end_offset: int) -> None:
        asked.end_offset, asked.begun_ms = end_offset, self._outbox.now.monotonic_ms
        self._follower.pause_at = None
        self._outbox.emit(MakeDigest(self._state.metadata, end_offset))

    def _give_up(self, asked: _Asked, problem: Problem) -> None:
        self._refuse(asked.token, problem)
        self._drop(asked)

    def _drop(self, asked: _Asked) -> None:
        """Forget a request; while its digest is being made, only who asked."""
        asked.is_abandoned = True
        if asked.end_offset is None or asked.made is not None:
            self._asked = None
            self._follower.pause_at = None

    # Answers.

    def _reply(self, token: Hashable, answer: _Answered) -> None:
        self._outbox.reply(
            token,
            StateDigestResponse(
                node_id=self._state.node_id,
                end_offset=answer.end_offset,
                formula=FORMULA,
                digest=answer.made.digest,
                record_count=answer.made.record_count,
            ),
        )

    def _refuse(self, token: Hashable, problem: Problem) -> None:
        """Refuse, and say where the log ends: who asks may ask for an offset after that."""
        code, text = problem
        response = StateDigestResponse(
            error_code=int(code),
            error_message=text,
            node_id=self._state.node_id,
            end_offset=max(self._core.log_end_offset, self._follower.applied_end),
        )
        self._outbox.reply(token, response)
