"""Answer StateDigest (10003): a digest of the state at the first end of a batch at or after a given offset,
which is where the state is now, or later.

Kafka has no such API. Batches are the same on every node, so nodes that are asked for the same offset answer
for the same state. The digest is made beside the event loop, of the state as it is after the step that
reaches the offset:

- A standby applies no further batch in that step (``LogFollower.pause_at``).
- The active controller may append more in that step, and none of it is committed: whoever makes the digest
  undoes what comes after the end of the batch. The answer waits until the batch is committed. If the
  leadership is lost before, there is none.

One request is in work at a time, so that strangers can't make a node busy with digests.
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
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.own_messages.state_digest_request import StateDigestRequest
from kraft_wire.protocol.own_messages.state_digest_response import StateDigestResponse
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.effects import AppendBatch

WAIT_MS: Final = 10_000
"""How long a request waits for its offset. NoOpRecords come twice a second."""


class _Asked(msgspec.Struct):
    """The request in work. ``end_offset`` and ``epoch`` are those of the batch, once its digest is being
    made; ``made`` is the digest. Nobody waits for the answer any more if it ``is_abandoned``."""

    request: ApiRequest
    offset: int
    deadline_ms: int
    end_offset: int | None = None
    epoch: int = -1
    made: DigestMade | None = None
    is_abandoned: bool = False


class Digests:
    """The digests of one node's state."""

    def __init__(self, core: RaftCore, state: ControllerState, outbox: Outbox, follower: LogFollower) -> None:
        self._core = core
        self._state = state
        self._outbox = outbox
        self._follower = follower
        self._asked: _Asked | None = None

    def serve(self, request: ApiRequest) -> None:
        """Let a request wait for its offset, or refuse it."""
        asked = cast(StateDigestRequest, request.request)
        cluster_id = self._state.cluster_id
        if asked.cluster_id not in (None, cluster_id):
            text = f"this is cluster {cluster_id}, and the request is of {asked.cluster_id}"
            self._outbox.refuse(request, ErrorCode.INCONSISTENT_CLUSTER_ID, text)
        elif asked.offset < 1:
            text = f"there is no state before offset {asked.offset}"
            self._outbox.refuse(request, ErrorCode.INVALID_REQUEST, text)
        elif self._asked is not None:
            text = "this node answers one request for a digest at a time"
            self._outbox.refuse(request, ErrorCode.THROTTLING_QUOTA_EXCEEDED, text)
        else:
            self._asked = _Asked(request, asked.offset, self._outbox.now.monotonic_ms + WAIT_MS)
            self._follower.pause_at = asked.offset

    def next_deadline_ms(self) -> int | None:
        """Return the time at which the request has waited long enough for its offset."""
        asked = self._asked
        return asked.deadline_ms if asked is not None and asked.end_offset is None else None

    def abandon(self, token: Hashable) -> None:
        """Drop the request of a client that has gone. A digest that has begun is completed."""
        if self._asked is not None and self._asked.request.token == token:
            self._drop(self._asked)

    def appended(self, batch: AppendBatch) -> None:
        """Begin if the active controller appends, and has applied, the batch that the request waits for."""
        asked = self._asked
        if asked is None or asked.end_offset is not None:
            return
        if batch.base_offset < asked.offset <= batch.last_offset + 1:
            self._begin(asked, batch.last_offset + 1, batch.epoch)

    def took(self, event: DigestMade | DigestFailed) -> None:
        """Take the digest that was made, or the reason why there is none."""
        asked = self._asked
        assert asked is not None, "nothing else is asked while a digest is being made"
        if isinstance(event, DigestMade) and not asked.is_abandoned:
            asked.made = event
            return
        if isinstance(event, DigestFailed) and not asked.is_abandoned:
            self._outbox.refuse(asked.request, ErrorCode.UNKNOWN_SERVER_ERROR, event.reason)
        self._asked = None

    def lost_leadership(self, committed_end: int) -> None:
        """Refuse a request whose digest shows what was never committed."""
        asked = self._asked
        if asked is None or asked.is_abandoned or asked.end_offset is None:
            return
        if asked.end_offset > committed_end:
            text = "the leadership moved before this was committed"
            self._refuse(asked, ErrorCode.LEADER_NOT_AVAILABLE, text)

    def go_on(self, committed_end: int, *, is_active: bool) -> None:
        """Do what is due at the end of a step. All below ``committed_end`` is committed and applied."""
        asked = self._asked
        if asked is None:
            return
        if asked.end_offset is None:
            self._wait(asked, self._core.log_end_offset if is_active else self._follower.applied_end)
        elif asked.made is not None and asked.end_offset <= committed_end:
            self._answer(asked, asked.end_offset, asked.made)

    def _wait(self, asked: _Asked, applied_end: int) -> None:
        """Begin, wait on or give up. All below ``applied_end`` is applied."""
        batch = self._follower.paused_after
        if batch is not None:
            self._begin(asked, batch.next_offset, batch.leader_epoch)
        elif applied_end == asked.offset:
            self._begin(asked, applied_end, self._core.epoch_at(applied_end - 1))
        elif applied_end > asked.offset:
            text = f"the state is at offset {applied_end} already"
            self._refuse(asked, ErrorCode.OFFSET_OUT_OF_RANGE, text)
        elif self._follower.stopped is not None:
            text = f"replay is stopped at offset {self._follower.stopped.offset}"
            self._refuse(asked, ErrorCode.UNSUPPORTED_VERSION, text)
        elif self._outbox.now.monotonic_ms >= asked.deadline_ms:
            text = f"in {WAIT_MS} ms the state came to offset {applied_end} only"
            self._refuse(asked, ErrorCode.REQUEST_TIMED_OUT, text)

    def _begin(self, asked: _Asked, end_offset: int, epoch: int) -> None:
        asked.end_offset, asked.epoch = end_offset, epoch
        self._follower.pause_at = None
        self._outbox.emit(MakeDigest(self._state.metadata, end_offset))

    def _answer(self, asked: _Asked, end_offset: int, made: DigestMade) -> None:
        response = StateDigestResponse(
            end_offset=end_offset, epoch=asked.epoch, digest=made.digest, record_count=made.record_count
        )
        self._outbox.reply(asked.request.token, response)
        self._asked = None

    def _refuse(self, asked: _Asked, code: ErrorCode, text: str) -> None:
        self._outbox.refuse(asked.request, code, text)
        self._drop(asked)

    def _drop(self, asked: _Asked) -> None:
        """Forget a request; while its digest is being made, only who asked."""
        asked.is_abandoned = True
        if asked.end_offset is None or asked.made is not None:
            self._asked = None
            self._follower.pause_at = None
