"""Decide what comes of a change that is sent to the leader: whether to send it, again, or to go on looking.
No I/O and no clock: times are arguments, in seconds.

The answer alone doesn't say it. A leader that loses leadership answers NOT_LEADER_OR_FOLLOWER, whether it has
appended the change or not, and its successor may commit it. REQUEST_TIMED_OUT may mean that the change is
appended, and not committed yet. So the quorum is looked at before each request and after each answer. Each
change can be sent several times: the leader makes it once.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

import msgspec

from kraft_wire.cli.quorum import NoAnswer, Refused, Uncertain
from kraft_wire.client.quorum_description import QuorumDescription
from kraft_wire.client.voter_changes import ChangeAnswer
from kraft_wire.protocol.errors import ErrorCode

MAY_HAVE_APPENDED: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
"""The leader may have appended the change: another one may have it in its log, even if this one doesn't."""
MAY_PASS: Final = (*MAY_HAVE_APPENDED, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.BROKER_NOT_AVAILABLE)
"""The errors after which the change is sent again."""
UNCOMMITTED: Final = "the leader has it in its log, and hasn't committed it in time"
SEE_STATUS: Final = "`kraft-wire quorum status` shows what came of it"


class Step(Enum):
    """What to do next."""

    SEND = auto()
    """Send the change to the leader."""
    LOOK = auto()
    """Look at the quorum again after a pause."""
    DONE = auto()
    """The change is committed."""


class _Appended(msgspec.Struct, frozen=True):
    """The end of a leader's log when the change was first seen in it."""

    epoch: int
    end_offset: int


class CommitWatch:
    """The commit of a change that a leader has in its log, from look to look."""

    def __init__(self) -> None:
        self.epoch = -1
        """That of the leader of the last look."""
        self.was_appended = False
        """Whether some leader had the change."""
        self._appended: _Appended | None = None
        self._high_watermark = -1

    @property
    def is_appended(self) -> bool:
        """Whether the leader of the last look has the change."""
        return self._appended is not None

    @property
    def is_committed(self) -> bool:
        return self._appended is not None and self._high_watermark >= self._appended.end_offset

    def seen(self, described: QuorumDescription, holds: bool | None) -> None:
        """Note a look. The end of the log is that of one leader: the logs of others may end elsewhere."""
        epoch, leader = described.leader_epoch, described.leader
        self.epoch = epoch
        self._high_watermark = described.high_watermark
        if self._appended is not None and self._appended.epoch != epoch:
            self._appended = None
        if holds is False:
            self._appended = None
        elif holds and self._appended is None and leader is not None:
            self._appended = _Appended(epoch, leader.log_end_offset)
            self.was_appended = True


class Attempts:
    """The attempts to make one change, until a deadline."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self.is_sent = False
        self.is_committed = False
        """Whether the leader has said so."""
        self._is_lost = False
        self._timed_out_in: int | None = None
        """The epoch of a leader that may have appended the change, and hasn't committed it in time."""
        self._error = ErrorCode.NONE
        self._said = ""
        self._commit = CommitWatch()

    def not_reached(self, problem: str) -> None:
        """Note that a request could not be sent."""
        if not self.is_sent:
            self._said = problem

    def sent(self, answer: ChangeAnswer | None) -> None:
        """Note the answer to a request, None if it was lost. Raises Refused if the first one is refused."""
        is_first, self.is_sent = not self.is_sent, True
        if answer is None:
            self._is_lost = True
            return
        self._error, self._said = answer.error, _text(answer)
        if answer.error == ErrorCode.REQUEST_TIMED_OUT and self._timed_out_in is None:
            self._timed_out_in = self._commit.epoch
        self.is_committed = self.is_committed or answer.error == ErrorCode.NONE
        if is_first and self._is_refused:
            raise Refused(f"the leader refuses: {self._said}")

    def seen(self, described: QuorumDescription, holds: bool | None, now_s: float) -> Step:
        """Return the next step after a look at the quorum. ``holds``: whether the leader has the change in
        its log, None if that can't be seen.

        Raises Refused, Uncertain; NoAnswer if it couldn't be sent in time.
        """
        self._commit.seen(described, holds)
        if self.is_committed and holds is not False:
            return Step.DONE
        if self._commit.is_committed:
            return Step.DONE
        if now_s > self._deadline_s or (self._is_refused and holds is False):
            return self._give_up(holds)
        if self.is_committed or self._is_refused or self._commit.is_appended:
            return Step.LOOK
        return Step.SEND

    @property
    def _is_refused(self) -> bool:
        return self._error not in (ErrorCode.NONE, *MAY_PASS)

    @property
    def _may_be_with_another(self) -> bool:
        """Whether an earlier leader may have the change in its log, and be elected again."""
        return self._commit.was_appended or self._timed_out_in not in (None, self._commit.epoch)

    def _give_up(self, holds: bool | None) -> Step:
        if self.is_committed:
            return Step.DONE
        if self._commit.is_appended:
            raise uncertain(UNCOMMITTED)
        if not self.is_sent:
            why = self._said or "the leader took too long to describe the quorum"
            raise NoAnswer(f"the change wasn't sent in time: {why}")
        if self._is_lost:
            raise uncertain(f"an answer was lost{self._said and f'; another one was {self._said}'}")
        if self._is_refused:
            raise Refused(f"the leader refuses: {self._said}")
        if holds is None or self._error in MAY_HAVE_APPENDED or self._may_be_with_another:
            raise uncertain(f"the leader said {self._said}")
        raise Refused(f"the leader hasn't made the change in time: {self._said}")


def uncertain(problem: str) -> Uncertain:
    """Return the error of a change that may have been made or not."""
    return Uncertain(f"it isn't known whether the change was made: {problem}; {SEE_STATUS}")


def _text(answer: ChangeAnswer) -> str:
    return f"{answer.error.name}: {answer.message}" if answer.message else answer.error.name
