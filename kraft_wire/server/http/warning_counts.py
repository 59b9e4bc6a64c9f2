"""Count the warnings and errors in this controller's log, by their event."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PACKAGE: Final = __name__.partition(".")[0]


class WarningCounts(logging.Handler):
    """Sees what this package logs. Its events are constants, so they can't become very many; those of other
    packages may be anything."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.by_event: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Count an event."""
        self.by_event[record.getMessage()] += 1

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count in this block."""
        logger = logging.getLogger(PACKAGE)
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)
