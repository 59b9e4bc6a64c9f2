"""``quorum-state``: what a node must not forget of elections, on stable storage before it says anything."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kraft_wire.log.errors import MalformedFile
from kraft_wire.log.files import (
    QUORUM_STATE,
    ElectionState,
    parse_quorum_state,
    quorum_state_text,
    quorum_state_version,
)
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import CorruptFile


def read_election_state(partition_path: Path) -> ElectionState | None:
    """What the file says; None where there is none. Raises CorruptFile."""
    path = partition_path / QUORUM_STATE
    try:
        return parse_quorum_state(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise CorruptFile(path, f"is not text: {error.reason} at byte {error.start}") from None
    except MalformedFile as error:
        raise CorruptFile(path, error.reason) from None


def write_election_state(
    partition_path: Path,
    state: ElectionState,
    disk: Disk,
    *,
    kraft_version: int,
    voter_ids: Iterable[int] = (),
) -> None:
    """The state is on stable storage when this returns. Raises DiskFailed.

    The finalized ``kraft_version`` decides the file's version; version 0 names the voters.
    """
    text = quorum_state_text(state, quorum_state_version(kraft_version), voter_ids)
    disk.replace(partition_path / QUORUM_STATE, text.encode())
