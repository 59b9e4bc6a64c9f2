"""The keys of exporters."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.exporters.settings import (
    ExporterSettings,
    FilterSettings,
    read_exporters,
    wants_no_op,
)

P = "kraft.wire.exporter."
LEAST = {f"{P}audit.type": "jsonl", f"{P}audit.path": "/var/audit"}


def test_what_is_not_given_has_a_default() -> None:
    read = read_exporters(["audit"], LEAST | {"node.id": "1"})
    assert read.problems == ()
    assert read.exporters == (
        ExporterSettings(
            "audit",
            "jsonl",
            "snapshot+tail",
            FilterSettings(),
            {"path": "/var/audit", "max.file.bytes": 134_217_728, "max.file.age.ms": 86_400_000},
        ),
    )


def test_everything_can_be_given() -> None:
    given = {
        f"{P}audit.start": "305",
        f"{P}audit.types": "TopicRecord, RemoveTopicRecord",
        f"{P}audit.topics": "a,b",
        f"{P}audit.brokers": "1,2",
        f"{P}audit.no-op": "true",
        f"{P}audit.changes": "true",
        f"{P}audit.max.file.bytes": "1000",
        f"{P}audit.max.file.age.ms": "5000",
    }
    (exporter,) = read_exporters(["audit"], LEAST | given).exporters
    assert exporter.start == 305
    types = ("TopicRecord", "RemoveTopicRecord")
    assert exporter.filter == FilterSettings(types, ("a", "b"), (1, 2), no_op=True)
    assert exporter.changes
    assert exporter.options == {"path": "/var/audit", "max.file.bytes": 1000, "max.file.age.ms": 5000}


def test_settings_survive_the_pipe_to_the_process() -> None:
    read = read_exporters(["audit"], LEAST | {f"{P}audit.start": "305"})
    assert msgspec.json.decode(msgspec.json.encode(read.exporters), type=tuple[ExporterSettings, ...]) == (
        read.exporters
    )


@pytest.mark.parametrize("start", ["tail", "snapshot+tail"])
def test_a_start_can_be_a_word(start: str) -> None:
    (exporter,) = read_exporters(["audit"], LEAST | {f"{P}audit.start": start}).exporters
    assert exporter.start == start


@pytest.mark.parametrize(
    ("names", "given", "problem"),
    [
        (["audit"], {}, f"{P}audit.type: is missing"),
        (["audit"], {f"{P}audit.type": "jsonl"}, f"{P}audit.path: is missing"),
        (
            ["audit"],
            {f"{P}audit.type": "json"},
            f"{P}audit.type=json: must be one of jsonl",
        ),
        (
            ["audit"],
            LEAST | {f"{P}audit.pth": "x"},
            f"{P}audit.pth: an exporter of this type has no such key; the nearest is path",
        ),
        (
            ["audit"],
            LEAST | {f"{P}audit.start": "begin"},
            f"{P}audit.start: is 'begin'; use snapshot+tail, tail or an offset",
        ),
        (
            ["audit"],
            LEAST | {f"{P}audit.types": "TopicRecrd"},
            f"{P}audit.types: TopicRecrd is no type of record; the nearest is TopicRecord",
        ),
        (["audit"], LEAST | {f"{P}audit.brokers": "1,x"}, f"{P}audit.brokers: 'x' is no broker's id"),
        (["audit"], LEAST | {f"{P}audit.no-op": "perhaps"}, f"{P}audit.no-op=perhaps: "),
        (["audit"], LEAST | {f"{P}audit.max.file.bytes": "0"}, f"{P}audit.max.file.bytes=0: "),
        (
            ["audit"],
            LEAST | {f"{P}audt.path": "x"},
            f"{P}audt.path: kraft.wire.exporters names no exporter 'audt'; the nearest is audit",
        ),
        ([], LEAST, f"{P}audit.path: kraft.wire.exporters names no exporter 'audit'"),
        (
            ["a/b"],
            {},
            "kraft.wire.exporters: 'a/b' is no name of an exporter: use letters, digits, - and _, at most 64",
        ),
    ],
)
def test_what_can_not_be_used_is_said(names: list[str], given: dict[str, str], problem: str) -> None:
    read = read_exporters(names, given)
    assert [text for text in read.problems if text.startswith(problem)], read.problems


def test_all_problems_are_told_together() -> None:
    given = LEAST | {f"{P}audit.start": "x", f"{P}audit.no-op": "x", f"{P}lake.type": "jsonl"}
    read = read_exporters(["audit", "lake"], given)
    assert read.exporters == ()
    assert len(read.problems) == 3


def test_no_op_records_are_wanted_by_key_or_by_type() -> None:
    assert not wants_no_op(FilterSettings())
    assert wants_no_op(FilterSettings(no_op=True))
    assert wants_no_op(FilterSettings(("NoOpRecord",)))
