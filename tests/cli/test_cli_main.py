"""The command line as a whole: dispatch, help, errors, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from cyclopts import App

from kraft_wire.cli import main
from kraft_wire.cli.app import app
from kraft_wire.cli.printable import printable
from kraft_wire.cli.server import plain_arguments
from kraft_wire.protocol.tier import tier

Capture = pytest.CaptureFixture[str]

COMMANDS = (
    ("server",),
    ("dev",),
    ("dump-log",),
    ("fsck",),
    ("sim",),
    ("codec", "decode"),
    ("codec", "encode"),
    ("pipeline", "report"),
    ("pipeline", "restore"),
    ("pipeline", "run"),
    ("exporters", "list"),
    ("exporters", "pause"),
    ("exporters", "resume"),
    ("exporters", "reset"),
    ("storage", "format"),
    ("storage", "info"),
    ("storage", "random-uuid"),
    ("storage", "version-mapping"),
    ("storage", "feature-dependencies"),
)


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_lists_every_command_with_what_it_does(words: list[str], capsys: Capture) -> None:
    assert main(words) == 0
    lines = [line.strip("│ ") for line in capsys.readouterr().out.splitlines()]
    for command in ("server", "dev", "dump-log", "sim", "codec", "pipeline", "storage", "help", "version"):
        (line,) = [line for line in lines if line.startswith(f"{command} ")]
        assert line.removeprefix(command).strip()


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_explains_itself(words: tuple[str, ...], capsys: Capture) -> None:
    assert main([*words, "--help"]) == 0
    by_option = capsys.readouterr().out
    assert f"Usage: kraft-wire {' '.join(words)}" in by_option
    assert main(["help", *words]) == 0
    assert capsys.readouterr().out == by_option


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        ("codec decode", "[OPTIONS] [FILE]"),
        ("codec encode", "[FILE]"),
        ("quorum recover collect", "--output PATH DIRECTORIES..."),
        ("quorum recover plan", "--output PATH [OPTIONS] FILES..."),
        ("help", "[COMMAND...]"),
    ],
)
def test_usage_names_arguments_that_may_be_left_out_or_repeated(
    words: str, usage: str, capsys: Capture
) -> None:
    assert main([*words.split(), "--help"]) == 0
    assert f"Usage: kraft-wire {words} {usage}\n" in capsys.readouterr().out


@pytest.mark.parametrize("words", [words for words in COMMANDS if words != ("storage", "random-uuid")])
def test_every_help_has_examples(words: tuple[str, ...], capsys: Capture) -> None:
    assert main([*words, "--help"]) == 0
    _, examples = capsys.readouterr().out.split("For example:")
    assert f"kraft-wire {' '.join(words)} " in " ".join(examples.partition("╭")[0].split()) + " "


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["dev"], ["[default: 9093]", "[default: 9092]", "[choices: debug,", "[choices: text, json]"]),
        (["server"], ["[choices: debug,", "[choices: text, json]"]),
        (["sim"], ["[default: 1]", "[default: 120]"]),
        (["pipeline", "run"], ["[default: 30 seconds]", "[default: parquet]", "[choices: parquet, delta]"]),
        (["storage", "format"], ["[default: 4.4]"]),
        (["storage", "version-mapping"], ["[default: 4.4-IV2]"]),
    ],
)
def test_help_shows_choices_and_defaults(words: list[str], shown: list[str], capsys: Capture) -> None:
    assert main([*words, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert [part for part in shown if part not in text] == []
    assert "default: None" not in text and "default: False" not in text


@pytest.mark.parametrize("words", [["--version"], ["-V"], ["version"], ["storage", "-V"]])
def test_version(words: list[str], capsys: Capture) -> None:
    assert main(words) == 0
    said = capsys.readouterr().out
    assert said.startswith("kraft-wire")
    assert f"({tier()} codec)" in said


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["storge"], 'Unknown command "storge"'),
        (["server"], "FILE is missing"),
        (["server", "a", "b"], "unexpected argument 'b'\n"),
        (["server", "a", "log-level"], "unexpected argument 'log-level'; the nearest is --log-level\n"),
        (["sim", "Seeds"], "unexpected argument 'Seeds'; the nearest is --seeds\n"),
        (["storage", "formt"], 'Did you mean "format"?'),
        (["sim", "--sed", "3"], "unknown option --sed; the nearest is --seed"),
        (["help", "storge"], 'Unknown command "storge". Did you mean "storage"?'),
        (["server", "a", "--override"], "--override requires an argument"),
        (["dump-log", "--files", "x", "--fast"], "unknown option --fast"),
        (["storage", "info"], "--config is missing"),
    ],
)
def test_a_wrong_command_line_is_one_line_on_stderr(
    words: list[str], complaint: str, capsys: Capture
) -> None:
    assert main(words) == 2
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
        ["c.properties", "--log-format", "json"],
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
        ["a", "--log-level=loud"],
        ["a", "--log-format", "xml"],
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


@pytest.mark.parametrize("words", [["--help"], ["sim", "--help"], ["storage", "random-uuid"], ["version"]])
def test_output_that_nobody_reads_is_no_error(words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "kraft_wire", *words]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_error_that_nobody_reads_keeps_its_exit_status() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "kraft_wire", "dump-log", "--files", "/no/such.log"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=write, check=False)
    os.close(write)
    assert done.returncode == 1


def test_files_never_take_the_place_of_closed_standard_ones() -> None:
    """Else what a library prints on stderr would be written into the first file that is opened."""
    program = (
        "import os; from kraft_wire.cli import main; main(['storage', 'random-uuid'])\n"
        "os._exit(os.open('/dev/null', os.O_RDONLY))"
    )
    closed = "import os, sys; [os.close(fd) for fd in (0, 1, 2)]; os.execv(sys.argv[1], sys.argv[1:])"
    words = [sys.executable, "-c", closed, sys.executable, "-c", program]
    assert subprocess.run(words, check=False).returncode > 2


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


def test_what_is_not_printable_is_shown_to_people_and_not_obeyed_by_their_terminal() -> None:
    assert printable("a\x1b[2J b\r\nc\u202e") == r"a\x1b[2J b\r\nc\u202e"
    assert printable("Zürich\t1\\2") == "Zürich\t1\\2"
