"""Read and write the files of a recovery: what was collected, and the plan."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from kraft_wire.cli.errors import CommandError
from kraft_wire.cli.quorum import Unfit, Unreadable
from kraft_wire.raft.recovery.evidence import FolderEvidence
from kraft_wire.raft.recovery.node_role import Role
from kraft_wire.raft.recovery.plan import Plan, RecoveryError
from kraft_wire.storage.disk import Disk

COLLECTION_VERSION: Final = 3
T = TypeVar("T")


class Collection(msgspec.Struct, frozen=True):
    """The file of ``collect``. ``roles`` are the nodes' by these folders alone; a plan that has others, too,
    may know more."""

    version: int
    collected_at_ms: int
    folders: list[FolderEvidence]
    roles: dict[int, Role] = {}


def read_collection(path: Path) -> tuple[Collection, str]:
    """Return a collection and the SHA-256 of its file. Raises Unreadable."""
    data = _bytes_of(path)
    collection = _decode(path, data, Collection, "recover collect")
    if collection.version != COLLECTION_VERSION:
        raise Unreadable(
            f"{path} has version {collection.version}, known is {COLLECTION_VERSION}: collect again"
        )
    return collection, hashlib.sha256(data).hexdigest()


def read_plan(path: Path) -> Plan:
    """Return a plan whose hash is right. Raises Unreadable, Unfit."""
    plan = _decode(path, _bytes_of(path), Plan, "recover plan")
    try:
        plan.check()
    except RecoveryError as error:
        raise Unfit(f"{path}: {error}") from None
    return plan


def write_new(path: Path, value: object) -> None:
    """Write a new file as indented JSON. Raises CommandError if there is one, OSError, DiskFailed."""
    if path.exists():
        raise CommandError(f"{path} exists already; give another --output, or remove it")
    if not path.absolute().parent.is_dir():
        raise CommandError(f"--output {path}: there is no folder {path.absolute().parent}")
    Disk().replace(path.absolute(), msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from None


def _decode(path: Path, data: bytes, kind: type[T], command: str) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise Unreadable(f"{path} is not a file of `kraft-wire quorum {command}`: {error}") from None
