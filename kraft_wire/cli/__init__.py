"""The command line. ``main`` reaches the server's code with few imports: they are most of its start.

``script`` is what a shell runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

_STANDARD_FILES = (0, 1, 2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status (see ``kraft_wire.cli.errors``)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_closed_files()
    try:
        status = _run(words)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        from kraft_wire.cli.errors import EXIT_INTERRUPTED

        return EXIT_INTERRUPTED
    except Exception as error:
        failed = _report(error)
        if failed is None:
            raise
        return failed


def script() -> NoReturn:
    """Run the command that the process was started with, and end the process.

    A controller ends at once when it has closed its files. To free all objects first, as Python does, would
    take longer than the stop, and a processor that a successor on the same machine needs.
    """
    status = main()
    if sys.argv[1:2] == ["server"]:
        os._exit(status)
    sys.exit(status)


def _run(words: list[str]) -> int:
    if words[:1] == ["server"]:
        from kraft_wire.cli.server import plain_arguments, server

        plain = plain_arguments(words[1:])
        if plain is not None:
            file, options = plain
            return server(file, **options)
    from kraft_wire.cli.app import run

    return run(words)


def _report(error: Exception) -> int | None:
    """Report an expected error and return its exit status; None for an internal error."""
    from kraft_wire.cli.errors import (
        EXIT_OK,
        complain,
        exit_status_of,
        explain,
        is_output_unread,
        stop_writing,
    )

    if isinstance(error, BrokenPipeError) and is_output_unread():
        stop_writing()
        return EXIT_OK
    reason = explain(error)
    if reason is None:
        return None
    complain(reason)
    return exit_status_of(error)


def _open_closed_files() -> None:
    """Open the null device in place of closed standard files.

    Otherwise the first file that a command opens would get the number of stderr, and everything that a
    library writes there would end up in it.
    """
    for number in _STANDARD_FILES:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
