"""storage: folders as Kafka's StorageTool makes them, its exit codes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_wire.cli import main
from kraft_wire.log.batch import record_values
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.files import MetaProperties, parse_meta_properties
from kraft_wire.log.snapshot import verify_snapshot
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.protocol.uuid import Uuid

Capture = pytest.CaptureFixture[str]

CLUSTER = "kp5OoISbSiuz6YkkatmsqQ"
OTHER_CLUSTER = "0Hqdn6mPQ5GrP21WaEIN5Q"
DIRECTORY = "7HTJwF4WQ5Ckqdz1kIuOOQ"
CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def storage_format(file: Path, *options: str) -> int:
    return main(["storage", "format", "-t", CLUSTER, "-c", str(file), *options])


def identity(folder: Path) -> MetaProperties:
    return parse_meta_properties((folder / "meta.properties").read_text())


def checkpoint(folder: Path) -> tuple[list[Message], list[Message]]:
    """Return the records of the 0-0 checkpoint between header and footer: control and metadata records."""
    header, *data, _footer = verify_snapshot((folder / CHECKPOINT).read_bytes())
    control = decode_control_batch(header)[1:]
    return control, [decode_metadata_record(value)[0] for batch in data for value in record_values(batch)]


def add_property(file: Path, text: str) -> None:
    with file.open("a") as opened:
        opened.write(f"{text}\n")


def levels_of(records: list[Message]) -> dict[str, int]:
    assert all(isinstance(record, FeatureLevelRecord) for record in records)
    return {record.name: record.feature_level for record in records if isinstance(record, FeatureLevelRecord)}


def test_standalone(controller_file: Path, tmp_path: Path, capsys: Capture) -> None:
    assert storage_format(controller_file, "--standalone") == 0
    data, more = identity(tmp_path / "data"), identity(tmp_path / "more")
    assert (data.cluster_id, data.node_id) == (more.cluster_id, more.node_id) == (CLUSTER, 1)
    assert data.directory_id != more.directory_id
    (kraft_version, voters), records = checkpoint(tmp_path / "data")
    assert kraft_version == KRaftVersionRecord(kraft_version=1)
    assert isinstance(voters, VotersRecord)
    (voter,) = voters.voters
    assert (voter.voter_id, voter.voter_directory_id) == (1, data.directory_id)
    (endpoint,) = voter.endpoints
    assert (endpoint.name, endpoint.host, endpoint.port) == ("CONTROLLER", "localhost", 9193)
    assert records[0] == FeatureLevelRecord("metadata.version", 33)
    assert levels_of(records) == {
        "metadata.version": 33,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 2,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert not (tmp_path / "more" / CHECKPOINT).exists()
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"Formatted dynamic metadata voter directory {tmp_path / 'data'} with metadata.version 4.4-IV2.",
        f"Formatted data directory {tmp_path / 'more'} with metadata.version 4.4-IV2.",
    ]


def test_initial_controllers_name_this_node_s_directory(controller_file: Path, tmp_path: Path) -> None:
    voters = f"1@c1:9193:{DIRECTORY},2@c2:9193:{OTHER_CLUSTER}"
    assert storage_format(controller_file, "--initial-controllers", voters) == 0
    assert identity(tmp_path / "data").directory_id == Uuid.parse(DIRECTORY)
    assert identity(tmp_path / "more").directory_id != Uuid.parse(DIRECTORY)
    (_, record), _ = checkpoint(tmp_path / "data")
    assert isinstance(record, VotersRecord)
    assert [voter.voter_id for voter in record.voters] == [1, 2]


def test_a_node_that_is_no_initial_controller_hears_that_it_observes(
    controller_file: Path, capsys: Capture
) -> None:
    assert storage_format(controller_file, "--initial-controllers", f"2@c2:9193:{DIRECTORY}") == 0
    assert "warning: --initial-controllers names the voters 2, and not this node, 1: it observes" in (
        capsys.readouterr().err
    )


def test_without_initial_controllers_there_are_no_voters(controller_file: Path, tmp_path: Path) -> None:
    assert storage_format(controller_file, "-N") == 0
    control, _ = checkpoint(tmp_path / "data")
    assert control == [KRaftVersionRecord(kraft_version=1)]


def test_a_static_quorum_has_no_control_records(controller_file: Path, tmp_path: Path) -> None:
    add_property(controller_file, "controller.quorum.voters=1@127.0.0.1:9193")
    assert storage_format(controller_file) == 0
    control, records = checkpoint(tmp_path / "data")
    assert control == []
    assert "kraft.version" not in levels_of(records)


def test_release_and_features(controller_file: Path, tmp_path: Path) -> None:
    options = ("-s", "-r", "4.0", "-f", "group.version=0", "-f", "eligible.leader.replicas.version=1")
    assert storage_format(controller_file, *options) == 0
    _, records = checkpoint(tmp_path / "data")
    assert levels_of(records) == {
        "metadata.version": 25,
        "eligible.leader.replicas.version": 1,
        "transaction.version": 2,
    }


def test_users_are_records_after_the_features(controller_file: Path, tmp_path: Path) -> None:
    user = "SCRAM-SHA-512=[name=alice,password=secret]"
    assert storage_format(controller_file, "--standalone", "--add-scram", user) == 0
    _, records = checkpoint(tmp_path / "data")
    assert isinstance(records[-1], UserScramCredentialRecord) and records[-1].name == "alice"
    assert all(isinstance(record, FeatureLevelRecord) for record in records[:-1])


def test_a_broker_gets_its_identity_only(broker_file: Path, tmp_path: Path) -> None:
    assert storage_format(broker_file) == 0
    assert [path.name for path in (tmp_path / "broker").iterdir()] == ["meta.properties"]
    assert identity(tmp_path / "broker").node_id == 2


def test_formatting_again(controller_file: Path, tmp_path: Path, capsys: Capture) -> None:
    assert storage_format(controller_file, "-s") == 0
    before = identity(tmp_path / "data")
    capsys.readouterr()
    assert storage_format(controller_file, "-s") == 1
    err = capsys.readouterr().err
    assert err.startswith(f"kraft-wire: {tmp_path / 'data'}: is formatted already; --ignore-formatted ")
    assert storage_format(controller_file, "-s", "--ignore-formatted") == 0
    assert capsys.readouterr().out == "All folders are already formatted.\n"
    assert identity(tmp_path / "data") == before


def test_a_formatted_folder_keeps_its_directory_id_and_says_so(
    controller_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert storage_format(controller_file, "-s") == 0
    node, kept = identity(tmp_path / "data").node_id, identity(tmp_path / "data").directory_id
    for wanted, said in (
        (str(kept), ""),
        (str(Uuid.ONE), f"keeps its directory id, {kept}. --initial-contr"),
    ):
        capsys.readouterr()
        voters = f"{node}@localhost:9093:{wanted}"
        assert storage_format(controller_file, "--initial-controllers", voters, "--ignore-formatted") == 0
        err = capsys.readouterr().err
        assert said in err
        assert bool(said) == bool(err)
    assert identity(tmp_path / "data").directory_id == kept


def test_a_new_folder_beside_a_formatted_one(controller_file: Path, tmp_path: Path, capsys: Capture) -> None:
    assert storage_format(controller_file, "-s") == 0
    capsys.readouterr()
    add_property(controller_file, f"log.dirs={tmp_path / 'data'},{tmp_path / 'third'}")
    assert storage_format(controller_file, "-s", "-g") == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"Formatted data directory {tmp_path / 'third'} with metadata.version 4.4-IV2."
    ]


def test_another_cluster_s_folder_is_not_touched(
    controller_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert storage_format(controller_file, "-s") == 0
    capsys.readouterr()
    words = ["storage", "format", "-t", OTHER_CLUSTER, "-c", str(controller_file), "-s", "-g"]
    assert main(words) == 1
    assert CLUSTER in capsys.readouterr().err
    assert identity(tmp_path / "data").cluster_id == CLUSTER


@pytest.mark.parametrize(
    ("options", "status", "complaint"),
    [
        ((), 2, "needs one of --standalone, --initial-controllers or --no-initial-controllers"),
        (("-s", "-N"), 2, "--standalone and --no-initial-controllers exclude each other; give one of them"),
        (("-I", "1@h:1"), 2, "--initial-controllers: 'h' is not host:port"),
        (("-s", "-f", "group.version"), 2, "--feature 'group.version' is not FEATURE=LEVEL"),
        (("-s", "-f", "group.version=7"), 2, "group.version has no level 7; use 0 to 1"),
        (("-s", "-f", "nothing=1"), 2, "feature nothing is unknown"),
        (("-s", "-f", "kraft.version=0"), 2, "kraft.version 0 does not go with this quorum"),
        (("-s", "-r", "4.0", "-f", "metadata.version=25"), 2, "give either --release-version or --feature"),
        (("-s", "-r", "1.0"), 2, "release version '1.0' is unknown"),
        (("-s", "-r", "4.5-IV0"), 2, "release version '4.5-IV0' is unknown"),
        (
            ("-s", "-r", "3.9", "-f", "eligible.leader.replicas.version=1"),
            2,
            "eligible.leader.replicas.version 1 needs metadata.version 23",
        ),
        (("-s", "-r", "3.4", "-S", "SCRAM-SHA-256=[name=a,password=b]"), 2, "needs metadata.version 3.5-IV2"),
        (("-s", "-S", "PLAIN=[name=a,password=b]"), 2, "begins with a mechanism, SCRAM-SHA-256 or"),
        (("-s", "-t", ""), 2, "--cluster-id '' is not an id"),
    ],
)
def test_what_format_refuses_and_leaves_untouched(
    options: tuple[str, ...],
    status: int,
    complaint: str,
    controller_file: Path,
    tmp_path: Path,
    capsys: Capture,
) -> None:
    words = ["-c", str(controller_file), *options]
    if "-t" not in options:
        words += ["-t", CLUSTER]
    assert main(["storage", "format", *words]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err
    assert err.count("\n") == 1
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("cluster_id", ["foo", "CLUSTER-ID", CLUSTER[:-1], f"{CLUSTER}A"])
def test_a_cluster_id_that_is_none_is_accepted_as_by_java_with_a_warning(
    cluster_id: str, controller_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["storage", "format", "-t", cluster_id, "-c", str(controller_file), "-s"]) == 0
    err = capsys.readouterr().err
    assert err.startswith(f"kraft-wire: warning: --cluster-id {cluster_id!r} is not an id as ")
    assert identity(tmp_path / "data").cluster_id == cluster_id


def test_a_cluster_id_that_is_one_needs_no_warning(controller_file: Path, capsys: Capture) -> None:
    assert storage_format(controller_file, "-s") == 0
    assert capsys.readouterr().err == ""


def test_a_static_quorum_has_no_use_for_voters(controller_file: Path, capsys: Capture) -> None:
    add_property(controller_file, "controller.quorum.voters=1@127.0.0.1:9193")
    assert storage_format(controller_file, "--standalone") == 2
    assert "remove controller.quorum.voters" in capsys.readouterr().err


def test_standalone_is_for_controllers(broker_file: Path, capsys: Capture) -> None:
    assert storage_format(broker_file, "--standalone") == 2
    assert "--standalone is for controllers" in capsys.readouterr().err


def test_info_of_formatted_folders(controller_file: Path, tmp_path: Path, capsys: Capture) -> None:
    assert storage_format(controller_file, "-s") == 0
    capsys.readouterr()
    assert main(["storage", "info", "-c", str(controller_file)]) == 0
    directory_id = identity(tmp_path / "data").directory_id
    assert capsys.readouterr().out.splitlines() == [
        "Found log directories:",
        f"  {tmp_path / 'data'}",
        f"  {tmp_path / 'more'}",
        "",
        f"Found metadata: {{cluster.id={CLUSTER}, directory.id={directory_id}, node.id=1, version=1}}",
        "",
    ]


def test_info_tells_every_problem(controller_file: Path, tmp_path: Path, capsys: Capture) -> None:
    names = ("data", "damaged", "empty", "file", "missing", "other")
    add_property(controller_file, "log.dirs=" + ",".join(str(tmp_path / name) for name in names))
    for name, text in (
        ("data", f"version=1\ncluster.id={CLUSTER}\nnode.id=1\n"),
        ("damaged", "version=1\nnode.id=one\n"),
        ("other", f"version=1\ncluster.id={CLUSTER}\nnode.id=9\n"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").write_text(text)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert main(["storage", "info", "-c", str(controller_file)]) == 1
    lines = capsys.readouterr().out.splitlines()
    problems = lines[lines.index("Found problems:") + 1 : -1]
    assert problems == [
        f"  {tmp_path / 'damaged' / 'meta.properties'}: there is no cluster.id",
        f"  {tmp_path / 'empty'} is not formatted.",
        f"  {tmp_path / 'file'} is not a directory",
        f"  {tmp_path / 'missing'} does not exist",
        f"  {tmp_path / 'other'} belongs to another node than the folders before it",
    ]


def test_version_mapping(capsys: Capture) -> None:
    assert main(["storage", "version-mapping", "-r", "4.0"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "metadata.version=25 (4.0)",
        "kraft.version=1",
        "transaction.version=2",
        "group.version=1",
        "eligible.leader.replicas.version=0",
        "share.version=0",
        "streams.version=0",
    ]
    assert main(["storage", "version-mapping"]) == 0
    assert capsys.readouterr().out.startswith("metadata.version=33 (4.4-IV2)\n")
    assert main(["storage", "version-mapping", "-r", "9.9"]) == 1


def test_feature_dependencies(capsys: Capture) -> None:
    features = ("metadata.version=25", "share.version=2", "eligible.leader.replicas.version=1")
    words = [word for feature in features for word in ("-f", feature)]
    assert main(["storage", "feature-dependencies", *words]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "metadata.version=25 (4.0-IV3) has no dependencies.",
        "share.version=2 has no dependencies.",
        "eligible.leader.replicas.version=1 requires:",
        "    metadata.version=23 (4.0-IV1)",
    ]


@pytest.mark.parametrize(
    ("feature", "status", "complaint"),
    [
        ("nothing=1", 2, "feature nothing is unknown; known are metadata.version, "),
        ("group.versoin=1", 2, "feature group.versoin is unknown; the nearest is group.version; known are"),
        ("group.version=9", 1, "group.version has no level 9"),
        ("metadata.version=99", 1, "metadata.version 99 is unknown"),
        ("group.version=x", 2, "is not FEATURE=LEVEL"),
        ("group.version=99999", 2, "is not FEATURE=LEVEL"),
    ],
)
def test_unknown_feature_levels_are_refused(
    feature: str, status: int, complaint: str, capsys: Capture
) -> None:
    assert main(["storage", "feature-dependencies", "-f", feature]) == status
    assert complaint in capsys.readouterr().err
