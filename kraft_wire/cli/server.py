"""``kraft-wire server``: run a controller until it is stopped.

Nothing here imports the command-line library: see ``plain_arguments``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, TypeGuard

from kraft_wire.server import logging
from kraft_wire.server.logging import LogFormat, LogLevel


class ServerArguments(TypedDict, total=False):
    """The parameters of ``server`` other than the file."""

    override: list[str]
    log_level: LogLevel
    log_format: LogFormat


def server(
    file: str,
    /,
    *,
    override: Sequence[str] = (),
    log_level: LogLevel | None = None,
    log_format: LogFormat | None = None,
) -> int:
    """Run a controller on a formatted folder, until SIGTERM, SIGINT or SIGHUP.

    For example:

        kraft-wire server controller.properties
        kraft-wire server controller.properties --override node.id=2 --log-format text

    Parameters
    ----------
    file
        The controller's properties file, with Kafka's keys.
    override
        A KEY=VALUE that takes precedence over the file. Can be given several times.
    log_level
        The lowest level to log. Default: the environment's KRAFT_WIRE_LOG_LEVEL, otherwise info.
    log_format
        The form of the log. Default: the environment's KRAFT_WIRE_LOG_FORMAT, otherwise text on a terminal
        and json elsewhere.
    """
    from kraft_wire.server.config.server_config import load_server_config

    logging.configure(logging.log_level(log_level), form=logging.log_format(log_format))
    config = load_server_config(file, override)
    log = logging.get_logger(__name__)
    for warning in config.warnings:
        log.warning(warning, file=file)
    from kraft_wire.cli.errors import run_server
    from kraft_wire.server.main import run

    return run_server(lambda: run(config))


def plain_arguments(words: Sequence[str]) -> tuple[str, ServerArguments] | None:
    """Return the file and the options of a command line in the usual form; None for any other command line.

    Importing the command-line library takes as long as much of the server's start. So the usual form,
    ``FILE [--override KEY=VALUE]... [--log-level LEVEL] [--log-format FORMAT]``, is read here. The library
    reads the rest, and explains what is wrong with it.
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
        elif name == "--log-level" and is_log_level(level := value.lower()):
            options["log_level"] = level
        elif name == "--log-format" and is_log_format(form := value.lower()):
            options["log_format"] = form
        else:
            return None
    return (files[0], options) if len(files) == 1 and files[0] else None


def is_log_level(text: str) -> TypeGuard[LogLevel]:
    return text in logging.LEVELS


def is_log_format(text: str) -> TypeGuard[LogFormat]:
    return text in logging.FORMATS
