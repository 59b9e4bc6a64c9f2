"""The exit statuses of the quorum commands: what the help says, the manual's tables, and the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kraft_wire.cli import quorum
from kraft_wire.cli.describe.describe import describe
from kraft_wire.cli.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE
from kraft_wire.cli.exporters.list_them import exporters_list
from kraft_wire.cli.exporters.order import exporters_pause, exporters_reset, exporters_resume
from kraft_wire.cli.quorum.changes.add import quorum_add
from kraft_wire.cli.quorum.changes.promote import quorum_promote
from kraft_wire.cli.quorum.changes.refresh import registrations_refresh
from kraft_wire.cli.quorum.changes.remove import quorum_remove
from kraft_wire.cli.quorum.describe import quorum_describe
from kraft_wire.cli.quorum.migrate.migrate import quorum_migrate
from kraft_wire.cli.quorum.recover.apply import recover_apply
from kraft_wire.cli.quorum.recover.collect import recover_collect
from kraft_wire.cli.quorum.recover.plan import recover_plan
from kraft_wire.cli.quorum.recover.verify import recover_verify
from kraft_wire.cli.quorum.status.status import quorum_status

Command = Callable[..., int]
DOCS = Path(__file__).parents[2] / "docs"
TABLES: dict[tuple[str, str], list[Command]] = {
    ("quorum.md", "| exit status of `quorum status` and `quorum describe` |"): [
        quorum_status,
        quorum_describe,
    ],
    ("describe.md", "## The past"): [describe],
    ("quorum.md", "## Change the voters"): [
        quorum_add,
        quorum_promote,
        quorum_remove,
        registrations_refresh,
    ],
    ("quorum.md", "## Migrate, one node after the other"): [quorum_migrate],
    ("exporters.md", "## Show, pause, reset"): [
        exporters_list,
        exporters_pause,
        exporters_resume,
        exporters_reset,
    ],
    ("recovery.md", "### Exit statuses of `quorum recover`"): [
        recover_collect,
        recover_plan,
        recover_apply,
        recover_verify,
    ],
}
"""The tables of the manual, by file and the text that stands before them, with the commands that they are
about."""
COMMANDS = [command for commands in TABLES.values() for command in commands]
OF_EVERY_COMMAND = {EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED}
OF_PARAMETERS = {
    "bootstrap_controller": {quorum.EXIT_NO_ANSWER, quorum.EXIT_NO_LEADER, quorum.EXIT_UNFIT},
    "command_config": {quorum.EXIT_UNREADABLE},
    "yes": {quorum.EXIT_NOT_CONFIRMED},
}
"""What a command with such a parameter can end with: it looks for a leader, reads this file, or asks."""


def in_help(command: Command) -> set[int]:
    """The exit statuses that the help of a command names."""
    found = re.search(r"^Exit statuses: (.*?)\n\n", inspect.getdoc(command) or "", re.DOTALL | re.MULTILINE)
    assert found, f"{command.__name__} names no exit statuses"
    return {int(number) for number in re.findall(r"(?:^|;\s)(\d+)\s", found[1])}


def in_table(file: str, before: str) -> set[int]:
    """The exit statuses in the first table after a text, or whose head the text is."""
    text = (DOCS / file).read_text()
    numbers: set[int] = set()
    for line in text[text.index(before) :].splitlines():
        row = re.match(r"\| ([0-9, ]+) \|", line)
        if row is not None:
            numbers |= set(map(int, row[1].split(",")))
        elif numbers:
            break
    return numbers


def test_the_help_names_what_the_parameters_of_a_command_lead_to() -> None:
    for command in COMMANDS:
        parameters = inspect.signature(command).parameters
        wanted = OF_EVERY_COMMAND.union(*(each for name, each in OF_PARAMETERS.items() if name in parameters))
        assert wanted - in_help(command) == set(), command.__name__


@pytest.mark.parametrize(("file", "before"), TABLES)
def test_the_manual_and_the_help_name_the_same(file: str, before: str) -> None:
    assert in_table(file, before) == set().union(*map(in_help, TABLES[file, before]))


def test_every_status_of_the_code_is_named_and_no_other() -> None:
    own = {value for name, value in vars(quorum).items() if name.startswith("EXIT_")}
    assert set().union(*map(in_help, COMMANDS)) == own | OF_EVERY_COMMAND
