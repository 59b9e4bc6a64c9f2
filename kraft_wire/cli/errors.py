"""What a command may fail with in one line, without a traceback.

Exit codes of every command: 0 done; 1 refused or failed, the reason on stderr; 130 interrupted from the
keyboard; 128 and a signal's number where that one cut short what was to be done.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


class CommandError(Exception):
    """A command that cannot do what was asked: the text says what, where and what to do."""


def explain(error: Exception) -> str | None:
    """What to tell the operator of an expected error; None of a defect, whose traceback must be seen."""
    if isinstance(error, CommandError):
        return str(error)
    if isinstance(error, OSError):
        return _explain_os_error(error)
    # Imported here: a command that succeeds needs none of them for this.
    from kraft_wire.controller.activation import ActivationError
    from kraft_wire.log.errors import LogError
    from kraft_wire.metadata.errors import FeatureError
    from kraft_wire.protocol.errors import ProtocolError
    from kraft_wire.raft.errors import CannotStart
    from kraft_wire.server.config_reader import ConfigError
    from kraft_wire.server.logging import UnknownLevel

    expected = (
        ActivationError,
        CannotStart,
        ConfigError,
        FeatureError,
        LogError,
        ProtocolError,
        UnknownLevel,
    )
    return str(error) if isinstance(error, expected) else None


def run_to_the_end(run: Callable[[], int]) -> int:
    """Run a server; what ends it is told as the rest of its life is, in the log."""
    try:
        return run()
    except Exception as error:
        from kraft_wire.server.logging import get_logger

        log = get_logger(__name__)
        reason = explain(error)
        if reason is None:
            log.exception("the process ends by a defect")
        else:
            log.error("the process ends", error=reason)
        return EXIT_FAILED


def stop_writing() -> None:
    """The reader of our output is gone, as with ``| head``: what is left to flush must not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain_os_error(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename is not None else reason
