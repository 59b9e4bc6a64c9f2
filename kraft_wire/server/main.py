"""Run a controller from start to end: folder, log, node, listeners, signals."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from kraft_wire.controller.apis import (
    EXPORTER_APIS,
    EXPORTING_OBSERVER_APIS,
    OBSERVER_APIS,
    OUR_CONTROLLER_APIS,
)
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.server.assembly import build_node, open_store
from kraft_wire.server.clocks import read_clocks
from kraft_wire.server.config.server_config import ServerConfig
from kraft_wire.server.logging import get_logger
from kraft_wire.server.network.file_limit import file_limit, max_connections, raise_file_limit
from kraft_wire.server.network.host_names import HostNames
from kraft_wire.server.network.listeners import Acceptor, Bound, advertised, bind, listen
from kraft_wire.server.network.shared import Limits
from kraft_wire.server.owner import NodeOwner, Tap
from kraft_wire.server.ports.file_watch import watch_files
from kraft_wire.server.reports.limits import report_limits
from kraft_wire.server.reports.node import NodeReports
from kraft_wire.server.reports.quorum_watch import QuorumWatch, report_start
from kraft_wire.server.snapshot_process import SnapshotProcess
from kraft_wire.server.warm_up import warm_up
from kraft_wire.storage.store import Store
from kraft_wire.wire.dialect import Dialect

if TYPE_CHECKING:
    from kraft_wire.controller.decision.api_table import ApiTable
    from kraft_wire.controller.node.node import Node
    from kraft_wire.raft.membership.voters import Peer
    from kraft_wire.server.exporters import Exporters
    from kraft_wire.server.http.monitor import Monitor

SIGNALLED = 128
"""The exit status after a signal is this plus the signal's number."""

log = get_logger(__name__)


def run(config: ServerConfig, when_bound: Callable[[], None] | None = None) -> int:
    """Run a controller until SIGTERM, SIGINT or SIGHUP, and return the exit status of a graceful stop: 0; or
    129 after SIGHUP, as Java processes return, because SIGHUP isn't the way to stop a service.

    ``when_bound`` is called when the folder is locked and every listener is bound. Until the snapshot and
    the log are loaded, connections are refused: brokers and clients go to another controller meanwhile.

    Raises StorageError, CannotStart or CannotListen if the controller can't start, and DiskFailed,
    ReplayError or InvariantViolated if it can't continue.
    """
    store = open_store(config)
    with _single_error():
        received = trio.run(_serve, config, store, when_bound)
    store.close()
    log.info("stopped")
    return SIGNALLED + received if received is signal.SIGHUP else 0


async def _serve(config: ServerConfig, store: Store, when_bound: Callable[[], None] | None) -> signal.Signals:
    trio.socket.set_custom_hostname_resolver(HostNames())
    bound = await bind(config.listeners)
    http_bound = await bind([] if config.http_listener is None else [config.http_listener])
    if when_bound is not None:
        when_bound()
    endpoints = advertised(config.advertised_listeners, bound)
    apis = _apis(config)
    export = _exporters(config, store)
    node = build_node(config, store, apis, endpoints, read_clocks(), tuple if export is None else export.rows)
    report_start(node.core, store.properties.cluster_id, config.metadata_log_dir)
    watch = QuorumWatch(node.core, store.properties.cluster_id)
    dialects = _dialects(config)
    monitor = _monitor(node, store, config, export) if http_bound else None
    taps: list[Tap] = [NodeReports(), watch, *([] if export is None else [export.process])]
    owner = NodeOwner(
        node,
        store,
        SnapshotProcess(store.folder.partition_path),
        taps if monitor is None else [*taps, monitor.counts],
        client_id=f"raft-client-{config.node_id}",
        unreachable=watch.unreachable,
        dialect=dialects.get(config.controller_listener_names[0]),
    )
    raise_file_limit()
    owner.peers.know(owner.known_peers())
    most = partial(_most_connections, config, owner, 0 if monitor is None else monitor.files)
    report_limits(config, most()[0], file_limit())
    serve = owner.submit, owner.abandon
    acceptor = Acceptor(_limits(config), apis, *serve, most, dialects, partial(_hold_ms, node))
    listen([*bound, *http_bound], config.sockets.socket_listen_backlog_size)
    with trio.open_signal_receiver(*_stop_signals()) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(owner.run)
            nursery.start_soon(watch.run)
            nursery.start_soon(watch_files, store.check_files)
            nursery.start_soon(owner.peers.keep_warm, lambda: _close_peers(node), owner.known_peers)
            nursery.start_soon(warm_up, owner.settled)
            nursery.start_soon(_serve_http, http_bound, monitor, owner)
            if export is not None:
                nursery.start_soon(_export, export, node, owner)
            async with trio.open_nursery() as accepting:
                accepting.start_soon(acceptor.give_turns)
                accepting.start_soon(acceptor.complain)
                for listener in bound:
                    accepting.start_soon(acceptor.serve, listener)
                received = signal.Signals(await anext(signals))
                log.info("stopping", signal=received.name)
                nursery.start_soon(_ignore, signals)
                await _stop(owner, export)
                await acceptor.drain()
                accepting.cancel_scope.cancel()
            nursery.cancel_scope.cancel()
    return received


async def _stop(owner: NodeOwner, export: Exporters | None) -> None:
    """Let the exporters finish while this node may still lead, then hand over leadership."""
    if export is not None:
        await export.finish()
    await owner.stop()


async def _ignore(signals: AsyncIterator[int]) -> None:
    """Take further signals: one that is left would end the process before the log is closed."""
    async for number in signals:
        log.info("stopping already", signal=signal.Signals(number).name)


def _most_connections(config: ServerConfig, owner: NodeOwner, http_files: int) -> tuple[int, str]:
    """Return how many connections there may be, and what sets that."""
    return min(
        (config.sockets.max_connections, "max.connections"),
        (max_connections(file_limit() - owner.peers.files - http_files), "the limit of open files"),
    )


def _hold_ms(node: Node, address: str) -> int:
    """Count a new connection. Returns 0, or how long to hold it before it is closed."""
    return node.accept_connection(address, read_clocks().monotonic_ms)


def _close_peers(node: Node) -> list[Peer]:
    """Return the peers whose connections are kept open, for elections: none, on a node that only observes."""
    return [] if node.core.is_observer_only else node.core.other_voters


def _monitor(node: Node, store: Store, config: ServerConfig, export: Exporters | None) -> Monitor:
    """Return the monitor of a node. Nodes without an HTTP listener don't pay for its modules."""
    from kraft_wire.metrics.exporters import Exporters as ExportersShown
    from kraft_wire.server.http.monitor import Monitor

    return Monitor(
        node,
        read_clocks,
        store.log,
        store.folder.partition_path,
        has_static_voters=bool(config.voters),
        exporters=ExportersShown() if export is None else export.shown,
    )


def _apis(config: ServerConfig) -> ApiTable:
    if config.is_observer:
        return EXPORTING_OBSERVER_APIS if config.exporters else OBSERVER_APIS
    return EXPORTER_APIS if config.exporters else OUR_CONTROLLER_APIS


async def _export(export: Exporters, node: Node, owner: NodeOwner) -> None:
    await export.run(
        lambda: node.core.leader_peer,
        owner.keep_records,
        lambda: node.state.metadata.configs.get(ResourceType.BROKER, ""),
    )


def _exporters(config: ServerConfig, store: Store) -> Exporters | None:
    """Return the exporters. Controllers without any don't pay for their modules."""
    if not config.exporters:
        return None
    from kraft_wire.server.exporters import Exporters

    return Exporters(
        config.exporters,
        store.folder.partition_path,
        store.properties.cluster_id,
        config.node_id,
        is_observer=config.is_observer,
    )


async def _serve_http(bound: Sequence[Bound], monitor: Monitor | None, owner: NodeOwner) -> None:
    """Serve metrics and health until cancelled, if there is a listener for them."""
    if monitor is None:
        return
    from kraft_wire.server.http.listener import HttpListener

    async with trio.open_nursery() as nursery:
        nursery.start_soon(monitor.run)
        nursery.start_soon(HttpListener(bound[0], monitor.pages(owner.step_times, owner.peers.traffic)).run)


def _dialects(config: ServerConfig) -> dict[str, Dialect]:
    """Return the dialects of the listeners that have one. Others don't pay for its modules."""
    if not config.drafted_listeners:
        return {}
    from kraft_wire.raft.drafted.dialect import DRAFTED

    return dict.fromkeys(config.drafted_listeners, DRAFTED)


def _limits(config: ServerConfig) -> Limits:
    """Return the limits of connections."""
    return Limits(
        config.sockets.socket_request_max_bytes,
        config.sockets.connections_max_idle_ms,
        config.settings.kraft_wire_max_request_entries,
        config.sockets.kraft_wire_max_held_bytes,
    )


def _stop_signals() -> list[signal.Signals]:
    """Return the signals that stop the controller. Under nohup SIGHUP stays ignored."""
    signals = [signal.SIGTERM, signal.SIGINT]
    return signals if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [*signals, signal.SIGHUP]


@contextmanager
def _single_error() -> Iterator[None]:
    """Raise the first error of an exception group: it is the one that the operator needs to see."""
    try:
        yield
    except BaseExceptionGroup as group:
        raise _first_leaf(group) from group


def _first_leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
