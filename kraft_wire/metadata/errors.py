"""What can go wrong when records are applied, features chosen, or a snapshot written."""

from __future__ import annotations


class ReplayError(Exception):
    """A record contradicts the state that it is applied to: an invariant is broken and the node must stop.

    ``record_type`` is the record's schema name, ``offset`` its place in the metadata log.
    """

    def __init__(self, record_type: str, offset: int, what: str) -> None:
        super().__init__(f"{record_type} at offset {offset} cannot be applied: {what}")
        self.record_type = record_type
        self.offset = offset
        self.what = what


class Contradiction(Exception):
    """Raised by a handler that finds its record impossible; replay makes it a ReplayError with the place."""


class UndoImpossible(Exception):
    """Somebody wants back what the journal no longer holds, or never did: a bug, and the node must stop."""

    def __init__(self, offset: int, floor: int) -> None:
        super().__init__(f"records from offset {offset} cannot be undone, only those from {floor} on")
        self.offset = offset
        self.floor = floor


class FeatureError(ValueError):
    """A feature, level or release version that cannot be chosen; the text says which and what can be."""


class UnwritableMetadata(Exception):
    """The state holds something that records at the finalized metadata.version cannot express."""

    def __init__(self, what: str, metadata_version: str) -> None:
        super().__init__(f"a snapshot at metadata.version {metadata_version} would lose {what}")
        self.what = what
        self.metadata_version = metadata_version
