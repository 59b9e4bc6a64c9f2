"""``kraft-wire quorum describe``: what kafka-metadata-quorum.sh describe prints, in its own format
(MetadataQuorumCommand, ToolsUtils.prettyPrintTable)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from kraft_wire.cli.errors import EXIT_OK, CommandError, UsageError
from kraft_wire.cli.printable import printable
from kraft_wire.cli.quorum.connecting import DEFAULT_TIMEOUT_MS, check_given, led_quorum, settings_of
from kraft_wire.client.quorum_description import QuorumDescription, ReplicaDescription
from kraft_wire.raft.recovery.evidence import url_of

COLUMNS: Final = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)
UNKNOWN: Final = -1


def quorum_describe(
    *,
    bootstrap_controller: str,
    status: bool = False,
    replication: bool = False,
    human_readable: bool = False,
    command_config: Path | None = None,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
) -> int:
    """Print what the leader says of its quorum, as kafka-metadata-quorum.sh describe does.

    Exit statuses: 0 printed; 2 wrong usage; 3 no controller answers; 4 none of them leads; 5 the file of
    --command-config can't be read; 6 the controllers are of several clusters; 130 interrupted; 1 anything
    else.

    For example:

        kraft-wire quorum describe --bootstrap-controller c1:9093,c2:9093 --replication --human-readable

    Parameters
    ----------
    bootstrap_controller
        HOST:PORT of one or more controllers, separated by commas.
    status
        Print a summary: leader, epoch, high watermark, voters and observers.
    replication
        Print a line for each replica: log end offset, lag, and when it last fetched and was caught up.
    human_readable
        With --replication: print how long ago a time was, instead of milliseconds since 1970.
    command_config
        A properties file with security settings, as for Kafka's tools.
    timeout_ms
        How long to look for the leader.
    """
    if status == replication:
        raise UsageError("give one of --status and --replication")
    if human_readable and not replication:
        raise UsageError("--human-readable goes with --replication")
    settings = settings_of(bootstrap_controller, command_config, timeout_ms)
    with led_quorum(settings) as quorum:
        check_given(settings)
        described = quorum.describe_quorum()
        lines = (
            status_lines(quorum.cluster_id(), described)
            if status
            else replication_lines(described, time.time_ns() // 1_000_000 if human_readable else None)
        )
    for line in lines:
        print(printable(line))
    return EXIT_OK


def status_lines(cluster_id: str, described: QuorumDescription) -> list[str]:
    """Return the summary. Raises CommandError if the leader isn't among the voters, as while it is being
    removed."""
    leader = _leader(described)
    slowest = min(described.voters, key=lambda voter: voter.log_end_offset)
    if slowest is leader:
        lag_ms = 0
    elif leader.last_caught_up_ms == UNKNOWN or slowest.last_caught_up_ms == UNKNOWN:
        lag_ms = UNKNOWN
    else:
        lag_ms = leader.last_caught_up_ms - slowest.last_caught_up_ms
    values = {
        "ClusterId": cluster_id,
        "LeaderId": described.leader_id,
        "LeaderEpoch": described.leader_epoch,
        "HighWatermark": described.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - slowest.log_end_offset,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": _replicas(described, described.voters),
        "CurrentObservers": _replicas(described, described.observers),
    }
    return [f"{name + ':':<24}{value}" for name, value in values.items()]


def replication_lines(described: QuorumDescription, now_ms: int | None) -> list[str]:
    """Return a table of the replicas. ``now_ms`` is the time to count ages from; None prints times as they
    are. Raises CommandError as ``status_lines`` does, and for a time in the future."""
    leader = _leader(described)
    followers = (voter for voter in described.voters if voter is not leader)
    rows = [
        _row(replica, leader, name, now_ms)
        for name, replicas in (
            ("Leader", [leader]),
            ("Follower", followers),
            ("Observer", described.observers),
        )
        for replica in replicas
    ]
    return table(COLUMNS, rows)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return lines with columns as wide as their longest value, each followed by a tab."""
    lines = [columns, *rows]
    widths = [max(len(line[number]) for line in lines) for number in range(len(columns))]
    return [
        "".join(f"{value:<{width}}\t" for value, width in zip(line, widths, strict=True)) for line in lines
    ]


def _leader(described: QuorumDescription) -> ReplicaDescription:
    for voter in described.voters:
        if voter.id == described.leader_id:
            return voter
    raise CommandError(
        f"the leader, node {described.leader_id}, is no voter now; `kraft-wire quorum status` shows it"
    )


def _row(
    replica: ReplicaDescription, leader: ReplicaDescription, status: str, now_ms: int | None
) -> list[str]:
    return [
        str(replica.id),
        str(replica.directory_id),
        str(replica.log_end_offset),
        str(leader.log_end_offset - replica.log_end_offset),
        _time(replica.last_fetch_ms, now_ms, "last fetch"),
        _time(replica.last_caught_up_ms, now_ms, "last caught up"),
        status,
    ]


def _time(time_ms: int, now_ms: int | None, what: str) -> str:
    if now_ms is None or time_ms == UNKNOWN:
        return str(time_ms)
    if not 0 < time_ms <= now_ms:
        raise CommandError(
            f"the {what} timestamp {time_ms} is after this machine's time, {now_ms}: the clocks differ; "
            "leave out --human-readable"
        )
    return f"{now_ms - time_ms} ms ago"


def _replicas(described: QuorumDescription, replicas: Sequence[ReplicaDescription]) -> str:
    return "[" + ", ".join(_replica(described, replica) for replica in replicas) + "]"


def _replica(described: QuorumDescription, replica: ReplicaDescription) -> str:
    parts = [f'"id": {replica.id}']
    if replica.directory_id:
        parts.append(f'"directoryId": "{replica.directory_id}"')
    endpoints = described.endpoints.get(replica.id, ())
    if endpoints:
        parts.append('"endpoints": [' + ", ".join(f'"{url_of(point)}"' for point in endpoints) + "]")
    return "{" + ", ".join(parts) + "}"
