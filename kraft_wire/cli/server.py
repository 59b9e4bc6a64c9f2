"""``kraft-wire server``: a controller, until it is told to stop.

Nothing here imports the command-line library: see ``plain_arguments``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict


class ServerArguments(TypedDict, total=False):
    """The parameters of ``server`` beside the file."""

    override: list[str]
    log_level: str


def server(file: str, /, *, override: Sequence[str] = (), log_level: str | None = None) -> int:
    """Run a controller on a formatted folder, until SIGTERM, SIGINT or SIGHUP.

    Parameters
    ----------
    file
        The controller's properties file, with Kafka's keys.
    override
        A key=value that wins over the file's. May be given again and again.
    log_level
        debug, info, warning or error. Without it KRAFT_WIRE_LOG_LEVEL counts, then info.
    """
    from kraft_wire.server.config import load_server_config
    from kraft_wire.server.logging import configure, get_logger, level_from_environment

    configure(level_from_environment(log_level))
    config = load_server_config(file, override)
    log = get_logger(__name__)
    for warning in config.warnings:
        log.warning(warning, file=file)
    from kraft_wire.cli.errors import run_to_the_end
    from kraft_wire.server.main import run

    return run_to_the_end(lambda: run(config))


def plain_arguments(words: Sequence[str]) -> tuple[str, ServerArguments] | None:
    """The file and the options of a command line in its usual form; None of any other, right or wrong.

    Importing the command-line library takes as long as much of the server's start. So the usual form,
    ``FILE [--override KEY=VALUE]... [--log-level LEVEL]``, is read here, and the library reads (and complains
    of, and explains) the rest.
    """
    files: list[str] = []
    options: ServerArguments = {}
    remaining = iter(words)
    for word in remaining:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            files.append(word)
            continue
        if not equals:
            value = next(remaining, "")
        if not value or value.startswith("-"):
            return None
        if name == "--override":
            options.setdefault("override", []).append(value)
        elif name == "--log-level":
            options["log_level"] = value
        else:
            return None
    return (files[0], options) if len(files) == 1 and files[0] else None
