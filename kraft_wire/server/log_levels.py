"""Read and change the levels of this process's loggers, under Kafka's names for levels."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from kraft_wire.controller.config_apis.broker_loggers import ROOT
from kraft_wire.server.logging import get_logger

log = get_logger(__name__)

_LEVELS: Final[Mapping[str, int]] = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG - 5,
}


def log_levels() -> dict[str, str]:
    """Return the level in effect of every logger that exists, and of those above it."""
    names = sorted(logging.root.manager.loggerDict)
    return {ROOT: _kafkas(logging.root), **{name: _kafkas(logging.getLogger(name)) for name in names}}


def set_log_levels(levels: Mapping[str, str | None]) -> None:
    """Set levels by logger; with None a logger gets its level from the one above it."""
    for name, level in levels.items():
        logger = logging.root if name == ROOT else logging.getLogger(name)
        logger.setLevel(logging.NOTSET if level is None else _LEVELS[level])
        log.warning("log level changed", of=name, to=_kafkas(logger), is_unset=level is None)


def _kafkas(logger: logging.Logger) -> str:
    level = logger.getEffectiveLevel()
    return next((name for name, number in _LEVELS.items() if level >= number), "TRACE")
