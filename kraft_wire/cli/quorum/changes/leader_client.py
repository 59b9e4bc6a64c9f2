"""Send a change to whichever controller leads, and wait until it is committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kraft_wire.cli.quorum import (
    AtWork,
    JoinsAgain,
    Lags,
    NoAnswer,
    NoLeader,
    Refused,
    Unfit,
    UnknownNode,
)
from kraft_wire.cli.quorum.changes.attempts import UNCOMMITTED, Attempts, CommitWatch, Step, uncertain
from kraft_wire.cli.quorum.connecting import check_given, led_quorum
from kraft_wire.cli.quorum.history import GrowingHistory
from kraft_wire.cli.quorum.patience import said_if_slow
from kraft_wire.client.connection import Connector
from kraft_wire.client.errors import QuorumError, QuorumUnreachable, problems_text, reason_of
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.client.quorum_description import QuorumDescription
from kraft_wire.client.settings import QuorumSettings
from kraft_wire.client.voter_changes import ChangeAnswer, Response, read_change
from kraft_wire.protocol.errors import ErrorCode, ProtocolError, UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.raft.recovery.evidence import QuorumHistory
from kraft_wire.wire.address import Address

POLL_S: Final = 0.2
CHANGES_NOTHING: Final = (AtWork, JoinsAgain, Lags, NoAnswer, NoLeader, Refused, Unfit, UnknownNode)
"""The errors after which all is as it was before the command. After a change others say what came of it."""

Holds = Callable[[QuorumDescription], bool | None]
"""Whether the leader's log has a change; None if that can't be seen."""


class LeaderClient:
    """A client of whichever controller leads. ``timeout_ms`` bounds each wait."""

    def __init__(self, settings: QuorumSettings, quorum: QuorumClient) -> None:
        self.settings = settings
        self._quorum = quorum
        self._timeout_s = settings.api_timeout_ms / 1000
        self._history = GrowingHistory(quorum)

    @property
    def cluster_id(self) -> str:
        return self._quorum.cluster_id()

    @property
    def answered_by(self) -> Address:
        """The controller that answered last: the leader."""
        return self._quorum.answered_by

    def describe(self) -> QuorumDescription:
        return self._quorum.describe_quorum()

    def history(self) -> QuorumHistory:
        """Read the leader's log for voters and registrations."""
        return self._history.read()

    def change(self, request: Message, response_class: type[Response], holds: Holds) -> None:
        """Make a change, after which ``holds`` is true, and wait for its commit. If it holds already, only
        wait.

        Raises Refused; Uncertain if it isn't known whether the change was made, or if it isn't committed in
        time; NoAnswer or QuorumError if nothing was sent.
        """
        attempts = Attempts(time.monotonic() + self._timeout_s)
        try:
            with said_if_slow(f"waiting up to {self._timeout_s:g} s until the change is committed"):
                self._carry_out(attempts, request, response_class, holds)
        except QuorumError as error:
            if attempts.is_committed:
                return
            if attempts.is_sent:
                raise uncertain(_problem(error)) from None
            raise

    def await_commit(self, holds: Holds) -> bool:
        """Wait until a change is committed that the leader has in its log, and return whether it has. Raises
        Uncertain if it isn't committed in time."""
        with said_if_slow(f"waiting up to {self._timeout_s:g} s until an earlier change is committed"):
            return self._watch_commit(holds)

    def _watch_commit(self, holds: Holds) -> bool:
        deadline_s = time.monotonic() + self._timeout_s
        commit = CommitWatch()
        while True:
            described = self.describe()
            commit.seen(described, holds(described))
            if commit.is_committed or not commit.is_appended:
                return commit.is_committed
            if time.monotonic() > deadline_s:
                raise uncertain(UNCOMMITTED)
            time.sleep(POLL_S)

    def _carry_out(
        self, attempts: Attempts, request: Message, response_class: type[Response], holds: Holds
    ) -> None:
        while True:
            described = self.describe()
            step = attempts.seen(described, holds(described), time.monotonic())
            if step == Step.DONE:
                return
            if step == Step.SEND:
                self._send(attempts, request, response_class)
            if not attempts.is_committed:
                time.sleep(POLL_S)

    def _send(self, attempts: Attempts, request: Message, response_class: type[Response]) -> None:
        """Send the request once, to the controller that answered last."""
        connector = Connector(self.settings.security, self._timeout_s)
        try:
            connection = connector.open(self.answered_by, self._timeout_s)
        except (OSError, ProtocolError) as error:
            attempts.not_reached(f"{self.answered_by} can't be reached: {reason_of(error)}")
            return
        try:
            answer = read_change(connection.call(request, response_class, self._timeout_s))
        except UnsupportedVersion as error:
            answer = ChangeAnswer(
                ErrorCode.UNSUPPORTED_VERSION, f"{self.answered_by} doesn't serve this: {error}"
            )
        except (OSError, ProtocolError):
            answer = None
        finally:
            connection.close()
        attempts.sent(answer)


def _problem(error: QuorumError) -> str:
    if not isinstance(error, QuorumUnreachable):
        return str(error)
    asked = problems_text(error.problems)
    return f"after it was sent, no leader answered in {error.waited_ms} ms: {asked}"


@contextmanager
def leader_of(settings: QuorumSettings) -> Iterator[LeaderClient]:
    """Give a client of the leader of a quorum. Raises NoAnswer, NoLeader; Unfit if the settings name
    controllers of several clusters."""
    with led_quorum(settings) as quorum:
        check_given(settings)
        yield LeaderClient(settings, quorum)


@contextmanager
def leader_for_change(settings: QuorumSettings) -> Iterator[LeaderClient]:
    """As ``leader_of``, for a command that changes something: an error after which all is as it was says
    so."""
    try:
        with leader_of(settings) as leader:
            yield leader
    except CHANGES_NOTHING as error:
        raise type(error)(f"{error}. Nothing was changed") from None
