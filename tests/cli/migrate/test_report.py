"""The report: what is in the way comes first, and the text has every finding and every command."""

from __future__ import annotations

import msgspec

from kraft_wire.cli.quorum.migrate import to_dynamic, to_kraft_wire
from kraft_wire.cli.quorum.migrate.facts import Quorum, Target, Usage
from kraft_wire.cli.quorum.migrate.report import MigrationReport, report_of, text_of
from tests.cli.migrate.samples import broker, controller, features, file, ours, properties, quorum, with_one

AGAIN = "kraft-wire quorum migrate --check --to …"


def report(found: Quorum, target: Target = "kraft-wire") -> MigrationReport:
    judge = to_dynamic.judge if target == "dynamic" else to_kraft_wire.judge
    return report_of(found, target, judge(found), AGAIN)


def test_nodes_and_the_cluster_have_their_own_findings() -> None:
    refused = controller(2, file=file(2, properties(2, config_providers="x")))
    shown = report(quorum(*with_one(refused), usage=Usage(tokens=1), brokers=(broker(11),)))
    assert [node.name for node in shown.nodes] == ["controller 1", "controller 2", "controller 3"]
    assert [len(node.findings) for node in shown.nodes] == [0, 1, 0]
    assert [finding.node for finding in shown.findings] == [""]
    assert (shown.is_blocked, shown.is_reached) == (True, False)


def test_brokers_are_shown_if_they_have_something_to_do() -> None:
    assert [node.name for node in report(quorum(brokers=(broker(11),)), "dynamic").nodes][-1] == "broker 11"
    old = report(quorum(brokers=(broker(11, features=features(21)),)))
    assert [finding.node for finding in old.findings] == ["broker 11"]


def test_what_is_in_the_way_is_next() -> None:
    shown = report(quorum(*with_one(controller(2, lag=1000))))
    assert shown.next is not None
    assert shown.next.node == "controller 2"
    assert shown.next.why == "it lags by 1000 records. Wait until it keeps up, then ask again"


def test_the_text_of_a_step() -> None:
    lines = list(text_of(report(quorum(*with_one(controller(1, is_voter=False, lag=None))))))
    assert lines[3:7] == [
        "Wanted         kraft-wire on all controllers",
        "",
        "controller 1: to do",
        "  Kafka 4.4, observer, at c1:9093, /etc/kafka/c1.properties",
    ]
    assert lines[-7:] == [
        "Nothing is in the way.",
        "Next on the machine of controller 1: kraft-wire takes over its folder",
        "  kill 1001  # controller 1; wait until it has ended",
        "  kraft-wire fsck /data/1",
        "  kraft-wire server /etc/kafka/c1.properties",
        "Then ask again:",
        f"  {AGAIN}",
    ]


def test_the_text_of_what_is_in_the_way_and_not_known() -> None:
    found = quorum(
        controller(1, file=file(1, damage=("1.log is damaged",))),
        controller(2, file=None),
        ours(3, is_leader=True),
        brokers=(broker(11, features=features(21)),),
    )
    lines = list(text_of(report(found)))
    assert lines[lines.index("controller 1: to do") + 2 :][:3] == [
        "  in the way: /data/1: 1.log is damaged",
        "    see docs/recovery.md",
        "    kraft-wire fsck /data/1",
    ]
    assert "controller 3: done" in lines
    assert lines[lines.index("the cluster") + 1] == (
        "  broker 11: in the way: it is Kafka 3.9; kraft-wire serves brokers from Kafka 4.0 on"
    )
    assert "In the way: 2. Not known: 1." in lines
    assert (
        "First on the machine of broker 11: it is Kafka 3.9; kraft-wire serves brokers from Kafka 4.0 on. "
        "Upgrade it to Kafka 4.0 or newer"
    ) in lines


def test_the_text_of_a_reached_target() -> None:
    assert list(text_of(report(quorum(*map(ours, (1, 2, 3))))))[-1] == "Nothing is left to do."


def test_json_holds_the_whole_report() -> None:
    shown = report(quorum(), "dynamic")
    decoded = msgspec.json.decode(msgspec.json.encode(shown), type=MigrationReport)
    assert decoded == shown
    assert decoded.next is not None
    assert decoded.again == AGAIN
