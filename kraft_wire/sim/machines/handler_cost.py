"""Say how long a step of a node takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kraft_wire.raft.effects import AppendBatch


class HandlerCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The duration of a step: ``step_us``, and some for each record in it. An active controller decides
    records; a standby appends and applies them, many at once. By default steps take no time."""

    step_us: int = 0
    decided_record_us: int = 0
    replayed_record_us: int = 0

    def of(self, records: StepRecords) -> int:
        """Return the duration of a step with these records, in microseconds."""
        return (
            self.step_us
            + records.decided * self.decided_record_us
            + records.replayed * self.replayed_record_us
        )


class StepRecords(msgspec.Struct, frozen=True):
    """How many records a step decides, and how many it appends or applies without a decision."""

    decided: int = 0
    replayed: int = 0


def appended_records(effects: Sequence[Any]) -> int:
    """Return how many records these effects append."""
    batches = [effect for effect in effects if type(effect) is AppendBatch]
    return sum(batch.last_offset + 1 - batch.base_offset for batch in batches)
