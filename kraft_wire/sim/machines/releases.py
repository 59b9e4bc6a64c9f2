"""Two releases of the controller, as in a rolling upgrade: only the newer one writes NoOpRecords and applies
them."""

from __future__ import annotations

from enum import Enum

from kraft_wire.metadata.errors import LevelTooNew
from kraft_wire.metadata.state import Handler, MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.no_op_record import NoOpRecord


class OlderState(MetadataState):
    """The metadata of the older release."""

    def registry(self) -> list[tuple[type[Message], Handler]]:
        return [row for row in super().registry() if row[0] is not NoOpRecord] + [(NoOpRecord, _too_new)]


def _too_new(record: NoOpRecord, offset: int) -> None:
    raise LevelTooNew("a NoOpRecord is of the newer release")


class Release(Enum):
    """A release, by the kind of its state."""

    OLDER = OlderState
    NEWER = MetadataState

    @property
    def idle_interval_ms(self) -> int:
        """The release's metadata.max.idle.interval.ms; 0 for no NoOpRecords."""
        return 500 if self is Release.NEWER else 0
