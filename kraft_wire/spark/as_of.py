"""Which rows of a log make its past."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timezone

import msgspec

from kraft_wire.log.errors import LogError
from kraft_wire.spark.record_rows import RecordRow


class NotReached(LogError):
    """A past that the rows don't reach: nobody can tell what was there."""


class AsOf(msgspec.Struct, frozen=True):
    """A moment of a log: behind the record at ``offset``; or in front of the first one later than
    ``timestamp_ms``, by the clocks of the leaders of those days; or, without both, the end."""

    offset: int | None = None
    timestamp_ms: int | None = None

    def cut(self, rows: Iterable[RecordRow]) -> Iterator[RecordRow]:
        """The rows up to there. Raises NotReached where the rows end in front of the offset."""
        reached = -1
        for row in rows:
            if self._is_later(row):
                break
            reached = max(reached, row.offset)
            yield row
        if self.offset is not None and reached < self.offset:
            known = f"end at offset {reached}" if reached >= 0 else "begin later, or there are none"
            raise NotReached(f"the rows {known}, and it is offset {self.offset} that is asked for")

    def _is_later(self, row: RecordRow) -> bool:
        if self.offset is not None and row.offset > self.offset:
            return True
        return self.timestamp_ms is not None and row.timestamp_ms > self.timestamp_ms


def parse_time_ms(text: str) -> int:
    """A time in ISO 8601, in UTC where it doesn't say otherwise. Raises ValueError."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=timezone.utc)
    return int(time.timestamp() * 1000)
