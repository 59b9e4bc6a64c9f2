"""A short campaign of controllers with exporters that fail, and the rules that judge a campaign."""

from __future__ import annotations

from compat.campaigns.exporters import rules
from compat.campaigns.exporters.report import describe
from compat.campaigns.exporters.rules import GRACE_S, Delivery, Exported, Look, Span
from compat.campaigns.exporters.trial import run
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import Workspace

FAULTS = 3
INTERVAL_S = 8.0


def test_no_sink_misses_a_record_while_controllers_fail(
    workspace: Workspace, tool_server: ToolServer
) -> None:
    outcome = run(tool_server, workspace, FAULTS, INTERVAL_S, seed=7)
    text = describe(outcome, [])
    assert not outcome.violations, text
    assert len(outcome.spans) == FAULTS
    assert set(outcome.got) == {"files", "rows", "lake", "trail", "steady", "tenth", "hangs", "away"}
    assert all(got >= outcome.committed > FAULTS for got, _ in outcome.got.values()), text
    assert outcome.looks > 0


def _record(offset: int, data: bytes = b"{}") -> Exported:
    return Exported(offset, 0, "TopicRecord", data)


LOG = {offset: _record(offset) for offset in (3, 5, 8)}


def test_a_sink_with_every_record_violates_no_rule() -> None:
    assert rules.incomplete("sink", LOG, [_record(3), _record(5), _record(3), _record(8)]) == []


def test_a_record_that_is_missing_strange_or_out_of_order_is_named() -> None:
    assert rules.incomplete("sink", LOG, [_record(3), _record(8), _record(5)]) == [
        "sink: offset 5 came first after 8"
    ]
    assert rules.incomplete("sink", LOG, [_record(3)]) == [
        "sink: 2 records are missing, the first at offset 5"
    ]
    strange = rules.incomplete("sink", LOG, [_record(3), _record(5, b"[]"), _record(8), _record(9)])
    assert len(strange) == 2
    assert "isn't in the log" in strange[0]


def _delivery(at_s: float, *offsets: int, is_acknowledged: bool = True) -> Delivery:
    return Delivery(at_s, [_record(offset) for offset in offsets], is_acknowledged)


FAULT = Span("controller-100 killed", 100.0)


def test_records_may_come_again_if_they_were_acknowledged_shortly_before_a_fault() -> None:
    unanswered = _delivery(10.0, 3, is_acknowledged=False)
    deliveries = [unanswered, _delivery(11.0, 3), _delivery(100 - GRACE_S, 5), _delivery(101.0, 5, 8)]
    assert rules.repeated_too_late("sink", deliveries, [FAULT]) == []


def test_records_that_come_again_later_are_named() -> None:
    deliveries = [_delivery(11.0, 3), _delivery(101.0, 3)]
    assert rules.repeated_too_late("sink", deliveries, [FAULT]) == [
        "sink: offset 3 came again after `controller-100 killed`, acknowledged 89.0 s before it"
    ]
    assert rules.repeated_too_late("sink", deliveries, []) == ["sink: offset 3 came again before any fault"]


def test_a_position_may_follow_an_acknowledgement_only() -> None:
    deliveries = [_delivery(10.0, 3), _delivery(20.0, 5, is_acknowledged=False), _delivery(30.0, 5)]

    def looked(at_s: float, position: int) -> list[str]:
        return rules.ahead_of_acknowledgement(LOG, deliveries, [Look(at_s, "one", "sink", position)])

    assert looked(9.0, 3) == looked(10.0, 4) == looked(30.0, 8) == []
    assert looked(9.0, 4) == ["sink: one had position 4 before its sink had all records before it"]
    assert len(looked(29.0, 6)) == 1
    assert len(looked(99.0, 9)) == 1
