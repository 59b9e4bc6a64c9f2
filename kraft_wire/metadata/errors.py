"""The errors of applying records, choosing features and writing snapshots."""

from __future__ import annotations


class ReplayError(Exception):
    """A record contradicts the state that it is applied to: an invariant is broken and the node must stop.

    ``record_type`` is the record's schema name, ``offset`` its offset in the metadata log.
    """

    def __init__(self, record_type: str, offset: int, what: str) -> None:
        super().__init__(f"{record_type} at offset {offset} cannot be applied: {what}")
        self.record_type = record_type
        self.offset = offset
        self.what = what


class RecordTooNew(ReplayError):
    """This release doesn't know a record's type or version, or a feature level in it. A newer release does.

    The state holds everything before the record, and nothing of it.
    """


class Contradiction(Exception):
    """A record that can't be applied to the state. Handlers raise it; replay turns it into a ReplayError with
    the offset."""


class LevelTooNew(Contradiction):
    """A feature level above those that this release supports. Replay turns it into RecordTooNew."""


class UndoImpossible(Exception):
    """A change that the journal no longer holds, or never held, should be undone: an internal error, the node
    must stop."""

    def __init__(self, offset: int, floor: int) -> None:
        super().__init__(f"records from offset {offset} cannot be undone, only those from {floor} on")
        self.offset = offset
        self.floor = floor


class FeatureError(ValueError):
    """A feature, level or release version that can't be chosen. The text names it and what can be chosen."""


class UnwritableMetadata(Exception):
    """The state holds something that the records of the finalized metadata.version can't express."""

    def __init__(self, what: str, metadata_version: str) -> None:
        super().__init__(f"a snapshot at metadata.version {metadata_version} would lose {what}")
        self.what = what
        self.metadata_version = metadata_version
