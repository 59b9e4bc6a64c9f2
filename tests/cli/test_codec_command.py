"""The commands ``codec decode`` and ``codec encode``: where they read, what they print when, how they end."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.cli import main
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.wire.framing import MAX_FRAME_BYTES, frame
from kraft_wire.wire.headers import encode_request, encode_response

Capture = pytest.CaptureFixture[str]

NO_OP = '{"message":"NoOpRecord","version":0,"hex":"00"}'
NO_OP_DATA = '{"message":"NoOpRecord","version":0,"data":{}}'
WRONG = '{"message":"NoOpRecord","version":0,"hex":""}'
REQUESTS = b"".join(
    frame(encode_request(18, 3, number, "me", ApiVersionsRequest("lib", "1.0"))) for number in range(3)
)
RESPONSES = b"".join(frame(encode_response(18, 3, number, ApiVersionsResponse())) for number in range(3))
RULE = "=" * 67


def tshark_text(*pieces: tuple[str, bytes]) -> str:
    """The text that tshark 4.0 prints for -q -z follow,tcp,raw,0."""
    lines = [
        "",
        RULE,
        "Follow: tcp,raw",
        "Filter: tcp.stream eq 0",
        "Node 0: 10.0.0.1:5",
        "Node 1: 10.0.0.2:9092",
    ]
    lines += [("\t" if side == "server" else "") + data.hex() for side, data in pieces]
    return "\n".join([*lines, RULE, ""])


CAPTURE = tshark_text(
    ("client", REQUESTS[:10]),
    ("client", REQUESTS[10:]),
    ("server", RESPONSES[:3]),
    ("server", RESPONSES[3:]),
)


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """Standard input; what is written to it is read from its beginning."""
    data = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
    return data


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines").write_text(f"{NO_OP}\n\n{WRONG}\n  \r\n{NO_OP}")
    (tmp_path / "client").write_bytes(REQUESTS)
    (tmp_path / "server").write_bytes(RESPONSES)
    (tmp_path / "tshark").write_text(CAPTURE)
    return tmp_path


def printed(capsys: Capture) -> tuple[list[dict[str, Any]], str]:
    out, err = capsys.readouterr()
    return [json.loads(line) for line in out.splitlines()], err


class TestLines:
    def test_all_is_well(self, stdin: io.BytesIO, capsys: Capture) -> None:
        stdin.write(f"{NO_OP}\n{NO_OP}\n".encode())
        stdin.seek(0)
        assert main(["codec", "decode"]) == 0
        assert capsys.readouterr() == (f"{NO_OP_DATA}\n{NO_OP_DATA}\n", "")

    def test_the_other_way_round(self, stdin: io.BytesIO, capsys: Capture) -> None:
        stdin.write(NO_OP_DATA.encode())
        stdin.seek(0)
        assert main(["codec", "encode", "-"]) == 0
        assert capsys.readouterr() == (f"{NO_OP}\n", "")

    def test_an_error_is_a_line_and_the_others_go_on(self, files: Path, capsys: Capture) -> None:
        assert main(["codec", "decode", "lines"]) == 1
        lines, err = printed(capsys)
        assert [sorted(line) for line in lines] == [
            ["data", "message", "version"],
            ["error", "message", "version"],
            ["data", "message", "version"],
        ]
        assert err == "kraft-wire: 1 of 3 lines could not be decoded\n"

    def test_lines_are_counted_with_blank_ones(self, stdin: io.BytesIO, capsys: Capture) -> None:
        stdin.write(b"\n\n[]\n\nx")
        stdin.seek(0)
        assert main(["codec", "encode"]) == 1
        lines, err = printed(capsys)
        assert [line["line"] for line in lines] == [3, 5]
        assert err == "kraft-wire: 2 of 2 lines could not be encoded\n"

    def test_nothing_is_nothing(self, stdin: io.BytesIO, capsys: Capture) -> None:
        assert main(["codec", "decode"]) == 0
        assert capsys.readouterr() == ("", "")

    def test_lines_longer_than_what_is_read_at_once(self, stdin: io.BytesIO, capsys: Capture) -> None:
        long = f'{{"message":"NoOpRecord","version":0,"hex":"00{"ab" * 300_000}"}}'
        stdin.write(f"{NO_OP}\n{long}\n{NO_OP}\n".encode())
        stdin.seek(0)
        assert main(["codec", "decode"]) == 0
        lines, _ = printed(capsys)
        assert [line.get("unread_bytes") for line in lines] == [None, 300_000, None]

    def test_a_file_that_is_not_there(self, files: Path, capsys: Capture) -> None:
        assert main(["codec", "decode", "nowhere"]) == 1
        assert capsys.readouterr() == ("", "kraft-wire: nowhere: No such file or directory\n")


class TestFrames:
    def test_requests(self, files: Path, capsys: Capture) -> None:
        assert main(["codec", "decode", "--frames", "--client", "client"]) == 0
        lines, err = printed(capsys)
        assert [line["header"]["correlationId"] for line in lines] == [0, 1, 2]
        assert {line["message"] for line in lines} == {"ApiVersionsRequest"}
        assert err == ""

    def test_responses(self, files: Path, capsys: Capture) -> None:
        assert main(["codec", "decode", "--frames", "--server", "--requests", "client", "server"]) == 0
        lines, err = printed(capsys)
        assert [line["header"]["correlationId"] for line in lines] == [0, 1, 2]
        assert {line["message"] for line in lines} == {"ApiVersionsResponse"}
        assert err == ""

    def test_from_standard_input(self, files: Path, stdin: io.BytesIO, capsys: Capture) -> None:
        stdin.write(RESPONSES)
        stdin.seek(0)
        assert main(["codec", "decode", "--frames", "--server", "--requests", "client"]) == 0
        assert len(printed(capsys)[0]) == 3
        stdin.truncate(0)
        stdin.seek(0)
        stdin.write(REQUESTS)
        stdin.seek(0)
        assert main(["codec", "decode", "--frames", "--server", "--requests", "-", "server"]) == 0
        assert len(printed(capsys)[0]) == 3

    def test_tshark_s_text_holds_both_directions(self, files: Path, capsys: Capture) -> None:
        assert main(["codec", "decode", "--frames", "--client", "tshark"]) == 0
        by_tshark = capsys.readouterr().out
        assert main(["codec", "decode", "--frames", "--client", "client"]) == 0
        assert capsys.readouterr().out == by_tshark
        assert main(["codec", "decode", "--frames", "--server", "tshark"]) == 0
        by_tshark = capsys.readouterr().out
        assert main(["codec", "decode", "--frames", "--server", "server", "--requests", "tshark"]) == 0
        assert capsys.readouterr().out == by_tshark
        assert by_tshark.count("\n") == 3

    @pytest.mark.parametrize(
        ("text", "error"),
        [
            (
                CAPTURE.replace("tcp,raw", "tcp,ascii"),
                "Follow: tcp,ascii: give one connection, as tshark -q -z",
            ),
            (CAPTURE + CAPTURE, "Follow: tcp,raw, Follow: tcp,raw: give one connection"),
            (f"\n{RULE}\n", "no connection: give one connection"),
            (
                CAPTURE.replace("Node 1", "Knot 1"),
                "line 6 of tshark's text isn't hexadecimal digits, two per byte",
            ),
        ],
    )
    def test_a_text_of_tshark_that_is_none(self, text: str, error: str, files: Path, capsys: Capture) -> None:
        (files / "tshark").write_text(text)
        assert main(["codec", "decode", "--frames", "--client", "tshark"]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("kraft-wire: tshark: ")
        assert error in err

    @pytest.mark.parametrize(
        ("words", "complaint"),
        [
            (
                ["--frames", "server"],
                "--frames needs to know which side sent the stream: give --client or --server",
            ),
            (["--frames", "--client", "--server", "server"], "give --client or --server"),
            (
                ["--frames", "--server", "server"],
                "give the client's stream of the same connection with --requests",
            ),
            (["--frames", "--client", "--requests", "client", "client"], "--requests goes with --server"),
            (["--frames", "--server", "--requests", "-"], "standard input can't be both"),
            (["--fast"], "Unknown option: --fast"),
            (["--frames", "--server", "--requests", "--client", "x"], "Unknown option: --client"),
            (["--client", "client"], "--requests and --max-frame-bytes go with --frames"),
            (["--requests", "client", "server"], "--requests and --max-frame-bytes go with --frames"),
            (
                ["--frames", "--server", "--requests", "-", "-"],
                "standard input can't be both",
            ),
        ],
    )
    def test_options_that_do_not_go_together(
        self, words: list[str], complaint: str, files: Path, capsys: Capture
    ) -> None:
        assert main(["codec", "decode", *words]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert complaint in err
        assert err.count("\n") == 1

    @pytest.mark.parametrize(
        ("requests", "complaint"),
        [
            ("nowhere", "nowhere: No such file or directory"),
            ("lines", "lines: no request in it: frame of 20"),
        ],
    )
    def test_requests_that_cannot_be_read(
        self, requests: str, complaint: str, files: Path, capsys: Capture
    ) -> None:
        assert main(["codec", "decode", "--frames", "--server", "--requests", requests, "server"]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert complaint in err
        assert err.count("\n") == 1

    def test_the_wrong_direction_is_suspected(self, files: Path, capsys: Capture) -> None:
        assert main(["codec", "decode", "--frames", "--client", "server"]) == 1
        assert capsys.readouterr().err == (
            "kraft-wire: 3 of 3 frames could not be decoded; did the server send the stream?"
            " Then give --server\n"
        )
        assert main(["codec", "decode", "--frames", "--server", "--requests", "server", "client"]) == 1
        assert "are the requests those of the same connection?" in capsys.readouterr().err

    def test_a_stream_that_breaks_off(self, files: Path, capsys: Capture) -> None:
        (files / "client").write_bytes(REQUESTS[:-1])
        assert main(["codec", "decode", "--frames", "--client", "client"]) == 1
        lines, err = printed(capsys)
        assert ["error" in line for line in lines] == [False, False, True]
        assert "the stream breaks off" in lines[2]["error"]
        assert err == "kraft-wire: 1 of 3 frames could not be decoded\n"
        # What it breaks off of is what the server has not answered, perhaps.
        (files / "server").write_bytes(RESPONSES[: len(RESPONSES) * 2 // 3])
        assert main(["codec", "decode", "--frames", "--server", "--requests", "client", "server"]) == 0

    def test_longer_frames_can_be_allowed(self, files: Path, capsys: Capture) -> None:
        limited = ["codec", "decode", "--frames", "--client", "client", "--max-frame-bytes"]
        assert main([*limited, "10"]) == 1
        (line,), err = printed(capsys)
        assert "allowed are 0 to 10;" in line["error"]
        assert err == "kraft-wire: 1 of 1 frames could not be decoded\n"
        assert main([*limited, "1000"]) == 0

    @pytest.mark.parametrize("size", ["-1", "0"])
    def test_a_limit_that_no_frame_keeps(self, files: Path, capsys: Capture, size: str) -> None:
        assert main(["codec", "decode", "--frames", "--client", "client", "--max-frame-bytes", size]) == 2
        assert f"--max-frame-bytes {size}: a frame has at least one byte" in capsys.readouterr().err

    def test_a_limit_goes_with_frames(self, files: Path, capsys: Capture) -> None:
        assert main(["codec", "decode", "--max-frame-bytes", "10", "lines"]) == 2
        assert "--max-frame-bytes go with --frames" in capsys.readouterr().err

    def test_the_limit_s_default_is_in_the_help(self, capsys: Capture) -> None:
        assert main(["codec", "decode", "--help"]) == 0
        assert str(MAX_FRAME_BYTES) in capsys.readouterr().out


class TestAsAProcess:
    @pytest.fixture
    def process(self) -> Iterator[subprocess.Popen[bytes]]:
        with subprocess.Popen(
            # A shell's background job ignores interrupts, and so would all that it starts.
            ["env", "--default-signal=INT", sys.executable, "-m", "kraft_wire.cli", "codec", "decode"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        ) as process:
            yield process
            process.kill()

    def test_every_line_is_answered_before_the_next_one_comes(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        for _ in range(3):
            process.stdin.write(f"{NO_OP}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline() == f"{NO_OP_DATA}\n".encode()
        process.stdin.write(b"{\n")
        process.stdin.flush()
        assert b'"line":4' in process.stdout.readline()
        process.stdin.close()
        assert process.wait() == 1

    def test_half_a_line_waits_for_its_other_half(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(f"{NO_OP}\n{NO_OP[:20]}".encode())
        process.stdin.flush()
        assert process.stdout.readline() == f"{NO_OP_DATA}\n".encode()
        process.stdin.write(f"{NO_OP[20:]}\n".encode())
        process.stdin.flush()
        assert process.stdout.readline() == f"{NO_OP_DATA}\n".encode()

    def test_an_interrupt_ends_it_without_a_word(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(f"{NO_OP}\n".encode())
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr.read() == b""

    def test_a_reader_that_leaves_is_no_error(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(f"{NO_OP}\n".encode())
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(f"{NO_OP}\n".encode() * 10)
        process.stdin.close()
        assert (process.wait(), process.stderr.read()) == (0, b"")


def test_a_stream_is_shown_as_it_comes() -> None:
    read_end, write_end = os.pipe()
    command = [sys.executable, "-m", "kraft_wire.cli", "codec", "decode", "--frames", "--client"]
    with (
        subprocess.Popen(
            command, stdin=read_end, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
        ) as process,
        os.fdopen(write_end, "wb", buffering=0) as pipe,
    ):
        os.close(read_end)
        assert process.stdout is not None
        one = len(REQUESTS) // 3
        for number in range(3):
            pipe.write(REQUESTS[one * number : one * number + one])
            assert json.loads(process.stdout.readline())["header"]["correlationId"] == number
        pipe.close()
        assert process.wait() == 0


class TestClosedStreams:
    @pytest.mark.parametrize("command", ["decode", "encode", "decode --frames --client"])
    def test_standard_input(self, command: str, files: Path) -> None:
        assert shell(f"{command} <&-") == (1, "kraft-wire: standard input is closed; name a file\n")

    @pytest.mark.parametrize("command", ["decode lines", "encode lines", "decode --frames --client client"])
    def test_standard_output(self, command: str, files: Path) -> None:
        assert shell(f"{command} >&-") == (1, "kraft-wire: standard output is closed\n")


def shell(command: str) -> tuple[int, str]:
    """The exit code of ``kraft-wire codec ...`` and what it says on stderr."""
    line = f'"{sys.executable}" -m kraft_wire.cli codec {command}'
    done = subprocess.run(["/bin/sh", "-c", line], stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr
