"""Exit statuses, and the errors that a command reports in one line instead of a traceback.

Exit statuses of every command: 0 done; 1 refused or failed, with the reason on stderr; 2 wrong usage; 130
interrupted from the keyboard; 128 plus a signal's number if that signal cut the work short. A command whose
output is no longer read, as with ``| head``, ends quietly.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kraft_wire.cli.printable import printable

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130


class CommandError(Exception):
    """A command cannot do what was asked. The text names what is wrong, where, and what to do."""

    EXIT_STATUS = EXIT_FAILED


class UsageError(CommandError):
    """The command line itself is wrong: its options don't go together, or one has an impossible value."""

    EXIT_STATUS = EXIT_USAGE


class Interrupted(CommandError):
    """The operator interrupted a command from the keyboard. The text says what was changed."""

    EXIT_STATUS = EXIT_INTERRUPTED


def explain(error: Exception) -> str | None:
    """Return the text of an expected error; None for an internal error, whose traceback must be shown."""
    if isinstance(error, CommandError):
        return str(error)
    if isinstance(error, OSError):
        return _explain_os_error(error)
    # Imported here: a command that succeeds needs none of them.
    from kraft_wire.controller.node.activation import ActivationError
    from kraft_wire.log.errors import LogError
    from kraft_wire.metadata.errors import FeatureError
    from kraft_wire.protocol.errors import ProtocolError
    from kraft_wire.raft.errors import CannotStart
    from kraft_wire.server.config.reader import ConfigError
    from kraft_wire.server.logging import UnknownLogSetting

    expected = (
        ActivationError,
        CannotStart,
        ConfigError,
        FeatureError,
        LogError,
        ProtocolError,
        UnknownLogSetting,
    )
    return str(error) if isinstance(error, expected) else None


def exit_status_of(error: Exception) -> int:
    """Return the exit status that goes with an expected error."""
    if isinstance(error, CommandError):
        return error.EXIT_STATUS
    from kraft_wire.server.logging import UnknownLogSetting

    return EXIT_USAGE if isinstance(error, UnknownLogSetting) else EXIT_FAILED


def run_server(run: Callable[[], int]) -> int:
    """Run a server and return its exit status. The error that ends it is logged as "fatal: CAUSE"."""
    try:
        return run()
    except Exception as error:
        from kraft_wire.server.logging import get_logger

        log = get_logger(__name__)
        reason = explain(error)
        kind = type(error).__name__
        if reason is None:
            log.exception(f"fatal: internal error: {kind}: {error}", error=kind)
        else:
            log.error(f"fatal: {reason}", error=kind)
        return EXIT_FAILED


def complain(text: str) -> None:
    """Print lines about the command on stderr, if anybody reads it; what isn't printable is shown."""
    shown = "\n".join(map(printable, text.split("\n")))
    with suppress(BrokenPipeError):
        print(f"kraft-wire: {shown}", file=sys.stderr, flush=True)


def is_output_unread() -> bool:
    """Whether the reader of stdout has closed its end, as ``| head`` does."""
    if sys.stdout is None:
        return False
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return bool(poll.poll(0))


def stop_writing() -> None:
    """Discard what is still to be written to stdout, because its reader has closed it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain_os_error(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename is not None else reason
