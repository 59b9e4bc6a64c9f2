"""quorum status: who may fail, and what is said of registrations and of folders."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.cli.quorum.changes.majorities import LIVE_WITHIN_MS, liveness_of
from kraft_wire.cli.quorum.connecting import advice_without_leader
from kraft_wire.cli.quorum.status.answers import report_of_answers
from kraft_wire.cli.quorum.status.folders import report_of_folders
from kraft_wire.cli.quorum.status.leader import KnownOfLog, known_of, note_silent, report_of_leader
from kraft_wire.cli.quorum.status.report import StatusReport
from kraft_wire.cli.quorum.status.split import note_leaders
from kraft_wire.cli.quorum.status.states import note_states
from kraft_wire.cli.quorum.status.text import text_of
from kraft_wire.client.quorum_description import QuorumDescription, ReplicaDescription
from kraft_wire.client.state_digests import NodeState
from kraft_wire.client.survey import NodeAnswer, leaders_among
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import Endpoint
from kraft_wire.raft.recovery.evidence import (
    EpochEvidence,
    FolderEvidence,
    KnownVoter,
    QuorumHistory,
    VoterChange,
)
from kraft_wire.wire.address import Address

NOW_MS = 1_800_000_000_000
LIVE, SILENT, NEVER = NOW_MS - LIVE_WITHIN_MS, NOW_MS - LIVE_WITHIN_MS - 1, -1


def replica(id: int, last_fetch_ms: int, end_offset: int = 100) -> ReplicaDescription:
    return ReplicaDescription(id, Uuid.ZERO, end_offset, last_fetch_ms, last_fetch_ms)


def described(*last_fetches_ms: int) -> QuorumDescription:
    """Node 1 leads; the other voters fetched at these times."""
    followers = [replica(id, time_ms, 90) for id, time_ms in enumerate(last_fetches_ms, start=2)]
    return QuorumDescription(
        ErrorCode.NONE, leader_id=1, leader_epoch=3, voters=(replica(1, NOW_MS), *followers)
    )


@pytest.mark.parametrize(
    ("fetches", "number"),
    [
        ((), 0),
        ((LIVE,), 0),
        ((LIVE, LIVE), 1),
        ((LIVE, SILENT), 0),
        ((SILENT, NEVER), -1),
        ((LIVE, LIVE, LIVE, LIVE), 2),
        ((LIVE, LIVE, LIVE, NEVER), 1),
    ],
)
def test_how_many_more_voters_may_fail(fetches: tuple[int, ...], number: int) -> None:
    assert liveness_of(described(*fetches)).may_fail == number


def test_registrations_beside_the_voters() -> None:
    quorum = msgspec.structs.replace(described(LIVE, LIVE), observers=(replica(8, LIVE),))
    urls = {1: ["C://c1:1"], 2: ["C://c2:1"], 8: ["C://c8:1"], 9: ["C://c9:1"]}
    report = report_of_leader("a cluster", quorum, KnownOfLog(1, urls), {1: True})
    assert report.notes == [
        "voter 3 is not registered: the metadata doesn't know its features yet",
        "controller 8 is registered and is no voter, and observes (C://c8:1)",
        "controller 9 is registered and is no voter, and doesn't fetch (C://c9:1)",
    ]
    assert [(row.id, row.role, row.lag, row.lag_ms) for row in report.replicas] == [
        (1, "leader", 0, 0),
        (2, "follower", 10, LIVE_WITHIN_MS),
        (3, "follower", 10, LIVE_WITHIN_MS),
        (8, "observer", 0, LIVE_WITHIN_MS),
    ]
    assert [row.auto_join for row in report.replicas] == [True, None, None, None]


def test_a_voter_that_does_not_fetch_is_silent() -> None:
    report = report_of_leader("a cluster", described(LIVE, SILENT, NEVER), KnownOfLog(1, {}), {})
    assert [(row.role, row.is_silent) for row in report.replicas] == [
        ("leader", False),
        ("follower", False),
        ("follower", True),
        ("follower", True),
    ]
    assert sum("  follower, silent  " in line for line in text_of(report)) == 2


def test_a_broker_is_no_controller_that_isn_t_registered() -> None:
    """A combined node has both registrations: it is a controller."""
    history = QuorumHistory()
    history.brokers = {8: (Endpoint("PLAINTEXT", "b8", 1),), 9: (Endpoint("PLAINTEXT", "c9", 2),)}
    history.registrations = {1: (Endpoint("C", "c1", 1),), 9: (Endpoint("C", "c9", 1),)}
    known = known_of(NodeAnswer(Address("c1", 1), registrations={}), history)
    observers = (replica(8, LIVE), replica(9, LIVE), replica(10, LIVE))
    quorum = msgspec.structs.replace(described(), observers=observers)
    report = report_of_leader("a cluster", quorum, known, {})
    assert [(row.id, row.role, row.registered, row.endpoints) for row in report.replicas[1:]] == [
        (8, "broker", True, ["PLAINTEXT://b8:1"]),
        (9, "observer", True, ["C://c9:1"]),
        (10, "observer", False, []),
    ]
    (line,) = [line for line in text_of(report) if line.startswith("8 ")]
    assert line.split()[-3:] == ["yes", "-", "PLAINTEXT://b8:1"]


def test_a_leader_that_is_no_voter_is_shown() -> None:
    quorum = QuorumDescription(
        ErrorCode.NONE, leader_id=1, voters=(replica(2, LIVE),), observers=(replica(1, NOW_MS),)
    )
    roles = [row.role for row in report_of_leader("a cluster", quorum, KnownOfLog(), {}).replicas]
    assert roles == ["follower", "leader, not a voter"]


def test_what_the_leader_does_not_say_is_unknown() -> None:
    silent = NodeAnswer(Address("c1", 1), "connection reset")
    report = report_of_leader("a cluster", described(LIVE), known_of(silent, None), {})
    assert [row.registered for row in report.replicas] == [None, None]
    assert report.notes == ["the leader doesn't say which controllers are registered"]
    assert "kraft.version   unknown" in list(text_of(report))


def test_the_leader_names_no_feature_of_level_0() -> None:
    assert known_of(NodeAnswer(Address("c1", 1)), None).kraft_version == 0


def test_the_whole_log_says_what_the_leader_does_not() -> None:
    history = QuorumHistory()
    history.kraft_version = 1
    history.registrations = {1: (Endpoint("C", "c1", 1), Endpoint("D", "c1", 2))}
    known = known_of(NodeAnswer(Address("c1", 1), "connection reset"), history)
    assert known == KnownOfLog(1, {1: ["C://c1:1", "D://c1:2"]}, {1: Address("c1", 1)})


def test_without_the_whole_log_the_leader_says_who_is_registered() -> None:
    answer = NodeAnswer(Address("c1", 1), kraft_version=1, registrations={1: Address("c1", 1)})
    assert known_of(answer, None) == KnownOfLog(1, {1: ["c1:1"]}, {1: Address("c1", 1)})


def test_the_newest_epoch_counts_among_single_controllers() -> None:
    answers = [
        NodeAnswer(Address("c1", 1), leader_id=3, epoch=4, kraft_version=1),
        NodeAnswer(Address("c2", 1), leader_id=-1, epoch=7, kraft_version=1, registrations={}),
        NodeAnswer(Address("c3", 1), "Connection refused", is_silent=True),
    ]
    report = report_of_answers(answers)
    assert (report.leader_id, report.last_known_leader_id, report.leader_epoch) == (None, 3, 7)
    assert "Leader          none (last known: 3)" in text_of(report)
    assert report.notes == [
        "c1:1 remembers node 3 as leader of epoch 4; kraft.version 1; registrations unknown",
        "c2:1 knows no leader, epoch 7; kraft.version 1; registered controllers: none",
        "c3:1 can't be asked: Connection refused",
    ]


def test_two_leaders_make_a_split_cluster() -> None:
    """Each of them follows nobody: the one of the later epoch doesn't know more than the other one."""
    answers = [
        NodeAnswer(Address("c1", 1), leader_id=1, epoch=12, description=described(LIVE)),
        NodeAnswer(Address("c3", 1), leader_id=3, epoch=13, description=described(LIVE)),
        NodeAnswer(Address("c3", 2), leader_id=3, epoch=13, description=described(LIVE)),
    ]
    report = report_of_answers(answers)
    note_leaders(report, leaders_among(answers))
    assert [(row.id, row.epoch) for row in report.leaders] == [(3, 13), (1, 12)]
    assert report.split.startswith(
        "the cluster is split: 2 controllers lead: node 3 at c3:2 in epoch 13, with the voters 1, 2; "
        "node 1 at c1:1 in epoch 12, with the voters 1, 2. Keep one side. After a recovery, keep the "
        "recovered one"
    )
    assert "Leader          2 controllers lead: 3 at c3:2, epoch 13; 1 at c1:1, epoch 12" in text_of(report)
    note_leaders(report, leaders_among(answers[1:]))
    assert (len(report.leaders), "Leader          3" in text_of(report)) == (1, True)


def folder(node_id: int, committed_offset: int, *parts: tuple[int, int, int]) -> FolderEvidence:
    """A folder whose log has these parts: epoch, first offset, end."""
    return FolderEvidence(
        f"/{node_id}",
        "a cluster",
        node_id,
        "",
        log_end_offset=parts[-1][2],
        epochs=tuple(EpochEvidence(*part, "") for part in parts),
        committed_offset=committed_offset,
    )


@pytest.mark.parametrize(("committed", "is_split"), [(12, True), (10, False)])
def test_logs_whose_committed_records_differ_are_of_a_split_cluster(committed: int, is_split: bool) -> None:
    """The end of a log that was never committed differs after any change of leader."""
    one, other = folder(1, committed, (1, 0, 10), (2, 10, 30)), folder(3, 20, (1, 0, 10), (3, 10, 20))
    report = report_of_folders([one, other])
    assert [row.lag for row in report.replicas] == [None, 0]
    assert bool(report.split) is is_split
    if is_split:
        assert report.split.startswith("the committed records in /1 and /3 differ from offset 10 on: ")
    assert report.high_watermark == (None if is_split else 20)


def test_a_lagging_log_does_not_differ() -> None:
    report = report_of_folders([folder(1, 30, (1, 0, 10), (2, 10, 30)), folder(3, 9, (1, 0, 9))])
    assert ([row.lag for row in report.replicas], report.split) == ([0, 21], "")


def test_two_folders_of_one_replica_are_copies() -> None:
    """Both processes vote in one name: one leader too many can come of that."""
    directory = str(Uuid(bytes([1] * 16)))
    folders = [FolderEvidence(path, "a cluster", id, directory) for path, id in (("/1", 1), ("/2", 2))]
    assert not any("copies" in note for note in report_of_folders(folders).notes)
    folders = [FolderEvidence(path, "a cluster", 1, directory) for path in ("/1", "/copy")]
    (note, _) = report_of_folders(folders).notes
    assert note.startswith("/1 and /copy are copies: both are node 1 with directory ")


def test_addresses_that_nobody_has_any_more_lead_to_recover() -> None:
    old = {1: Address("old1", 1), 2: Address("old2", 1)}
    moved = [
        NodeAnswer(Address("new1", 1), leader_id=1, epoch=4, leader_address=old[1], registrations=old),
        NodeAnswer(Address("new2", 1), leader_id=1, epoch=4, registrations=old),
    ]
    hint = "see `kraft-wire quorum recover plan --endpoints`"
    assert hint in report_of_answers(moved).notes[-1]
    stayed = [*moved, NodeAnswer(Address("old2", 1), leader_id=1, epoch=4, registrations=old)]
    assert not any(hint in note for note in report_of_answers(stayed).notes)


def test_a_directory_that_was_replaced_has_no_registration() -> None:
    """The node's registration, setting and address are those of the directory that it has now."""
    old, new = Uuid(bytes([4] * 16)), Uuid(bytes([5] * 16))
    gone = msgspec.structs.replace(replica(3, SILENT), directory_id=old)
    runs = msgspec.structs.replace(replica(3, LIVE), directory_id=new)
    points = {3: (Endpoint("C", "new3", 1),)}
    known, auto_join = KnownOfLog(1, {1: [], 3: ["C://new3:1"]}), {3: True}
    for voters, observers in (((runs,), (gone,)), ((gone,), (runs,))):
        quorum = QuorumDescription(
            ErrorCode.NONE,
            leader_id=1,
            voters=(replica(1, NOW_MS), *voters),
            observers=observers,
            endpoints=points if runs in voters else {3: (Endpoint("C", "old3", 1),)},
        )
        report = report_of_leader("a cluster", quorum, known, auto_join)
        rows = {row.directory_id: row for row in report.replicas}
        row, other = rows[str(new)], rows[str(old)]
        assert (row.registered, row.auto_join, row.endpoints) == (True, True, ["C://new3:1"])
        assert (other.registered, other.auto_join) == (False, None)
        assert other.endpoints == ([] if runs in voters else ["C://old3:1"])


def test_of_two_processes_with_one_node_id_the_one_that_fetched_last_has_the_registration() -> None:
    ids = [Uuid(bytes([byte] * 16)) for byte in (4, 5)]
    twins = [
        msgspec.structs.replace(replica(3, time_ms), directory_id=id)
        for id, time_ms in zip(ids, (LIVE, NOW_MS), strict=True)
    ]
    quorum = msgspec.structs.replace(described(), observers=tuple(twins))
    report = report_of_leader("a cluster", quorum, KnownOfLog(1, {1: [], 3: ["C://c3:1"]}), {3: True})
    rows = [(row.registered, row.auto_join, row.endpoints) for row in report.replicas[1:]]
    assert rows == [(False, None, []), (True, True, ["C://c3:1"])]
    assert report.notes[-1] == (
        f"node 3 fetches with 2 directories: {ids[0]}, {ids[1]}. Unless its disk was replaced in the last 3 "
        "seconds, two processes have this node.id: stop one"
    )


def test_controllers_that_can_not_be_asked_are_named_and_whether_they_are_still_counted() -> None:
    at = {id: Address(f"c{id}", 1) for id in (2, 3, 9)}
    answers = [
        NodeAnswer(at[2], "Connection refused", is_silent=True),
        NodeAnswer(at[3], "Connection refused", is_silent=True),
        NodeAnswer(at[9], "it hangs"),
        NodeAnswer(Address("c1", 1), epoch=3),
    ]
    report = StatusReport()
    note_silent(report, described(LIVE, SILENT), answers, {at[2]: 2, at[3]: 3})
    assert report.notes == [
        "node 2, c2:1, can't be asked from here: Connection refused: it has fetched in the last 3 seconds, "
        'so "May fail" still counts it',
        "node 3, c3:1, can't be asked from here: Connection refused",
        "c9:1 can't be asked from here: it hangs",
    ]


def test_a_voter_that_hangs_may_still_count_as_live() -> None:
    at = Address("c2", 1)
    report = StatusReport()
    note_silent(report, described(LIVE), [NodeAnswer(at, "no answer in 3 s", is_mute=True)], {at: 2})
    (note,) = report.notes
    assert note.endswith('so "May fail" still counts it')


def test_without_a_leader_controllers_still_say_whether_they_join() -> None:
    answer = NodeAnswer(Address("c1", 1), epoch=3, registrations={1: Address("c1", 1), 2: Address("c2", 1)})
    rows = report_of_answers([answer], {1: True}).replicas
    assert [(row.id, row.auto_join) for row in rows] == [(1, True), (2, None)]


def test_what_to_do_without_a_leader_depends_on_whether_all_run() -> None:
    runs, gone = NodeAnswer(Address("c1", 1), epoch=3), NodeAnswer(Address("c2", 1), "Connection refused")
    assert "Start the voters that don't answer" in advice_without_leader([runs, gone])
    all_run = advice_without_leader([runs])
    assert "Start" not in all_run
    assert "All of these run: their logs say why" in all_run
    assert "`kraft-wire quorum status --from-dir FOLDER` shows it" in all_run


def test_a_leader_is_one_that_says_so_itself() -> None:
    follower = NodeAnswer(Address("c1", 1), leader_id=3, epoch=4)
    leader = NodeAnswer(Address("c3", 1), leader_id=3, epoch=4, description=described(LIVE))
    for answers, leader_id in (([follower], None), ([follower, leader], 3)):
        report = report_of_answers(answers)
        assert (report.leader_id, report.last_known_leader_id) == (leader_id, 3)


def test_folders_say_who_led_last() -> None:
    folders = [
        FolderEvidence("/1", "a cluster", 1, "", quorum_epoch=4, leader_id=3),
        FolderEvidence("/2", "a cluster", 2, "", quorum_epoch=5, voted_id=2),
    ]
    report = report_of_folders(folders)
    assert (report.leader_id, report.last_known_leader_id) == (None, 3)
    assert "Leader          not asked (last known: 3)" in text_of(report)


def test_a_folder_whose_directory_is_not_the_voter_s() -> None:
    voter = KnownVoter(1, str(Uuid(bytes([1] * 16))), (Endpoint("C", "c1", 1),))
    folder = FolderEvidence(
        "/1",
        "a cluster",
        1,
        str(Uuid(bytes([2] * 16))),
        quorum_epoch=3,
        voted_id=2,
        log_end_offset=9,
        history=(VoterChange(-1, 0, NOW_MS, (voter,)),),
    )
    report = report_of_folders([folder])
    (row,) = report.replicas
    assert (row.role, row.last_seen, row.pid) == ("voter with another directory", "voted for 2", None)
    assert any("  voter with another directory, voted for 2  " in line for line in text_of(report))
    assert report.high_watermark is None
    assert "Committed up to unknown" in text_of(report)
    assert "  format, epoch 0, 2027-01-15T08:00:00.000+00:00: 1" in list(text_of(report))


def test_a_static_quorum_s_voters_are_in_the_configuration() -> None:
    folder = FolderEvidence("/1", "a cluster", 1, "", static_voter_ids=(1, 2, 3))
    report = report_of_folders([folder])
    assert report.notes == ["the log names no voters: controller.quorum.voters does (1, 2, 3)"]
    assert report.replicas[0].role == "voter"


def test_the_folder_of_a_node_that_is_no_voter_has_the_endpoints_that_it_registered() -> None:
    point = Endpoint("CONTROLLER", "c4", 9093)
    folder = FolderEvidence("/4", "a cluster", 4, "", registrations={4: (point,)})
    report = report_of_folders([folder])
    (row,) = report.replicas
    assert (row.role, row.registered, row.endpoints) == ("no voter", True, ["CONTROLLER://c4:9093"])


def test_a_folder_at_work_names_its_process() -> None:
    folder = FolderEvidence("/1", "a cluster", 1, "", leader_id=3, controller_pid=24498, committed_offset=7)
    report = report_of_folders([folder])
    (row,) = report.replicas
    assert (row.role, row.pid, row.last_seen) == ("no voter", 24498, "followed 3")
    assert any("  no voter, running as process 24498  " in line for line in text_of(report))
    assert report.high_watermark == 7


# The states.

AT = [Address("c", port) for port in (1, 2, 3)]


def state(node_id: int, digest: str, formula: int = 1) -> NodeState:
    return NodeState(
        AT[node_id - 1], node_id=node_id, end_offset=57, formula=formula, record_count=9, digest=digest
    )


def test_states_that_differ_are_named_by_node() -> None:
    report = StatusReport()
    note_states(report, [state(1, "aa"), state(2, "bb"), state(3, "aa")], {})
    assert report.states_differ.startswith("the states at offset 57 differ: node 1 has aa, node 2 has bb. ")
    assert [row.id for row in report.states] == [1, 2, 3]


def test_a_state_that_is_not_known_differs_from_none() -> None:
    report = StatusReport()
    away, stranger = (NodeState(address, problem="it is away") for address in AT[1:])
    note_states(report, [state(1, "aa"), away, stranger], {AT[1]: 2})
    assert report.states_differ == ""
    assert list(text_of(report))[-4:] == [
        "State of the metadata:",
        "  node 1: aa at offset 57 (9 records)",
        "  node 2: it is away",
        "  at c:3: it is away",
    ]


def test_digests_of_several_formulas_are_not_compared_and_the_report_says_so() -> None:
    report = StatusReport()
    note_states(report, [state(1, "aa"), state(2, "bb", formula=2)], {})
    assert report.states_differ == ""
    assert any("several releases" in note for note in report.notes)
