"""The commands ``kraft-wire quorum``, and their exit statuses.

Beside those of every command (0 done, 1 failed, 2 wrong usage, 130 interrupted) each cause has its own:

3 no controller answers; 4 controllers answer, and none leads; 5 a folder can't be read, or is damaged; 6 the
inputs don't fit: other clusters, a majority that is left, a plan that was changed or is of another folder;
7 a leader, or another process, is at work; 8 not confirmed; 9 the folder isn't what the plan says; 10 the
newcomer lags; 11 the target would join again; 12 it isn't known whether the change was made; 13 the
registration is still there; 14 the leader refuses; 15 something is in the way; 16 the quorum
never had a node with this id; 17 the cluster is split; 18 the states of two nodes differ.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.cli.errors import CommandError

EXIT_NO_ANSWER: Final = 3
EXIT_NO_LEADER: Final = 4
EXIT_UNREADABLE: Final = 5
EXIT_UNFIT: Final = 6
EXIT_AT_WORK: Final = 7
EXIT_NOT_CONFIRMED: Final = 8
EXIT_NOT_AS_PLANNED: Final = 9
EXIT_LAGS: Final = 10
EXIT_JOINS_AGAIN: Final = 11
EXIT_UNCERTAIN: Final = 12
EXIT_STILL_REGISTERED: Final = 13
EXIT_REFUSED: Final = 14
EXIT_IN_THE_WAY: Final = 15
EXIT_UNKNOWN_NODE: Final = 16
EXIT_SPLIT: Final = 17
EXIT_DIVERGED: Final = 18


class NoAnswer(CommandError):
    """No controller answers."""

    EXIT_STATUS = EXIT_NO_ANSWER


class NoLeader(CommandError):
    """Controllers answer, and none leads."""

    EXIT_STATUS = EXIT_NO_LEADER


class Unreadable(CommandError):
    """A folder or a file can't be read, or is damaged."""

    EXIT_STATUS = EXIT_UNREADABLE


class Unfit(CommandError):
    """Inputs that don't fit together, or not to what is asked."""

    EXIT_STATUS = EXIT_UNFIT


class AtWork(CommandError):
    """A leader answers, or a process works on the folder."""

    EXIT_STATUS = EXIT_AT_WORK


class NotConfirmed(CommandError):
    """The operator didn't agree."""

    EXIT_STATUS = EXIT_NOT_CONFIRMED


class NotAsPlanned(CommandError):
    """A folder that isn't what its plan says."""

    EXIT_STATUS = EXIT_NOT_AS_PLANNED


class Lags(CommandError):
    """A newcomer doesn't fetch, or doesn't keep up with the log."""

    EXIT_STATUS = EXIT_LAGS


class JoinsAgain(CommandError):
    """A controller that makes itself a voter again as soon as it is removed."""

    EXIT_STATUS = EXIT_JOINS_AGAIN


class Uncertain(CommandError):
    """A change that was sent, and may have been made or not."""

    EXIT_STATUS = EXIT_UNCERTAIN


class StillRegistered(CommandError):
    """A controller that is no voter, and whose registration is left."""

    EXIT_STATUS = EXIT_STILL_REGISTERED


class Refused(CommandError):
    """The leader refuses a change."""

    EXIT_STATUS = EXIT_REFUSED


class UnknownNode(CommandError):
    """A node id that no voter, observer or registered controller has, or had."""

    EXIT_STATUS = EXIT_UNKNOWN_NODE
