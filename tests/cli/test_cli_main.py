"""The command line as a whole: dispatch, help, errors, exit codes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from cyclopts import App

from kraft_wire.cli import main
from kraft_wire.cli.app import app
from kraft_wire.cli.server import plain_arguments
from kraft_wire.protocol.tier import tier

Capture = pytest.CaptureFixture[str]

COMMANDS = (
    ("server",),
    ("dev",),
    ("dump-log",),
    ("sim",),
    ("codec", "decode"),
    ("codec", "encode"),
    ("pipeline", "report"),
    ("pipeline", "restore"),
    ("storage", "format"),
    ("storage", "info"),
    ("storage", "random-uuid"),
    ("storage", "version-mapping"),
    ("storage", "feature-dependencies"),
)


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_help_lists_every_command_with_what_it_does(words: list[str], capsys: Capture) -> None:
    assert main(words) == 0
    lines = [line.strip("│ ") for line in capsys.readouterr().out.splitlines()]
    for command in ("server", "dev", "dump-log", "sim", "codec", "pipeline", "storage"):
        (line,) = [line for line in lines if line.startswith(f"{command} ")]
        assert line.removeprefix(command).strip()


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_explains_itself(words: tuple[str, ...], capsys: Capture) -> None:
    assert main([*words, "--help"]) == 0
    assert f"Usage: kraft-wire {' '.join(words)}" in capsys.readouterr().out


def test_version(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("kraft-wire")
    assert f"({tier()} codec)" in said


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["storge"], 'Unknown command "storge"'),
        (["server"], "FILE requires an argument"),
        (["server", "a", "b"], "Unused Tokens: ['b']"),
        (["server", "a", "--override"], "--override requires an argument"),
        (["dump-log", "--files", "x", "--fast"], "Unknown option: --fast"),
        (["storage", "info"], "--config requires an argument"),
    ],
)
def test_a_wrong_command_line_is_one_line_on_stderr(
    words: list[str], complaint: str, capsys: Capture
) -> None:
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("kraft-wire: ")
    assert complaint in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["c.properties"],
        ["c.properties", "--override", "a=b"],
        ["--override=a=b=c", "c.properties", "--override", "d=", "--log-level", "debug"],
        ["--log-level=warning", "c.properties"],
    ],
)
def test_the_quick_reading_of_server_arguments_is_the_library_s(words: list[str]) -> None:
    plain = plain_arguments(words)
    assert plain is not None
    file, options = plain
    _, bound, _ = app.parse_args(["server", *words], exit_on_error=False, print_error=False)
    assert bound.args == (file,)
    assert bound.kwargs == options


@pytest.mark.parametrize(
    "words",
    [
        [],
        [""],
        ["a", "b"],
        ["a", "--help"],
        ["--help"],
        ["a", "--overide", "x=y"],
        ["a", "--override"],
        ["a", "--override", "--log-level"],
        ["a", "--log-level="],
        ["--", "a"],
    ],
)
def test_what_the_quick_reading_leaves_to_the_library(words: list[str]) -> None:
    assert plain_arguments(words) is None


def test_the_usual_server_command_line_does_without_the_library(tmp_path: Path) -> None:
    path = tmp_path / "missing.properties"
    program = (
        "import sys\nfrom kraft_wire.cli import main\n"
        "code = main(['server', sys.argv[1]])\n"
        "print(code, 'cyclopts' in sys.modules)\n"
    )
    result = run_python("-c", program, str(path))
    assert result.stdout == "1 False\n"
    assert result.stderr == f"kraft-wire: {path}: cannot be read: No such file or directory\n"


def test_a_defect_shows_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: App, *_: object, **__: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(App, "__call__", broken)
    with pytest.raises(ZeroDivisionError):
        main(["storage", "random-uuid"])


def test_an_interrupt_has_its_own_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: App, *_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(App, "__call__", interrupted)
    assert main(["storage", "random-uuid"]) == 130


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    program = "import sys\nfrom kraft_wire.cli import main\nsys.exit(main(sys.argv[1:]))\n"
    data = Path(__file__).parent / "data"
    segment = data / "00000000000000000000.log"
    files = ",".join([str(segment)] * 200)
    dump = subprocess.Popen(
        [sys.executable, "-c", program, "dump-log", "--cluster-metadata-decoder", "--files", files],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert dump.stdout is not None and dump.stderr is not None
    dump.stdout.readline()
    dump.stdout.close()
    complaint = dump.stderr.read()
    dump.stderr.close()
    assert (dump.wait(), complaint) == (0, b"")


def test_random_ids_are_ids_and_differ(capsys: Capture) -> None:
    assert main(["storage", "random-uuid"]) == 0
    assert main(["storage", "random-uuid"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first != second
    assert len(first) == len(second) == 22
    assert not first.startswith("-")


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    words: Sequence[str] = [sys.executable, *arguments]
    return subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
