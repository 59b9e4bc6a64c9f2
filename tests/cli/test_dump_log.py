"""dump-log against what Kafka's own tool prints, and on files that are not what they should be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kraft_wire.cli import main
from kraft_wire.cli.errors import EXIT_USAGE
from kraft_wire.log.batch import encode_batch
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record

DATA = Path(__file__).parent / "data"
SEGMENT = "00000000000000000000.log"
OFFSET_INDEX = "00000000000000000000.index"
TIME_INDEX = "00000000000000000000.timeindex"
SNAPSHOT = "00000000000000000180-0000000001.checkpoint"
DECODE = "--cluster-metadata-decoder"
SKIP = "--skip-record-metadata"

Capture = pytest.CaptureFixture[str]


def encoded(record: Message) -> bytes:
    return encode_metadata_record(record, 0)


@pytest.mark.parametrize(
    ("expected", "files", "options"),
    [
        ("expected.txt", (SEGMENT, OFFSET_INDEX, TIME_INDEX, SNAPSHOT), (DECODE,)),
        ("expected-skipping.txt", (SNAPSHOT, OFFSET_INDEX), (DECODE, SKIP)),
        ("expected-batches.txt", (SEGMENT,), ()),
    ],
)
def test_the_lines_are_those_of_kafkas_tool(
    expected: str,
    files: tuple[str, ...],
    options: tuple[str, ...],
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(DATA)
    assert main(["dump-log", *options, "--files", ",".join(files)]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == (DATA / expected).read_text("utf-8").splitlines()
    assert err == ""


def test_records_of_a_segment_without_content(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / SEGMENT
    path.write_bytes(encode_batch(0, 3, 1700, [b"abc", b""]))
    assert main(["dump-log", "--deep-iteration", f"--files={path}"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[3:] == [
        "| offset: 0 CreateTime: 1700 keySize: -1 valueSize: 3 sequence: -1 headerKeys: []",
        "| offset: 1 CreateTime: 1700 keySize: -1 valueSize: 0 sequence: -1 headerKeys: []",
    ]


def test_contents_without_a_decoder_are_text(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / SEGMENT
    path.write_bytes(encode_batch(0, 3, 1700, [b"caf\xc3\xa9\xff"]))
    assert main(["dump-log", "--print-data-log", SKIP, f"--files={path}"]) == 0
    assert capsys.readouterr().out.splitlines()[3:] == ["| payload: café\N{REPLACEMENT CHARACTER}"]


@pytest.mark.parametrize(
    ("record", "json"),
    [
        (
            ClientQuotaRecord([EntityData("user", None)], "k", 1.5e8, False),
            '{"entity":[{"entityType":"user","entityName":null}],"key":"k","value":1.5E8,"remove":false}',
        ),
        (
            ClientQuotaRecord([], "k", 0.0005, True),
            '{"entity":[],"key":"k","value":5.0E-4,"remove":true}',
        ),
        (
            ClientQuotaRecord([], "k", float("nan"), False),
            '{"entity":[],"key":"k","value":"NaN","remove":false}',
        ),
        (
            ConfigRecord(2, 'a"\\/é\x7f', "n\x1f\x01\n\t", "\N{SLIGHTLY SMILING FACE}"),
            '{"resourceType":2,"resourceName":"a\\"\\\\/é\x7f","name":"n\\u001F\\u0001\\n\\t",'
            '"value":"\N{SLIGHTLY SMILING FACE}"}',
        ),
    ],
)
def test_json_is_written_as_jackson_writes_it(
    record: Message, json: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / SEGMENT
    path.write_bytes(encode_batch(0, 0, 0, [encoded(record)]))
    assert main(["dump-log", DECODE, SKIP, f"--files={path}"]) == 0
    payload = capsys.readouterr().out.split("\n")[3]
    assert payload.endswith(f',"version":0,"data":{json}}}')


def test_a_record_that_is_none_costs_its_own_line_only(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / SEGMENT
    path.write_bytes(encode_batch(7, 0, 0, [b"\x01\x7f\x00", encoded(NoOpRecord())]))
    assert main(["dump-log", DECODE, SKIP, f"--files={path}"]) == 0
    out, err = capsys.readouterr()
    bad, good = out.splitlines()[3:]
    assert bad.startswith("| payload: Error at 7, skipping. ")
    assert good == '| payload: {"type":"NO_OP_RECORD","version":0,"data":{}}'
    assert err.splitlines() == [f"Non-consecutive offsets in {path}", "  -1 is followed by 7"]


def test_a_wrong_checksum_is_shown_and_the_records_all_the_same(tmp_path: Path, capsys: Capture) -> None:
    data = bytearray(encode_batch(0, 0, 0, [encoded(ConfigRecord(2, "topic", "key", "value"))]))
    data[data.index(b"topic")] ^= 1
    path = tmp_path / SEGMENT
    path.write_bytes(data)
    assert main(["dump-log", DECODE, SKIP, f"--files={path}"]) == 0
    batch, payload = capsys.readouterr().out.splitlines()[2:]
    assert batch.endswith(" isvalid: false")
    assert '"resourceName":"uopic"' in payload


def test_bytes_that_are_no_batch_are_an_error_with_their_place(tmp_path: Path, capsys: Capture) -> None:
    first = encode_batch(0, 0, 0, [encoded(NoOpRecord())])
    path = tmp_path / SEGMENT
    path.write_bytes(first + bytes(100))
    assert main(["dump-log", f"--files={path}"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[2].startswith("baseOffset: 0 ")
    assert err.startswith(f"kraft-wire: {path}: byte {len(first)} (offset 0): ")
    assert err.count("\n") == 1


def test_records_that_do_not_hold_together_are_an_error_with_their_place(
    tmp_path: Path, capsys: Capture
) -> None:
    first = encode_batch(0, 0, 0, [encoded(NoOpRecord())])
    second = bytearray(encode_batch(1, 0, 0, [encoded(NoOpRecord())]))
    second[61] = 0x7F
    path = tmp_path / SEGMENT
    path.write_bytes(first + second)
    assert main(["dump-log", DECODE, f"--files={path}"]) == 1
    out, err = capsys.readouterr()
    assert "isvalid: false" in out.splitlines()[-1]
    place = int(err.split(": byte ")[1].split()[0])
    assert len(first) + 61 <= place < len(first) + len(second)


def test_a_batch_that_is_cut_off_is_counted_in_bytes(tmp_path: Path, capsys: Capture) -> None:
    batch = encode_batch(0, 0, 0, [encoded(NoOpRecord())])
    path = tmp_path / SEGMENT
    path.write_bytes(batch + batch[:-1])
    assert main(["dump-log", f"--files={path}"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"Found {len(batch) - 1} invalid bytes at the end of {SEGMENT}"
    )


def test_a_negative_number_of_bytes_is_wrong_usage(capsys: Capture) -> None:
    assert main(["dump-log", "--files=00.log", "--max-bytes=-5"]) == EXIT_USAGE
    assert capsys.readouterr() == ("", "kraft-wire: --max-bytes -5: give 0 or more\n")


def test_max_bytes_ends_the_reading_without_a_complaint(tmp_path: Path, capsys: Capture) -> None:
    batch = encode_batch(0, 0, 0, [encoded(NoOpRecord())])
    path = tmp_path / SEGMENT
    path.write_bytes(batch + encode_batch(1, 0, 0, [encoded(NoOpRecord())]))
    assert main(["dump-log", f"--files={path}", f"--max-bytes={len(batch) + 1}"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_index_entries_that_disagree_with_the_segment_are_told(tmp_path: Path, capsys: Capture) -> None:
    for name in (SEGMENT, TIME_INDEX):
        shutil.copy(DATA / name, tmp_path)
    index = bytearray((DATA / OFFSET_INDEX).read_bytes())
    index[3] += 1
    (tmp_path / OFFSET_INDEX).write_bytes(index)
    times = bytearray((DATA / TIME_INDEX).read_bytes())
    times[7] += 1
    (tmp_path / TIME_INDEX).write_bytes(times)
    files = f"{tmp_path / OFFSET_INDEX},{tmp_path / TIME_INDEX}"
    assert main(["dump-log", "--verify-index-only", "--files", files]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [f"Dumping {file}" for file in files.split(",")]
    assert err.splitlines()[:2] == [
        f"Mismatches in :{tmp_path / OFFSET_INDEX}",
        "  Index offset: 57, log offset: 56",
    ]
    assert err.splitlines()[2] == f"Found timestamp mismatch in :{tmp_path / TIME_INDEX}"


def test_an_empty_index_says_so(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / OFFSET_INDEX
    path.touch()
    assert main(["dump-log", f"--files={path}"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"Dumping {path}", f"{path} is empty."]


def test_files_of_other_kinds_are_left_alone(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.touch()
    assert main(["dump-log", f"--files={path}"]) == 0
    assert capsys.readouterr().err == f"Ignoring unknown file {path}\n"


@pytest.mark.parametrize("name", ["segment.log", "0-0.checkpoint", "first.index"])
def test_a_name_that_says_no_offset_is_an_error(name: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / name
    path.touch()
    assert main(["dump-log", f"--files={path}"]) == 1
    assert capsys.readouterr().err.startswith(f"kraft-wire: {path}: not the name of a")


@pytest.mark.parametrize("name", [SEGMENT, "nope.log", "nope.checkpoint", "nope.index", "nope.timeindex"])
def test_a_missing_file_is_one_line(name: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / name
    assert main(["dump-log", f"--files={path}"]) == 1
    assert capsys.readouterr().err == f"kraft-wire: {path}: No such file or directory\n"
