"""Read the folders that a command names; each way to fail has its error."""

from __future__ import annotations

from pathlib import Path

from kraft_wire.cli.quorum import Unreadable
from kraft_wire.log.errors import LogError
from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.raft.recovery.evidence import FolderEvidence
from kraft_wire.storage.inspection.evidence import read_evidence


def evidence_of(folder: Path) -> FolderEvidence:
    """Read what a folder says of its quorum. Raises Unreadable."""
    if not folder.is_dir():
        raise Unreadable(f"{folder}: no such folder; give the one with meta.properties")
    try:
        return read_evidence(folder)
    except OSError as error:
        raise Unreadable(f"{error.filename or folder}: {error.strerror or error}") from None
    except LogError as error:
        raise Unreadable(str(error)) from None
    except ProtocolError as error:
        raise Unreadable(f"{folder}: {error}") from None
