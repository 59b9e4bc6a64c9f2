"""The command line. ``main`` reaches the server's code with few imports, as they are most of its start."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code (see ``kraft_wire.cli.errors``)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(words)
    except KeyboardInterrupt:
        from kraft_wire.cli.errors import EXIT_INTERRUPTED

        return EXIT_INTERRUPTED
    except BrokenPipeError:
        from kraft_wire.cli.errors import EXIT_OK, stop_writing

        stop_writing()
        return EXIT_OK
    except Exception as error:
        from kraft_wire.cli.errors import EXIT_FAILED, explain

        reason = explain(error)
        if reason is None:
            raise
        print(f"kraft-wire: {reason}", file=sys.stderr)
        return EXIT_FAILED


def _run(words: list[str]) -> int:
    if words[:1] == ["server"]:
        from kraft_wire.cli.server import plain_arguments, server

        plain = plain_arguments(words[1:])
        if plain is not None:
            file, options = plain
            return server(file, **options)
    from kraft_wire.cli.app import run

    return run(words)
