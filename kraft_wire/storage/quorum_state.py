"""Read and write ``quorum-state``: what a node must remember of elections before it tells anybody."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from kraft_wire.log.errors import MalformedFile
from kraft_wire.log.files import (
    QUORUM_STATE,
    ElectionState,
    parse_quorum_state,
    quorum_state_text,
    quorum_state_version,
    quorum_state_voter_ids,
)
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import CorruptFile

T = TypeVar("T")


def read_election_state(partition_path: Path) -> ElectionState | None:
    """Read the file; None if it doesn't exist. Raises CorruptFile."""
    return _read(partition_path, parse_quorum_state)


def read_static_voter_ids(partition_path: Path) -> list[int]:
    """Return the voters that the file names: in version 0 only, later they are in the log. Raises
    CorruptFile."""
    return _read(partition_path, quorum_state_voter_ids) or []


def _read(partition_path: Path, parse: Callable[[str], T]) -> T | None:
    path = partition_path / QUORUM_STATE
    try:
        return parse(path.read_text("utf-8"))
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
    """Write the file and flush it to stable storage. Raises DiskFailed.

    The finalized ``kraft_version`` decides the version of the file; version 0 names the voters.
    """
    text = quorum_state_text(state, quorum_state_version(kraft_version), voter_ids)
    disk.replace(partition_path / QUORUM_STATE, text.encode())
