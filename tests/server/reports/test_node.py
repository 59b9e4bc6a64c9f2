"""Reports of a node's steps: no notice is kept from the operator."""

from __future__ import annotations

import logging
from typing import Any, get_args, get_type_hints

import pytest

from kraft_wire.controller.node.effects import FreeState, NodeNotice
from kraft_wire.controller.node.events import StateLoaded
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.raft.effects import (
    BadFetch,
    JoinRefused,
    LostLeadership,
    ReadyToStop,
    RoleChanged,
    UpdateRefused,
)
from kraft_wire.raft.events import Now, ShutDown, Tick
from kraft_wire.raft.roles import Role
from kraft_wire.server.reports.node import REPORTS, NodeReports

NOW = Now(0, 0)


def test_every_notice_but_the_end_is_reported() -> None:
    assert set(get_args(NodeNotice)) - set(REPORTS) == {ReadyToStop}


@pytest.mark.parametrize("kind", REPORTS, ids=lambda kind: kind.__name__)
def test_a_report_is_of_the_effects_that_it_stands_for(kind: type[Any]) -> None:
    reported = get_type_hints(REPORTS[kind])["effect"]
    assert kind is reported or kind in get_args(reported)


def _levels(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_only_another_epoch_or_leader_is_worth_more_than_a_debug_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    roles = [(Role.PROSPECTIVE, 3), (Role.UNATTACHED, 3), (Role.CANDIDATE, 4)]
    NodeReports().stepped(Tick(), [RoleChanged(role, epoch, None) for role, epoch in roles], NOW)
    assert _levels(caplog) == [(level, "role changed") for level in ("INFO", "DEBUG", "INFO")]


def test_a_candidate_has_no_leader(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    roles = [RoleChanged(Role.FOLLOWER, 3, 1), RoleChanged(Role.PROSPECTIVE, 3, None)]
    NodeReports().stepped(Tick(), roles, NOW)
    assert [record.__dict__["fields"]["leader_id"] for record in caplog.records] == [1, None]


def test_the_same_rejected_records_are_an_error_only_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    reports = NodeReports()
    for reason in ("crc", "crc", "gap"):
        reports.stepped(Tick(), [BadFetch(leader_id=2, offset=7, reason=reason)], NOW)
    assert [record.__dict__["fields"]["reason"] for record in caplog.records] == ["crc", "gap"]


def test_the_same_refusal_of_a_voters_entry_is_an_error_only_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    reports = NodeReports()
    refused = UpdateRefused(2, ErrorCode.INVALID_REQUEST)
    joining = JoinRefused(2, ErrorCode.DUPLICATE_VOTER, "another controller has node.id 1")
    for effect in (refused, refused, joining, joining, refused):
        reports.stepped(Tick(), [effect], NOW)
    errors = [("ERROR", "update refused"), ("ERROR", "join refused"), ("ERROR", "update refused")]
    assert _levels(caplog) == errors


def test_only_a_state_that_is_taken_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    before, loaded = MetadataState(), MetadataState()
    event = StateLoaded(SnapshotId(7, 2), loaded)
    NodeReports().stepped(event, [FreeState(loaded)], NOW)
    assert _levels(caplog) == []
    NodeReports().stepped(event, [FreeState(before)], NOW)
    assert _levels(caplog) == [("INFO", "snapshot loaded")]


def test_leadership_that_is_lost_in_a_shutdown_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    reports = NodeReports()
    reports.stepped(Tick(), [LostLeadership(3, 2)], NOW)
    reports.stepped(ShutDown(), [LostLeadership(5, 2)], NOW)
    assert _levels(caplog) == [("WARNING", "lost leadership"), ("INFO", "lost leadership")]
