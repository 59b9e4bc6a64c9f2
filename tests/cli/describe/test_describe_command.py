"""``kraft-wire describe`` on the log of a Java controller, whose README says what happened in it."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import pytest

from kraft_wire.cli import main
from kraft_wire.cli.quorum import EXIT_UNFIT, EXIT_UNREADABLE
from kraft_wire.log.files import PARTITION_FOLDER, MetaProperties, meta_properties_text
from tests.metadata.test_metadata_java_log import FOLDER

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def node(tmp_path: Path) -> Path:
    return make_node(tmp_path / "node", "one")


def make_node(folder: Path, cluster: str) -> Path:
    copytree(FOLDER, folder / PARTITION_FOLDER)
    (folder / "meta.properties").write_text(meta_properties_text(MetaProperties(cluster, 1)))
    return folder


def describe(capsys: Capture, folder: Path, *words: str) -> list[str]:
    assert main(["describe", *words, "--from", str(folder)]) == 0
    said, errors = capsys.readouterr()
    assert errors == ""
    return said.splitlines()


def described(capsys: Capture, folder: Path, *words: str) -> dict[str, object]:
    found: dict[str, object] = json.loads("\n".join(describe(capsys, folder, *words, "--json")))
    return found


def test_the_overview(node: Path, capsys: Capture) -> None:
    assert describe(capsys, node, "--as-of-offset", "224") == [
        "Cluster           one",
        "As of             offset 224, epoch 1, 2026-11-21T12:25:01.910Z",
        "metadata.version  4.4-IV2",
        "kraft.version     1",
        "Leader            1",
        "Voters            1",
        "Controllers       1 registered",
        "Brokers           3 registered, 0 fenced, 0 in controlled shutdown",
        "Topics            5",
        "Partitions        16, of these 0 without a leader, 0 under-replicated, 2 being reassigned",
        "Configs set on    3 (topics, brokers and others)",
    ]


def test_a_reassignment_of_the_past(node: Path, capsys: Capture) -> None:
    found = described(capsys, node, "reassignments", "--as-of-offset", "225")
    assert found["reassignments"] == [
        {
            "topic": "two-x",
            "partition": 0,
            "target": [11, 12],
            "adding": [12],
            "caught_up": [],
            "removing": [],
            "isr": [11],
        },
        {
            "topic": "two-x",
            "partition": 1,
            "target": [13],
            "adding": [13],
            "caught_up": [],
            "removing": [12],
            "isr": [12],
        },
    ]


def test_a_screen_without_rows_says_so(node: Path, capsys: Capture) -> None:
    assert describe(capsys, node, "reassignments")[-1] == "No reassignments."


def test_the_brokers(node: Path, capsys: Capture) -> None:
    *_, heads, eleven, thirteen = describe(capsys, node, "brokers")
    assert heads.split() == [
        "Broker",
        "State",
        "Epoch",
        "Leads",
        "Rack",
        "Directories",
        "Cordoned",
        "Endpoints",
    ]
    assert eleven.split()[:5] == ["11", "fenced", "20", "0", "r11"]
    assert thirteen.split()[-1] == "PLAINTEXT://127.0.0.1:29213"


def test_the_topics_and_the_partitions_of_one(node: Path, capsys: Capture) -> None:
    topics = described(capsys, node, "topics")["topics"]
    assert isinstance(topics, list)
    assert [(row["topic"], row["partitions"]) for row in topics] == [
        ("compacted", 2),
        ("gone", 2),
        ("late", 1),
        ("one", 3),
        ("two-x", 4),
        ("two.dots", 5),
    ]
    *_, first, _, _ = describe(capsys, node, "topics", "one", "--as-of-offset", "224")
    assert first.split() == ["one", "0", "11", "0", "3", "11,12,13", "11,12,13", "-", "-", "-", "-"]


def test_the_configs(node: Path, capsys: Capture) -> None:
    assert [line.split() for line in describe(capsys, node, "configs")[-2:]] == [
        ["all", "brokers", "-", "min.insync.replicas", "1", "no"],
        ["broker", "11", "log.cleaner.threads", "2", "no"],
    ]


def test_the_controllers(node: Path, capsys: Capture) -> None:
    *_, row = describe(capsys, node, "quorum")
    assert row.split() == ["1", "leader", "g0lFMA5SSmCC7aDx0eiCjg", "yes", "CONTROLLER://127.0.0.1:29193"]


def test_the_features(node: Path, capsys: Capture) -> None:
    rows = [line.split() for line in describe(capsys, node, "features")]
    assert ["metadata.version", "33", "4.4-IV2", "7", "33"] in rows
    assert ["group.version", "1", "-", "0", "1"] in rows


def test_a_time(node: Path, capsys: Capture) -> None:
    head = describe(capsys, node, "--as-of-time", "2026-11-21T13:25:01.910+01:00")[1]
    assert head.startswith("As of             offset 224, ")


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["topics", "onee"], 1, "there is no topic 'onee'; the nearest is one"),
        (["brokers", "11"], 2, "'11': only `describe topics` takes names"),
        (
            ["--as-of-offset", "99999"],
            EXIT_UNFIT,
            "offset 99999 isn't there yet: the last record has offset 457",
        ),
        (["--as-of-time", "2020-01-01"], EXIT_UNFIT, "the first record was written after that time"),
        (["--as-of-offset", "1", "--as-of-time", "2020-01-01"], 2, "exclude each other"),
        (["--as-of-time", "soon"], 2, "'soon' is not a time"),
        (["--command-config", "x"], 2, "--command-config is for --bootstrap-controller"),
        (["--bootstrap-controller", "localhost:1"], 2, "give one of --bootstrap-controller and --from"),
    ],
)
def test_a_refusal(words: list[str], status: int, says: str, node: Path, capsys: Capture) -> None:
    assert main(["describe", *words, "--from", str(node)]) == status
    assert says in capsys.readouterr().err


def test_a_refused_topic_leaves_no_half_of_a_screen(node: Path, capsys: Capture) -> None:
    assert main(["describe", "topics", "o\x1bne", "--from", str(node)]) == 1
    said, errors = capsys.readouterr()
    assert said == ""
    assert r"'o\x1bne'" in errors and "\x1b" not in errors


def test_a_time_is_not_rounded_up(node: Path, capsys: Capture) -> None:
    head = describe(capsys, node, "--as-of-time", "2026-11-21T12:25:02.1089")[1]
    assert head.startswith("As of             offset 224, ")


def test_a_topic_that_is_named_twice_is_shown_once(node: Path, capsys: Capture) -> None:
    assert len(describe(capsys, node, "topics", "late", "late")) == 5


def test_brackets_in_the_name_of_a_folder_are_no_pattern(node: Path, capsys: Capture) -> None:
    make_node(node.parent / "n[1]", "brackets")
    make_node(node.parent / "n1", "plain")
    assert describe(capsys, node.parent / "n[1]")[0] == "Cluster           brackets"


def test_an_empty_snapshot_is_passed_over(node: Path, capsys: Capture) -> None:
    for snapshot in (node / PARTITION_FOLDER).glob("*.checkpoint"):
        snapshot.write_bytes(b"")
    assert "Topics            6" in describe(capsys, node)


def test_logs_of_two_clusters_are_refused(node: Path, capsys: Capture) -> None:
    make_node(node.parent / "other", "two")
    assert main(["describe", "--from", str(node.parent)]) == EXIT_UNFIT
    assert "logs of several clusters: one, two; give the folder of one" in capsys.readouterr().err


def test_a_folder_without_a_log_is_refused(tmp_path: Path, capsys: Capture) -> None:
    assert main(["describe", "--from", str(tmp_path)]) == EXIT_UNREADABLE
    assert f"no {PARTITION_FOLDER} in or below {tmp_path}" in capsys.readouterr().err
