"""Write structured logs to stderr: an event and its fields, as text or as JSON lines.

The engine is the standard library's logging, which trio imports anyway. What other libraries log comes out in
the same form. Call ``configure`` once, when the program starts; without it only warnings and errors show.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import TracebackType
from typing import Any, Final, Literal, TextIO, get_args

import msgspec

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]
LEVELS: tuple[str, ...] = get_args(LogLevel)
FORMATS: tuple[str, ...] = get_args(LogFormat)
LEVEL_VARIABLE = "KRAFT_WIRE_LOG_LEVEL"
FORMAT_VARIABLE = "KRAFT_WIRE_LOG_FORMAT"

_Traceback = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
_PLAIN_VALUE = re.compile(r"[^\s\"=\x00-\x1f\x7f]+")


class UnknownLogSetting(ValueError):
    """A level that isn't in ``LEVELS``, or a format that isn't in ``FORMATS``."""

    def __init__(self, what: str, value: str, known: Sequence[str], where: str) -> None:
        super().__init__(f"{where}: unknown log {what} {value!r}; use one of {', '.join(known)}")


class Logger:
    """A logger of events with fields: ``log.info("broker registered", broker_id=1)``.

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
        """Log an error with the traceback of the exception that is being handled."""
        self._log(logging.ERROR, event, fields, with_traceback=True)

    def _log(
        self, level: int, event: str, fields: dict[str, object], *, with_traceback: bool = False
    ) -> None:
        if not self._logger.isEnabledFor(level):
            return
        traceback = sys.exc_info() if with_traceback else None
        self._logger.handle(_Event(self._logger.name, level, event, self._fields | fields, traceback))


_NO_SOURCE: Final[Mapping[str, object]] = logging.LogRecord("", 0, "", 0, "", (), None).__dict__


class _Event(logging.LogRecord):
    """A record without source, thread and process: no line shows them, and to find them costs more than all
    the rest."""

    def __init__(
        self, name: str, level: int, event: str, fields: dict[str, object], traceback: _Traceback | None
    ) -> None:
        now = time.time()
        self.__dict__.update(
            _NO_SOURCE,
            name=name,
            levelno=level,
            levelname=logging.getLevelName(level),
            msg=event,
            created=now,
            msecs=now % 1 * 1000,
            exc_info=traceback,
            fields=fields,
        )


def get_logger(name: str) -> Logger:
    """Return the logger of a module: pass ``__name__``."""
    return Logger(logging.getLogger(name), {})


def log_level(option: str | None) -> str:
    """Return the level that the option names, else the environment, else "info".

    Raises UnknownLogSetting.
    """
    return _setting("level", LEVELS, "--log-level", option, LEVEL_VARIABLE) or "info"


def log_format(option: str | None) -> str | None:
    """Return the format that the option names, else the environment; None if neither does.

    Raises UnknownLogSetting.
    """
    return _setting("format", FORMATS, "--log-format", option, FORMAT_VARIABLE)


def _setting(what: str, known: Sequence[str], name: str, option: str | None, variable: str) -> str | None:
    value, where = (option, name) if option is not None else (os.environ.get(variable), variable)
    if value is None:
        return None
    if value.lower() not in known:
        raise UnknownLogSetting(what, value, known, where)
    return value.lower()


def configure(level: str = "info", stream: TextIO | None = None, form: str | None = None) -> None:
    """Send every event of ``level`` and above to ``stream`` (stderr), replacing the previous configuration.

    Without ``form`` a terminal gets text and everything else JSON. If stderr is closed, nothing is written.
    """
    stream = sys.stderr if stream is None else stream
    handler = logging.NullHandler() if stream is None else logging.StreamHandler(stream)
    is_text = form == "text" if form is not None else stream is not None and stream.isatty()
    handler.setFormatter(TextFormatter() if is_text else JsonFormatter())
    root = logging.getLogger()
    for old in [old for old in root.handlers if isinstance(old.formatter, TextFormatter | JsonFormatter)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())


class JsonFormatter(logging.Formatter):
    """Formats an event as a line of JSON: time (UTC, milliseconds), level, logger, event, then its fields."""

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
            # The event must be logged even if JSON can't hold one of its values.
            return msgspec.json.encode({name: ascii(value) for name, value in entry.items()}).decode()


class TextFormatter(logging.Formatter):
    """Formats an event as text: local time, level, the logger's last name, event, fields."""

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
    return f"{_utc_second(int(record.created))}.{int(record.msecs):03d}Z"


@lru_cache(maxsize=1)
def _utc_second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def _readable(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_readable, value)) or "none"
    text = "none" if value is None else str(value)
    return text if _PLAIN_VALUE.fullmatch(text) else ascii(text)
