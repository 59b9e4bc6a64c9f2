"""The exporters of a node: their process while it leads or if it observes, their positions always."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import trio

from kraft_wire.configs.exporter_orders import Orders, orders_in
from kraft_wire.controller.decision.context import ExporterRow
from kraft_wire.exporters.positions import wanted_from
from kraft_wire.exporters.settings import ExporterSettings, starts_of
from kraft_wire.metrics.exporters import Exporters as Shown
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.server.export_process import ExportProcess, OrdersOf
from kraft_wire.server.exporter_positions import ExporterPositions
from kraft_wire.server.leaders_positions import LeadersPositions
from kraft_wire.server.reports.exporters import ExporterReports

KEEP_INTERVAL_S: Final = 1.0
"""The interval at which raft is told which records must be kept."""


class Exporters:
    """All exporters of a node. ``process`` is a ``Tap`` of the owner."""

    def __init__(
        self,
        exporters: Sequence[ExporterSettings],
        folder: Path,
        cluster: str,
        node_id: int,
        *,
        is_observer: bool,
    ) -> None:
        self._exporters = exporters
        reports = ExporterReports()
        names = [exporter.name for exporter in exporters]
        self._positions = ExporterPositions(folder, cluster, names, reports)
        self._cluster = cluster
        self._client_id = f"exporters-client-{node_id}"
        self._is_observer = is_observer
        self.process = ExportProcess(
            exporters, folder, cluster, self._positions, reports, is_observer=is_observer
        )

    @property
    def shown(self) -> Shown:
        """Return what metrics show. Later changes can be seen in it."""
        return Shown(self.process.figures, self._positions.known)

    def rows(self) -> list[ExporterRow]:
        """Return what this node knows of each exporter."""
        return [self._row(exporter.name) for exporter in self._exporters]

    def _row(self, name: str) -> ExporterRow:
        positions, failures = self._positions, self.process.figures[name].failures_in_a_row
        return ExporterRow(name, positions.known.get(name), positions.resets.get(name, ""), failures)

    async def run(
        self,
        leader: Callable[[], Peer | None],
        keep_records: Callable[[int], None],
        of_all_brokers: Callable[[], Mapping[str, str]],
    ) -> None:
        """Export while this node leads, and follow the positions of the leader otherwise, until cancelled. An
        observer exports always, to sinks of its own.

        ``leader`` returns the one that this node follows. ``keep_records`` is told from which offset on
        records aren't exported yet, whenever that moves. ``of_all_brokers`` returns the configuration
        that is set for all brokers now: it has the orders of operators.
        """

        def orders() -> dict[str, Orders]:
            return orders_in(of_all_brokers())

        await self._positions.load()
        following = LeadersPositions(self._positions, leader, self._cluster, self._client_id)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._positions.keep)
            if not self._is_observer:
                nursery.start_soon(following.run)
            nursery.start_soon(self.process.run, orders)
            nursery.start_soon(self._keep_log, keep_records, orders)

    async def finish(self) -> None:
        """Export nothing more, and keep what is acknowledged until then."""
        await self.process.finish()

    async def _keep_log(self, keep_records: Callable[[int], None], orders: OrdersOf) -> None:
        told: int | None = None
        while True:
            wanted = wanted_from(self._positions.known, starts_of(self._exporters, orders()))
            if wanted is not None and wanted != told:
                keep_records(wanted)
                told = wanted
            await trio.sleep(KEEP_INTERVAL_S)
