"""Structured logs on stderr: an event and its fields, as JSON lines for machines or as text on a terminal.

The engine is the standard library's logging, which trio imports anyway; what other libraries log comes out in
the same form. Call ``configure`` once, at the program's start; without it only warnings and errors show.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from typing import Any, TextIO

import msgspec

LEVELS = ("debug", "info", "warning", "error")
LEVEL_VARIABLE = "KRAFT_WIRE_LOG_LEVEL"

_PLAIN_VALUE = re.compile(r"[^\s\"=\x00-\x1f\x7f]+")


class UnknownLevel(ValueError):
    """A level that is none of ``LEVELS``."""

    def __init__(self, level: str, where: str) -> None:
        super().__init__(f"{where}: unknown log level {level!r}; use one of {', '.join(LEVELS)}")


class Logger:
    """Logs events with fields: ``log.info("broker registered", broker_id=1)``.

    ``bind`` returns a logger that adds its fields to every event.
    """

    __slots__ = ("_fields", "_logger")

    def __init__(self, logger: logging.Logger, fields: dict[str, object]) -> None:
        self._logger = logger
        self._fields = fields

    def bind(self, **fields: object) -> Logger:
        return Logger(self._logger, self._fields | fields)

    def debug(self, event: str, **fields: object) -> None:
        self._log(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._log(logging.WARNING, event, fields)

    def error(self, event: str, **fields: object) -> None:
        self._log(logging.ERROR, event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """An error with the traceback of the exception that is being handled."""
        self._log(logging.ERROR, event, fields, with_traceback=True)

    def _log(
        self, level: int, event: str, fields: dict[str, object], *, with_traceback: bool = False
    ) -> None:
        if not self._logger.isEnabledFor(level):
            return
        traceback = sys.exc_info() if with_traceback else None
        record = logging.LogRecord(self._logger.name, level, "", 0, event, (), traceback)
        record.__dict__["fields"] = self._fields | fields
        self._logger.handle(record)


def get_logger(name: str) -> Logger:
    """The logger of a module: pass ``__name__``."""
    return Logger(logging.getLogger(name), {})


def level_from_environment(option: str | None) -> str:
    """The level that the option names, else the one of the environment, else "info". Raises UnknownLevel."""
    if option is not None:
        level, where = option, "--log-level"
    else:
        level, where = os.environ.get(LEVEL_VARIABLE, "info"), LEVEL_VARIABLE
    if level.lower() not in LEVELS:
        raise UnknownLevel(level, where)
    return level.lower()


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Send everything from ``level`` up to ``stream`` (stderr); replaces what an earlier call set up."""
    stream = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter() if stream.isatty() else JsonFormatter())
    root = logging.getLogger()
    for old in [old for old in root.handlers if isinstance(old.formatter, TextFormatter | JsonFormatter)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC, milliseconds), level, logger, event, then the event's fields."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": _utc(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        for name, value in _fields(record).items():
            entry[f"{name}_" if name in entry else name] = value
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        try:
            return msgspec.json.encode(entry, enc_hook=str).decode()
        except (UnicodeEncodeError, TypeError, ValueError, RecursionError):
            # A value that JSON cannot hold must not cost the event.
            return msgspec.json.encode({name: ascii(value) for name, value in entry.items()}).decode()


class TextFormatter(logging.Formatter):
    """For eyes: local time, level, event, fields, the logger's last name."""

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        fields = "".join(f" {name}={_readable(value)}" for name, value in _fields(record).items())
        origin = record.name.rpartition(".")[2]
        line = (
            f"{clock}.{int(record.msecs):03d} {record.levelname:<7} {origin}: {record.getMessage()}{fields}"
        )
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = record.__dict__.get("fields", {})
    return fields


def _utc(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def _readable(value: object) -> str:
    text = str(value)
    return text if _PLAIN_VALUE.fullmatch(text) else ascii(text)
