"""Voters can be changed from kraft.version 1 on (KIP-853)."""

from __future__ import annotations

from kraft_wire.cli.quorum import Unfit
from kraft_wire.cli.quorum.changes.leader_client import LeaderClient
from kraft_wire.cli.quorum.changes.registrations import leaders_answer


def check_voters_can_change(leader: LeaderClient) -> None:
    """Raise Unfit with kraft.version 0; CommandError if the leader can't be asked.

    Kafka names a feature from level 1 on. A leader that names no feature at all hasn't read its metadata yet.
    """
    answer = leaders_answer(leader)
    if answer.levels and not answer.kraft_version:
        raise Unfit(
            "kraft.version is 0, so the voters are those of controller.quorum.voters: see "
            "`kraft-wire quorum migrate --check --to dynamic`"
        )
