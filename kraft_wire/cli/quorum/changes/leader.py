"""Send a change to the leader, and wait until it is committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kraft_wire.cli.quorum import Refused, Uncertain
from kraft_wire.cli.quorum.connecting import led_quorum
from kraft_wire.client.connection import Connector
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.client.quorum_description import QuorumDescription
from kraft_wire.client.settings import QuorumSettings
from kraft_wire.client.voter_changes import ChangeAnswer, Response, read_change
from kraft_wire.protocol.errors import ErrorCode, ProtocolError, UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.wire.address import Address

POLL_S: Final = 0.2
ANOTHER_LEADS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_CONTROLLER)

Holds = Callable[[QuorumDescription], bool]


class Leader:
    """Whichever controller leads. ``timeout_ms`` bounds each wait."""

    def __init__(self, settings: QuorumSettings, quorum: QuorumClient) -> None:
        self.settings = settings
        self._quorum = quorum
        self._timeout_s = settings.api_timeout_ms / 1000

    @property
    def cluster_id(self) -> str:
        return self._quorum.cluster_id()

    @property
    def answered_by(self) -> Address:
        """The controller that answered last: the leader."""
        return self._quorum.answered_by

    def describe(self) -> QuorumDescription:
        return self._quorum.describe_quorum()

    def change(self, request: Message, response_class: type[Response], holds: Holds) -> None:
        """Make a change, after which ``holds`` is true, and wait for its commit.

        Raises Refused; Uncertain if it isn't known whether the change was made, or if it isn't committed in
        time.
        """
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            answer = self._send(request, response_class)
            if answer is None or answer.error in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
                is_made = self._is_made(holds, answer, deadline_s)
                if is_made:
                    return
            if answer is not None and answer.error not in (*ANOTHER_LEADS, ErrorCode.REQUEST_TIMED_OUT):
                raise Refused(f"the leader refuses: {_text(answer)}")
            if time.monotonic() > deadline_s:
                raise _given_up(answer)
            time.sleep(POLL_S)

    def _send(self, request: Message, response_class: type[Response]) -> ChangeAnswer | None:
        """Send the request to the leader, once. Returns None if no answer came: it may have been carried out
        nevertheless."""
        self.describe()  # it finds the leader
        connector = Connector(self.settings.security, self._timeout_s)
        try:
            connection = connector.open(self._quorum.answered_by, self._timeout_s)
        except (OSError, ProtocolError):
            return ChangeAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the leader can't be reached any more")
        try:
            return read_change(connection.call(request, response_class, self._timeout_s))
        except UnsupportedVersion as error:
            raise Refused(f"the leader, {self.answered_by}, doesn't serve this: {error}") from None
        except (OSError, ProtocolError):
            return None
        finally:
            connection.close()

    def _is_made(self, holds: Holds, answer: ChangeAnswer | None, deadline_s: float) -> bool:
        """Whether the change is in the leader's log; then wait until it is committed.

        The change is committed once everything is that the log had when it was there.
        """
        end: int | None = None
        while True:
            described = self.describe()
            leader = described.leader
            if not holds(described):
                end = None
                if answer is not None and answer.error:
                    return False
            elif end is None and leader is not None:
                end = leader.log_end_offset
            if end is not None and described.high_watermark >= end:
                return True
            if time.monotonic() > deadline_s:
                raise _given_up(answer)
            time.sleep(POLL_S)


@contextmanager
def leader_of(settings: QuorumSettings) -> Iterator[Leader]:
    """Give the leader of a quorum. Raises NoAnswer or NoLeader."""
    with led_quorum(settings) as quorum:
        yield Leader(settings, quorum)


def _given_up(answer: ChangeAnswer | None) -> Refused | Uncertain:
    if answer is not None and answer.error == ErrorCode.REQUEST_TIMED_OUT:
        return Refused(f"the leader hasn't made the change in time: {_text(answer)}")
    if answer is not None and answer.error in ANOTHER_LEADS:
        return Refused("the leader changed again and again: try again")
    return Uncertain(
        "it isn't known whether the change was made: it isn't committed yet, or its answer was lost; "
        "`kraft-wire quorum status` shows what came of it"
    )


def _text(answer: ChangeAnswer) -> str:
    return f"{answer.error.name}: {answer.message}" if answer.message else answer.error.name
