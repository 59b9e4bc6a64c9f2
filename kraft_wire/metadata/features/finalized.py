"""Replay the features that the cluster has finalized."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_wire.metadata.errors import Contradiction, LevelTooNew
from kraft_wire.metadata.features.supported import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    supported_ranges,
)
from kraft_wire.metadata.journal import Journal
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord


class FinalizedFeatures:
    """The finalized levels. kraft.version is not among them: it is in control records, which raft reads.

    Replay accepts levels that are not stable yet, because they were finalized on purpose.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._levels: dict[str, int] = {}
        self._epoch: dict[str, int] = {}

    @property
    def levels(self) -> Mapping[str, int]:
        """The levels above 0 by name, including metadata.version; read only."""
        return self._levels

    @property
    def metadata_version(self) -> int:
        """The finalized metadata.version; 0 before the first one is known."""
        return self._levels.get(METADATA_VERSION, 0)

    @property
    def epoch(self) -> int:
        """The offset of the last record that changed features; -1 before the first."""
        return self._epoch.get("", -1)

    @property
    def elr_enabled(self) -> bool:
        """Whether eligible leader replicas (KIP-966) are in use."""
        return self._levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) >= 1

    def replay(self, record: FeatureLevelRecord, offset: int) -> None:
        """Finalize a level; 0 removes a feature. Raises LevelTooNew or Contradiction for a level that this
        software doesn't support."""
        name, level = record.name, record.feature_level
        lowest, highest = supported_ranges(unstable=True).get(name, (0, 0))
        supported = f"{name} {level} is not supported here, only {lowest} to {highest}"
        if level > highest:
            raise LevelTooNew(f"{supported}; use a newer release of kraft-wire")
        if level < lowest:
            raise Contradiction(f"{supported}; use an older release to upgrade metadata.version first")
        # KAFKA-18979: releases before 4.0.1 could write kraft.version to the log, where it has no effect.
        if name != KRAFT_VERSION:
            if level == 0:
                self._journal.drop(self._levels, name)
            else:
                self._journal.put(self._levels, name, level)
        self._journal.put(self._epoch, "", offset)
