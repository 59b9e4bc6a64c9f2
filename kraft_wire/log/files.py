"""Convert between the small text files of a log folder and their values; build and parse file names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import google_crc32c
import msgspec

from kraft_wire.log.errors import MalformedFile
from kraft_wire.protocol.uuid import Uuid

CLUSTER_METADATA = "__cluster_metadata"
PARTITION_FOLDER = f"{CLUSTER_METADATA}-0"
CLUSTER_METADATA_TOPIC_ID = Uuid.ONE

QUORUM_STATE = "quorum-state"
META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
RECOVERY_PLAN = "recovery-plan"
"""kraft-wire's own: the plan of recovery that was applied to the folder."""
OBSERVER = "observer"
"""kraft-wire's own, and empty: the folder is that of a node that only observes."""

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
PRODUCER_SNAPSHOT_SUFFIX = ".snapshot"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SEGMENT_SUFFIXES = (
    LOG_SUFFIX,
    INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
"""All files that may belong to a segment. Only Java's controllers write the last two kinds."""

_CHECKSUM_LINE_START = "crc32c "
_CHECKSUM_COMMENT = f"#{_CHECKSUM_LINE_START}"
_CHECKSUM_MEMBER = "crc32c"
_SEGMENT_NAME = re.compile(r"([0-9]{20})(\.[a-z]+)")


# --- segments


def segment_file_name(base_offset: int, suffix: str = LOG_SUFFIX) -> str:
    """Return the name of one of a segment's files, such as 00000000000000000000.log."""
    return f"{base_offset:020d}{suffix}"


def parse_segment_file_name(name: str) -> tuple[int, str] | None:
    """Return the base offset and the suffix in the name of a segment's file; None for other names."""
    match = _SEGMENT_NAME.fullmatch(name)
    if match is None or match[2] not in SEGMENT_SUFFIXES:
        return None
    return int(match[1]), match[2]


# --- quorum-state


class ElectionState(msgspec.Struct, frozen=True, gc=False):
    """An election's facts that a node must remember: ``quorum-state``.

    ``leader_id`` and ``voted_id`` are -1 when there is none. ``voted_directory_id`` is zero when the vote
    named no directory, and always in version 0 of the file, which has no room for it.
    """

    leader_id: int = -1
    leader_epoch: int = 0
    voted_id: int = -1
    voted_directory_id: Uuid = Uuid.ZERO

    @property
    def has_leader(self) -> bool:
        return self.leader_id >= 0

    @property
    def has_voted(self) -> bool:
        return self.voted_id >= 0


def quorum_state_version(kraft_version: int) -> int:
    """Return the version of quorum-state that goes with a finalized kraft.version."""
    return 1 if kraft_version >= 1 else 0


def quorum_state_text(state: ElectionState, version: int, voter_ids: Iterable[int] = ()) -> str:
    """Return the text of quorum-state: the JSON object that Java writes, with a checksum as its last member.

    Java ignores the member. Only version 0 names the voters.
    """
    election: dict[str, Any] = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
    }
    if version == 0:
        voters = [{"voterId": voter_id} for voter_id in voter_ids]
        election = {"clusterId": "", **election, "appliedOffset": 0, "currentVoters": voters}
    elif version == 1:
        election["votedDirectoryId"] = str(state.voted_directory_id)
    else:
        raise ValueError(f"{QUORUM_STATE} has versions 0 and 1, not {version}")
    election["data_version"] = version
    checksum = _checksum(msgspec.json.encode(election))
    return msgspec.json.encode({**election, _CHECKSUM_MEMBER: checksum}).decode() + "\n"


def _checksum(data: bytes) -> str:
    return f"{google_crc32c.value(data):08x}"


class _VoterJson(msgspec.Struct):
    voterId: int


class _QuorumStateJson(msgspec.Struct):
    data_version: int
    leaderId: int
    leaderEpoch: int
    votedId: int
    votedDirectoryId: str | None = None
    currentVoters: list[_VoterJson] | None = None


def parse_quorum_state(text: str) -> ElectionState:
    """Read quorum-state of version 0 or 1, with our checksum or without. Raises MalformedFile.

    The checksum covers the other members in their order, without white space: a file that an editor or jq
    has only formatted again is still valid.
    """
    state, _ = _parse_quorum_state(text)
    return state


def quorum_state_voter_ids(text: str) -> list[int]:
    """Return the voters that quorum-state names: those of version 0, none in version 1. Raises
    MalformedFile."""
    _, voter_ids = _parse_quorum_state(text)
    return voter_ids


def _parse_quorum_state(text: str) -> tuple[ElectionState, list[int]]:
    text = _without_checksum_line(text)
    try:
        members = msgspec.json.decode(text.encode(), type=dict[str, Any])
        checksum = members.pop(_CHECKSUM_MEMBER, None)
        if checksum is not None and checksum != _checksum(msgspec.json.encode(members)):
            raise ValueError(
                f"the contents don't match the checksum; remove `{_CHECKSUM_MEMBER}` only if you know that "
                "everything else is right"
            )
        read = msgspec.convert(members, _QuorumStateJson)
        directory_id = _voted_directory_id(read)
    except (ValueError, UnicodeError, RecursionError) as error:
        raise MalformedFile(QUORUM_STATE, str(error)) from None
    state = ElectionState(
        leader_id=_id_or_none(read.leaderId, "leaderId"),
        leader_epoch=_epoch(read.leaderEpoch, "leaderEpoch"),
        voted_id=_id_or_none(read.votedId, "votedId"),
        voted_directory_id=directory_id,
    )
    return state, [voter.voterId for voter in read.currentVoters or ()]


def _voted_directory_id(read: _QuorumStateJson) -> Uuid:
    if read.data_version == 0:
        return Uuid.ZERO
    if read.data_version != 1:
        raise ValueError(f"data_version {read.data_version} is unknown, expected 0 or 1")
    if read.votedDirectoryId is None:
        raise ValueError("version 1 without `votedDirectoryId`")
    return Uuid.parse(read.votedDirectoryId)


def _without_checksum_line(text: str) -> str:
    """Check and remove the second line in which earlier versions of kraft-wire kept the checksum."""
    line, newline, checksum_line = text.partition("\n")
    if not newline or not checksum_line.startswith(_CHECKSUM_LINE_START):
        return text
    if checksum_line != _checksum_line(line):
        raise MalformedFile(QUORUM_STATE, "the first line doesn't match the checksum in the second line")
    return line


def _checksum_line(text: str) -> str:
    return f"{_CHECKSUM_LINE_START}{_checksum(text.encode())}\n"


def _id_or_none(number: int, name: str) -> int:
    if not -1 <= number < 1 << 31:
        raise MalformedFile(
            QUORUM_STATE, f"{name} is {number}; an id is between 0 and 2147483647, and -1 means none"
        )
    return number


def _epoch(number: int, name: str) -> int:
    if not 0 <= number < 1 << 31:
        raise MalformedFile(QUORUM_STATE, f"{name} is {number}; an epoch is between 0 and 2147483647")
    return number


# --- meta.properties


class MetaProperties(msgspec.Struct, frozen=True, gc=False):
    """The identity of a folder. ``directory_id`` is None in folders that were formatted before Kafka 3.7."""

    cluster_id: str
    node_id: int
    directory_id: Uuid | None = None


def meta_properties_text(properties: MetaProperties) -> str:
    """Return the text of meta.properties, version 1, with its checksum in a comment at the end."""
    entries = {"cluster.id": properties.cluster_id, "node.id": str(properties.node_id), "version": "1"}
    if properties.directory_id is not None:
        entries["directory.id"] = str(properties.directory_id)
    escape = {ord(char): f"\\{char}" for char in "\\:=#! "}
    lines = "".join(f"{key}={value.translate(escape)}\n" for key, value in sorted(entries.items()))
    return f"{lines}#{_checksum_line(lines)}"


def parse_meta_properties(text: str) -> MetaProperties:
    """Parse meta.properties, with or without kraft-wire's checksum. Raises MalformedFile, also for folders of
    a ZooKeeper cluster."""
    from javaproperties import InvalidUEscapeError, loads  # slow to import, and not every command needs it

    lines, mark, checksum = text.rpartition(_CHECKSUM_COMMENT)
    if mark and mark + checksum != f"#{_checksum_line(lines)}":
        raise MalformedFile(
            META_PROPERTIES,
            "its lines don't match the checksum in the last one. Restore it from a copy; or correct it and "
            "remove that line: cluster.id is that of the other nodes, node.id is in the configuration, and "
            "directory.id is what `kafka-metadata-quorum.sh describe --replication` says of this node",
        )
    try:
        entries = loads(text)
    except InvalidUEscapeError as error:
        raise MalformedFile(META_PROPERTIES, str(error)) from None
    version = entries.get("version", "0" if "broker.id" in entries else None)
    if version is None:
        raise MalformedFile(META_PROPERTIES, "there is no version: it was cut off or overwritten")
    if version == "0":
        raise MalformedFile(
            META_PROPERTIES, "version 0: this folder is from a ZooKeeper cluster; migrate it with Kafka 3.9"
        )
    if version != "1":
        raise MalformedFile(META_PROPERTIES, f"version {version!r} is unknown, expected 1")
    for key in ("cluster.id", "node.id"):
        if not entries.get(key):
            raise MalformedFile(META_PROPERTIES, f"there is no {key}")
    directory_id = entries.get("directory.id")
    try:
        node_id = int(entries["node.id"])
        return MetaProperties(
            cluster_id=entries["cluster.id"],
            node_id=node_id,
            directory_id=None if directory_id is None else Uuid.parse(directory_id),
        )
    except ValueError as error:
        raise MalformedFile(META_PROPERTIES, str(error)) from None


# --- partition.metadata


def partition_metadata_text(topic_id: Uuid = CLUSTER_METADATA_TOPIC_ID) -> str:
    """Return the text of partition.metadata, version 0, without a newline at the end, as Java writes it."""
    return f"version: 0\ntopic_id: {topic_id}"


def parse_partition_metadata(text: str) -> Uuid:
    """Return the topic id in partition.metadata. Raises MalformedFile."""
    entries = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if entries.get("version") != "0":
        raise MalformedFile(PARTITION_METADATA, f"version {entries.get('version')!r} is unknown, expected 0")
    try:
        return Uuid.parse(entries["topic_id"])
    except KeyError:
        raise MalformedFile(PARTITION_METADATA, "there is no topic_id") from None
    except ValueError as error:
        raise MalformedFile(PARTITION_METADATA, str(error)) from None
