"""What a folder says of its quorum: epochs, voters and their history, registrations, what is committed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from struct import Struct

import google_crc32c
import msgspec
import pytest

from kraft_wire.cli import main
from kraft_wire.cli.quorum import Unreadable
from kraft_wire.cli.quorum.folders import evidence_of
from kraft_wire.log.batch import CONTROL, HEADER_SIZE_BYTES, encode_batch, encode_keyed_batch, split_batches
from kraft_wire.log.control import encode_control_batch
from kraft_wire.log.files import PARTITION_FOLDER, ElectionState, MetaProperties, meta_properties_text
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotId, encode_snapshot, snapshot_file_name
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kraft_wire.protocol.messages.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraft_wire.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.messages.unregister_controller_record import UnregisterControllerRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import Endpoint, ReplicaKey, Voter, VoterSet, voter_set
from kraft_wire.raft.recovery.evidence import KnownVoter, NewerRegistration, QuorumHistory, changed_voters
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import NewerSnapshot
from kraft_wire.storage.inspection.evidence import read_evidence
from kraft_wire.storage.quorum_state import write_election_state
from kraft_wire.storage.recovery.vote_guards import (
    LOST_BELOW,
    LOST_BELOW_UNLESS_ALONE,
    NO_VOTE_UP_TO,
    VoteGuard,
)
from kraft_wire.storage.store import Store

NODE = 1
DIRECTORY = Uuid(bytes([NODE] * 16))
TIME_MS = 1_800_000_000_000


def voters(*ids: int, host: str = "c") -> VoterSet:
    return voter_set(
        Voter(ReplicaKey(id, Uuid(bytes([id] * 16))), (Endpoint("CONTROLLER", f"{host}{id}", 9093),))
        for id in ids
    )


def registered(id: int) -> bytes:
    record = RegisterControllerRecord(
        controller_id=id, end_points=[ControllerEndpoint(name="CONTROLLER", host=f"c{id}", port=9093)]
    )
    return encode_metadata_record(record, 0)


def registered_broker(id: int) -> bytes:
    return encode_metadata_record(RegisterBrokerRecord(broker_id=id), 0)


def control(offset: int, epoch: int, *messages: Message) -> bytes:
    return encode_control_batch(offset, epoch, TIME_MS + offset, messages)


def leader(id: int = NODE) -> LeaderChangeMessage:
    return LeaderChangeMessage(leader_id=id)


def write_folder(path: Path, batches: list[bytes], *, epoch: int, snapshot: SnapshotId | None = None) -> Path:
    """Write a folder whose log consists of these batches, after a 0-0 checkpoint with voters 1 and 2."""
    (path / PARTITION_FOLDER).mkdir(parents=True)
    (path / "meta.properties").write_text(meta_properties_text(MetaProperties("a cluster", NODE, DIRECTORY)))
    store = Store.open(path, node_id=NODE)
    first = [KRaftVersionRecord(kraft_version=1), voters(1, 2).to_record()]
    store.snapshots.write(
        BOOTSTRAP_SNAPSHOT_ID,
        encode_snapshot(
            BOOTSTRAP_SNAPSHOT_ID, first, [], last_contained_log_timestamp_ms=TIME_MS, now_ms=TIME_MS
        ),
    )
    store.write_election_state(ElectionState(leader_id=2, leader_epoch=epoch), kraft_version=1)
    store.log.append(batches)
    store.log.note_committed(3)
    store.log.flush()
    if snapshot is not None:
        chunks = encode_snapshot(
            snapshot, first, [registered(7)], last_contained_log_timestamp_ms=TIME_MS, now_ms=TIME_MS
        )
        store.snapshots.write(snapshot, chunks)
    store.close()
    return path


def damage(folder: Path, position: int) -> None:
    """Change a bit of the log, which is one segment."""
    [segment] = (folder / PARTITION_FOLDER).glob("*.log")
    data = bytearray(segment.read_bytes())
    data[position] ^= 1
    segment.write_bytes(data)


def test_the_history_of_voters_and_registrations(tmp_path: Path) -> None:
    batches = [
        control(0, 1, leader()),
        encode_batch(1, 1, TIME_MS, [registered(1), registered(2), registered(9), registered_broker(8)]),
        control(5, 2, leader(2), voters(1, 2, 3).to_record()),
        encode_batch(7, 2, TIME_MS, [encode_metadata_record(UnregisterControllerRecord(controller_id=9), 0)]),
    ]
    found = read_evidence(write_folder(tmp_path / "data", batches, epoch=5))
    assert (found.cluster_id, found.node_id, found.directory_id) == ("a cluster", NODE, str(DIRECTORY))
    assert (found.quorum_epoch, found.leader_id, found.last_epoch, found.highest_epoch) == (5, 2, 2, 5)
    assert (found.log_start_offset, found.log_end_offset, found.committed_offset) == (0, 8, 3)
    assert [(part.epoch, part.start_offset, part.end_offset) for part in found.epochs] == [
        (1, 0, 5),
        (2, 5, 8),
    ]
    assert found.epochs[1].digest == hashlib.sha256(batches[2] + batches[3]).hexdigest()
    assert [(change.offset, change.epoch, len(change.voters)) for change in found.history] == [
        (-1, 0, 2),
        (6, 2, 3),
    ]
    assert found.history[1].timestamp_ms == TIME_MS + 5
    assert [voter.id for voter in found.voters] == [1, 2, 3]
    assert found.kraft_version == 1
    assert sorted(found.registrations) == [1, 2]
    assert found.registrations[2] == (Endpoint("CONTROLLER", "c2", 9093),)
    assert (found.broker_ids, found.controller_ids) == ((8,), (1, 2, 9)), "those that registered ever"
    assert not found.has_broker_files
    assert found.problems == ()


@pytest.mark.parametrize("name", ["topic-1-0/", "cleaner-offset-checkpoint", ".kafka_cleanshutdown"])
def test_a_broker_s_files_beside_the_metadata_partition(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "data", [control(0, 1, leader())], epoch=1)
    (folder / "notes-2024").write_text("no folder of a partition")
    assert not read_evidence(folder).has_broker_files
    if name.endswith("/"):
        (folder / name).mkdir()
    else:
        (folder / name).touch()
    assert read_evidence(folder).has_broker_files


def test_the_registrations_of_brokers_are_apart_from_those_of_controllers() -> None:
    history = QuorumHistory()

    def take(*records: bytes) -> None:
        history.take(split_batches(encode_batch(0, 1, TIME_MS, list(records)))[0][0])

    feature = ControllerFeature("metadata.version", 7, 33)
    points = [BrokerEndpoint(name="PLAINTEXT", host="b", port=9092)]
    take(
        encode_metadata_record(RegisterControllerRecord(controller_id=1, features=[feature]), 0),
        *(encode_metadata_record(RegisterBrokerRecord(broker_id=id, end_points=points), 0) for id in (8, 9)),
    )
    assert (sorted(history.registrations), sorted(history.brokers)) == ([1], [8, 9])
    assert history.brokers[8] == (Endpoint("PLAINTEXT", "b", 9092),)
    assert history.features == {1: {"metadata.version": (7, 33)}}
    take(
        encode_metadata_record(UnregisterBrokerRecord(broker_id=9), 0),
        encode_metadata_record(UnregisterControllerRecord(controller_id=1), 0),
    )
    assert (history.registrations, sorted(history.brokers), history.features) == ({}, [8], {})


def test_a_snapshot_in_the_log_doesn_t_hide_the_history_before_it(tmp_path: Path) -> None:
    batches = [control(0, 1, leader()), control(1, 1, voters(1).to_record()), control(2, 2, leader())]
    found = read_evidence(write_folder(tmp_path / "data", batches, epoch=2, snapshot=SnapshotId(3, 2)))
    assert [change.offset for change in found.history] == [-1, 1]
    assert [(s.end_offset, s.epoch, s.is_whole) for s in found.snapshots] == [(0, 0, True), (3, 2, True)]


def test_a_snapshot_ahead_of_the_log_replaces_it(tmp_path: Path) -> None:
    """As after a power cut: the node's own flushes were behind what the others had committed."""
    folder = write_folder(tmp_path / "data", [control(0, 1, leader())], epoch=2, snapshot=SnapshotId(9, 2))
    found = read_evidence(folder)
    assert (found.log_start_offset, found.log_end_offset, found.last_epoch, found.epochs) == (9, 9, 2, ())
    assert [(change.offset, change.is_in_snapshot) for change in found.history] == [(8, True)]
    Store.open(folder, node_id=NODE).close()
    started = read_evidence(folder)
    assert (started.log_start_offset, started.log_end_offset, started.last_epoch) == (9, 9, 2)
    assert started.voters == found.voters


def test_a_damaged_log_ends_before_the_damage(tmp_path: Path) -> None:
    batches = [control(0, 1, leader()), encode_batch(1, 1, TIME_MS, [registered(1)]), control(2, 2, leader())]
    folder = write_folder(tmp_path / "data", batches, epoch=2)
    damage(folder, len(batches[0]) + 70)
    found = read_evidence(folder)
    assert found.log_end_offset == 1
    assert any("is damaged" in problem for problem in found.problems)
    assert found.lost_below == 3, "what a repair would cut out"


@pytest.mark.parametrize("end_offset", [3, 5], ids=["records after the snapshot", "none"])
def test_a_log_whose_damage_a_snapshot_covers_is_read_as_the_node_reads_it(
    tmp_path: Path, end_offset: int
) -> None:
    batches = [
        control(0, 1, leader()),
        encode_batch(1, 1, TIME_MS, [registered(1)]),
        control(2, 2, leader()),
        encode_batch(3, 2, TIME_MS, [registered(8), registered(9)]),
    ]
    folder = write_folder(tmp_path / "data", batches, epoch=2, snapshot=SnapshotId(end_offset, 2))
    damage(folder, len(batches[0]) + 70)
    found = read_evidence(folder)
    assert (found.log_start_offset, found.log_end_offset, found.last_epoch) == (end_offset, 5, 2)
    assert found.problems == ()
    assert sorted(found.registrations) == ([7, 8, 9] if end_offset == 3 else [7])
    Store.open(folder, node_id=NODE).close()
    started = read_evidence(folder)
    assert (started.log_start_offset, started.epochs) == (found.log_start_offset, found.epochs)
    assert (started.voters, started.lost_below) == (found.voters, -1)


def test_what_a_node_makes_again_from_its_records_is_no_problem(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data", [control(0, 1, leader())], epoch=1)
    for name in ("*.index", "*.timeindex", "leader-epoch-checkpoint"):
        [path] = (folder / PARTITION_FOLDER).glob(name)
        path.unlink()
    assert read_evidence(folder).problems == ()
    (folder / PARTITION_FOLDER / "quorum-state").unlink()
    [problem] = read_evidence(folder).problems
    assert "quorum-state is missing" in problem


def test_a_guard_of_the_votes_is_evidence(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data", [control(0, 1, leader())], epoch=1)
    VoteGuard(folder / PARTITION_FOLDER / LOST_BELOW, Disk()).raise_to(9)
    VoteGuard(folder / PARTITION_FOLDER / NO_VOTE_UP_TO, Disk()).raise_to(12)
    found = read_evidence(folder)
    assert (found.lost_below, found.no_vote_up_to, found.highest_epoch) == (9, 12, 12)
    assert found.is_cut


def test_a_loss_that_only_a_node_with_peers_remembers(tmp_path: Path) -> None:
    """A repair couldn't tell whether the node has peers."""
    folder = write_folder(tmp_path / "data", [control(0, 1, leader())], epoch=1)
    VoteGuard(folder / PARTITION_FOLDER / LOST_BELOW_UNLESS_ALONE, Disk()).raise_to(9)
    assert read_evidence(folder).lost_below == 9
    state = ElectionState(leader_id=NODE, leader_epoch=1)
    for ids, lost_below in (((NODE, 2), 9), ((NODE,), -1)):
        write_election_state(folder / PARTITION_FOLDER, state, Disk(), kraft_version=0, voter_ids=ids)
        assert read_evidence(folder).lost_below == lost_below


def test_changes_of_voters_in_words() -> None:
    before = [KnownVoter.of(voter) for voter in voters(1, 2, 3).voters]
    after = [KnownVoter.of(voter) for voter in voters(2, host="new").voters]
    after += [KnownVoter.of(voter) for voter in voters(4).voters]
    replaced = Voter(ReplicaKey(3, Uuid(bytes([8] * 16))), voters(3).voters[0].endpoints)
    after.append(KnownVoter.of(replaced))
    assert changed_voters(before, after) == "added 4; removed 1; new directory 3; new endpoints 2"
    assert changed_voters(before, before) == ""


def test_records_of_newer_types_are_passed_over(tmp_path: Path) -> None:
    """What a log says of its quorum is in few types of records; the others aren't decoded."""
    unknown = b"\x01\x7e\x00and more"
    batches = [control(0, 1, leader()), encode_batch(1, 1, TIME_MS, [unknown, registered(2)])]
    found = read_evidence(write_folder(tmp_path / "data", batches, epoch=1))
    assert (found.log_end_offset, found.controller_ids, found.problems) == (3, (2,), ())


CONTROL_KEY = Struct(">hh")
LEADER_CHANGE, VOTERS, UNKNOWN = 2, 6, 9
SNAPSHOT_MARKS: list[tuple[int, Message]] = [(3, SnapshotHeaderRecord()), (4, SnapshotFooterRecord())]


def control_of_types(offset: int, epoch: int, *records: tuple[int, bytes]) -> bytes:
    """A control batch of these types and values."""
    keyed = [(CONTROL_KEY.pack(0, kind), value) for kind, value in records]
    return encode_keyed_batch(offset, epoch, TIME_MS, keyed, attributes=CONTROL)


def unreadable_records(offset: int, epoch: int) -> bytes:
    """A data batch whose checksum is right, and whose first record has an impossible length."""
    data = bytearray(encode_batch(offset, epoch, TIME_MS, [registered(1), registered(2)]))
    data[HEADER_SIZE_BYTES] ^= 0x40
    data[17:21] = google_crc32c.value(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


LED = LEADER_CHANGE, leader().encode(0)
NEWER_VOTERS = VOTERS, msgspec.structs.replace(voters(1).to_record(), version=1).encode(0)


@pytest.mark.parametrize(
    ("batch", "problem"),
    [
        (control_of_types(1, 2, LED, (UNKNOWN, b"")), "offset 2: control record type 9 is unknown"),
        (control_of_types(1, 2, LED, NEWER_VOTERS), "offset 2: VotersRecord has version 1"),
        (unreadable_records(1, 1), "offset 1: "),
    ],
    ids=["a control record of a newer type", "voters of a newer version", "records that can't be read"],
)
def test_a_whole_batch_that_this_release_can_t_read_is_a_problem_and_no_end(
    tmp_path: Path, batch: bytes, problem: str
) -> None:
    batches = [control(0, 1, leader()), batch, control(3, 3, leader())]
    found = read_evidence(write_folder(tmp_path / "data", batches, epoch=3))
    assert (found.log_end_offset, found.last_epoch, found.is_unreadable) == (4, 3, True)
    assert found.problems[0].startswith(f"the log can't be read at {problem}")


def test_a_control_record_of_a_newer_type_at_the_start_of_a_batch_is_no_damage(tmp_path: Path) -> None:
    """A node of this release would take it for damage. Only a repair would make it one."""
    batches = [control(0, 1, leader()), control_of_types(1, 1, (UNKNOWN, b"")), control(2, 2, leader())]
    found = read_evidence(write_folder(tmp_path / "data", batches, epoch=2))
    assert found.is_unreadable
    assert found.problems[0].startswith("the log can't be read at offset 1: control record type 9 is unknown")


def write_newer_snapshot(folder: Path, snapshot_id: SnapshotId) -> Path:
    """Write a whole snapshot with a control record of a newer type after its header."""
    header, footer = ((kind, message.encode(0)) for kind, message in SNAPSHOT_MARKS)
    store = Store.open(folder, node_id=NODE)
    epoch = snapshot_id.epoch
    chunks = [control_of_types(0, epoch, header, (UNKNOWN, b"")), control_of_types(2, epoch, footer)]
    store.snapshots.write(snapshot_id, chunks)
    store.close()
    return folder / PARTITION_FOLDER / snapshot_file_name(snapshot_id)


@pytest.mark.parametrize("is_newest", [True, False])
def test_a_control_record_of_a_newer_type_in_the_newest_snapshot_is_no_damage(
    tmp_path: Path, is_newest: bool
) -> None:
    batches = [control(0, 1, leader()), control(1, 1, voters(1).to_record()), control(2, 2, leader())]
    last = None if is_newest else SnapshotId(3, 2)
    folder = write_folder(tmp_path / "data", batches, epoch=2, snapshot=last)
    path = write_newer_snapshot(folder, SnapshotId(2, 1))
    found = read_evidence(folder)
    problem = (
        f"snapshot {path.name} can't be read at offset 1: control record type 9 is unknown in metadata logs"
    )
    assert found.problems == ((problem,) if is_newest else ())
    assert found.is_unreadable == is_newest
    before = path.read_bytes()
    if is_newest:
        with pytest.raises(NewerSnapshot, match=r"offset 1: control record type 9 .*; use a newer release"):
            Store.open(folder, node_id=NODE)
        assert path.read_bytes() == before
    else:
        Store.open(folder, node_id=NODE).close()


def test_fsck_says_that_a_snapshot_needs_a_newer_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_folder(tmp_path / "data", [control(0, 1, leader())], epoch=1)
    path = write_newer_snapshot(folder, SnapshotId(1, 1))
    for words in ([], ["--repair"]):
        assert main(["fsck", str(folder), *words]) == 1
        said = capsys.readouterr().out
        assert f"newer      {PARTITION_FOLDER}/{path.name}  " in said
        assert said.endswith(
            "Use a newer release of kraft-wire, here and for the node: this one can't read all files.\n"
        )
        assert path.exists()


def test_a_damaged_log_isn_t_of_a_newer_release(tmp_path: Path) -> None:
    batches = [control(0, 1, leader()), control(1, 1, voters(1).to_record()), control(2, 2, leader())]
    folder = write_folder(tmp_path / "data", batches, epoch=2)
    damage(folder, len(batches[0]) + 70)
    found = read_evidence(folder)
    assert (found.log_end_offset, found.is_unreadable) == (1, False)
    assert "is damaged" in found.problems[0]


def of_newer_version(record: bytes) -> bytes:
    """A record whose version is not known, with a field more."""
    return record[:2] + b"\x63" + record[3:] + b"more"


def test_of_a_registration_of_a_newer_version_only_the_node_is_taken(tmp_path: Path) -> None:
    """It says whether a node is a broker or a controller. The endpoints aren't known then."""
    unregistered = encode_metadata_record(UnregisterControllerRecord(controller_id=2), 0)
    records = [registered(1), registered(2), registered(3), registered_broker(8)]
    records += [of_newer_version(each) for each in (registered_broker(9), registered(3), unregistered)]
    batches = [control(0, 1, leader()), encode_batch(1, 1, TIME_MS, records), control(8, 2, leader())]
    folder = write_folder(tmp_path / "data", batches, epoch=2)
    found = evidence_of(folder)
    assert (found.log_end_offset, found.last_epoch, found.problems) == (9, 2, ())
    assert (found.broker_ids, found.controller_ids) == ((8, 9), (1, 2, 3))
    assert found.registrations == {1: (Endpoint("CONTROLLER", "c1", 9093),), 3: ()}
    assert [voter.id for voter in found.voters] == [1, 2]
    assert found.newer.startswith("offset 5 holds a RegisterBrokerRecord that can't be decoded: ")


def test_a_running_quorum_s_registrations_have_to_be_known() -> None:
    """Voters are removed by what they say."""
    batch = encode_batch(4, 1, TIME_MS, [of_newer_version(registered(1))])
    with pytest.raises(NewerRegistration, match="offset 4 holds a RegisterControllerRecord that can't be"):
        QuorumHistory().take(split_batches(batch)[0][0])


def test_a_registration_of_a_newer_version_that_is_cut_off_names_the_folder(tmp_path: Path) -> None:
    cut_off = of_newer_version(registered_broker(8))[:6]
    batches = [control(0, 1, leader()), encode_batch(1, 1, TIME_MS, [cut_off])]
    folder = write_folder(tmp_path / "data", batches, epoch=1)
    with pytest.raises(Unreadable, match=f"^{folder}: RegisterBrokerRecord.*ends in its node's id"):
        evidence_of(folder)
