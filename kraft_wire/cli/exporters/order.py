"""``kraft-wire exporters pause``, ``resume`` and ``reset``: set the orders of an exporter in the metadata."""

from __future__ import annotations

import time
from pathlib import Path

from kraft_wire.cli.errors import EXIT_OK, UsageError
from kraft_wire.cli.exporters.known import exporter_of, observer_at
from kraft_wire.cli.quorum.changes.leader_client import LeaderClient, leader_for_change
from kraft_wire.cli.quorum.confirming import INTERRUPTED, confirm, interruption_says
from kraft_wire.cli.quorum.connecting import DEFAULT_TIMEOUT_MS, settings_of
from kraft_wire.client.config_changes import set_for_all_brokers
from kraft_wire.configs.exporter_orders import SNAPSHOT_AND_TAIL, TAIL, paused_key, reset_key, start_of
from kraft_wire.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kraft_wire.protocol.own_messages.exporter_positions_response import Position


def exporters_pause(
    name: str,
    *,
    bootstrap_controller: str,
    observer: str | None = None,
    command_config: Path | None = None,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
) -> int:
    """Pause an exporter: it exports nothing until it is resumed, also after a failover or a restart.

    The controllers keep the records for it, up to kraft.wire.exporters.max.log.bytes and .ms.

    Exit statuses: 0 paused, now or before; 2 wrong usage; 3 no controller answers; 4 none of them leads; 5
    the file of --command-config can't be read; 6 the node has no such exporter, or the controllers are of
    several clusters; 12 it isn't known whether the change was made; 14 the leader refuses; 130 interrupted; 1
    anything else.

    For example:

        kraft-wire exporters pause audit --bootstrap-controller c1:9093

    Parameters
    ----------
    name
        The exporter's name in kraft.wire.exporters.
    bootstrap_controller
        HOST:PORT of one or more controllers, separated by commas.
    observer
        HOST:PORT of a `kraft-wire observe` whose exporters are meant, not the active controller's.
    command_config
        A properties file with security settings, as for Kafka's tools.
    timeout_ms
        How long to look for the leader, and how long to wait for the commit.
    """
    with leader_for_change(settings_of(bootstrap_controller, command_config, timeout_ms)) as leader:
        exporter_of(leader, observer_at(observer), name)
        _set(leader, paused_key(name), "true")
    print(f"Exporter {name} is paused. The change is committed.")
    return EXIT_OK


def exporters_resume(
    name: str,
    *,
    bootstrap_controller: str,
    observer: str | None = None,
    command_config: Path | None = None,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
) -> int:
    """Resume an exporter that was paused: it goes on where it was.

    Exit statuses: 0 resumed, now or before; 2 wrong usage; 3 no controller answers; 4 none of them leads; 5
    the file of --command-config can't be read; 6 the node has no such exporter, or the controllers are of
    several clusters; 12 it isn't known whether the change was made; 14 the leader refuses; 130 interrupted; 1
    anything else.

    For example:

        kraft-wire exporters resume audit --bootstrap-controller c1:9093

    Parameters
    ----------
    name
        The exporter's name in kraft.wire.exporters.
    bootstrap_controller
        HOST:PORT of one or more controllers, separated by commas.
    observer
        HOST:PORT of a `kraft-wire observe` whose exporters are meant, not the active controller's.
    command_config
        A properties file with security settings, as for Kafka's tools.
    timeout_ms
        How long to look for the leader, and how long to wait for the commit.
    """
    with leader_for_change(settings_of(bootstrap_controller, command_config, timeout_ms)) as leader:
        exporter_of(leader, observer_at(observer), name)
        _set(leader, paused_key(name), None)
    print(f"Exporter {name} isn't paused. The change is committed.")
    return EXIT_OK


def exporters_reset(
    name: str,
    *,
    bootstrap_controller: str,
    observer: str | None = None,
    to: str = SNAPSHOT_AND_TAIL,
    yes: bool = False,
    command_config: Path | None = None,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
) -> int:
    """Let an exporter begin again. Shows what comes twice or is left out, and asks.

    Exit statuses: 0 reset; 2 wrong usage; 3 no controller answers; 4 none of them leads; 5 the file of
    --command-config can't be read; 6 the node has no such exporter, or the controllers are of several
    clusters; 8 not confirmed; 12 it isn't known whether the change was made; 14 the leader refuses; 130
    interrupted; 1 anything else.

    For example:

        kraft-wire exporters reset audit --bootstrap-controller c1:9093
        kraft-wire exporters reset audit --to 1200 --yes --bootstrap-controller c1:9093

    Parameters
    ----------
    name
        The exporter's name in kraft.wire.exporters.
    bootstrap_controller
        HOST:PORT of one or more controllers, separated by commas.
    observer
        HOST:PORT of a `kraft-wire observe` whose exporters are meant, not the active controller's.
    to
        Where it begins: snapshot+tail (the state of the newest snapshot as records, then the log), tail (what
        is committed from now on), or an offset.
    yes
        Don't ask.
    command_config
        A properties file with security settings, as for Kafka's tools.
    timeout_ms
        How long to look for the leader, and how long to wait for the commit.
    """
    if start_of(to) is None:
        raise UsageError(
            f"--to {to} is not where an exporter can begin: use {SNAPSHOT_AND_TAIL}, {TAIL} or an offset"
        )
    with leader_for_change(settings_of(bootstrap_controller, command_config, timeout_ms)) as leader:
        print(_warning(exporter_of(leader, observer_at(observer), name), to))
        if not yes:
            confirm()
        _set(leader, reset_key(name), f"{to}@{time.time_ns() // 1_000_000}")
    print(f"Exporter {name} begins again. The change is committed.")
    return EXIT_OK


def _warning(exporter: Position, to: str) -> str:
    """Say what a reset to ``to`` means for the exporter's sink."""
    name, position = exporter.exporter, exporter.next_offset
    now = "has no position yet" if position < 0 else f"has exported what is below offset {position}"
    return f"Exporter {name} {now}. {_effect(position, start_of(to))}"


def _effect(position: int, start: int | str | None) -> str:
    if start == TAIL:
        return "What it hasn't exported until now is left out."
    if start == SNAPSHOT_AND_TAIL:
        return "The state of the newest snapshot is exported, and then the log: some records come twice."
    assert isinstance(start, int)
    if start > position >= 0:
        return f"It goes on with offset {start}: the records from {position} up to there are left out."
    return f"It begins again with offset {start}: the records from there on come twice."


def _set(leader: LeaderClient, key: str, value: str | None) -> None:
    with interruption_says(INTERRUPTED):
        # No API of raft shows a configuration: only the leader's answer says that it is committed.
        leader.change(set_for_all_brokers(key, value), IncrementalAlterConfigsResponse, lambda _: None)
