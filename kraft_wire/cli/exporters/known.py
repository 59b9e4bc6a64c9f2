"""Ask the active controller, or an observer, for its exporters."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from kraft_wire.cli.errors import CommandError, UsageError
from kraft_wire.cli.quorum import Unfit
from kraft_wire.cli.quorum.changes.leader_client import POLL_S, LeaderClient
from kraft_wire.client.addresses import parse_addresses
from kraft_wire.client.connection import Connector
from kraft_wire.protocol.errors import ErrorCode, ProtocolError, UnsupportedVersion
from kraft_wire.protocol.own_messages.exporter_positions_request import ExporterPositionsRequest
from kraft_wire.protocol.own_messages.exporter_positions_response import ExporterPositionsResponse, Position
from kraft_wire.security.errors import BadSetting
from kraft_wire.wire.address import Address

OBSERVER: Final = "--observer"


def exporters_of(leader: LeaderClient, observer: Address | None) -> Sequence[Position]:
    """Return the exporters of the observer, or of the leader. Raises Unfit if it has none, CommandError if it
    doesn't answer."""
    request = ExporterPositionsRequest(leader.cluster_id)
    deadline_s = time.monotonic() + leader.settings.api_timeout_ms / 1000
    while True:
        leader.describe()  # by whoever leads now
        address = observer or leader.answered_by
        response = _asked(leader, address, request)
        code = ErrorCode.of(response.error_code)
        if code is ErrorCode.NONE:
            return response.positions
        if code is not ErrorCode.NOT_CONTROLLER or time.monotonic() > deadline_s:
            raise CommandError(f"{address}: {response.error_message or code.name}")
        time.sleep(POLL_S)  # it has just been elected


def _asked(
    leader: LeaderClient, address: Address, request: ExporterPositionsRequest
) -> ExporterPositionsResponse:
    timeout_s = leader.settings.api_timeout_ms / 1000
    try:
        connection = Connector(leader.settings.security, timeout_s).open(address, timeout_s)
        try:
            return connection.call(request, ExporterPositionsResponse, timeout_s)
        finally:
            connection.close()
    except UnsupportedVersion:
        raise Unfit(
            f"{address} has no exporters: name them in kraft.wire.exporters of its properties file. Java's"
            f" controllers can't have any; for those of a `kraft-wire observe`, give {OBSERVER}"
        ) from None
    except (OSError, ProtocolError) as error:
        raise CommandError(f"{address} can't be asked for its exporters: {error}") from None


def exporter_of(leader: LeaderClient, observer: Address | None, name: str) -> Position:
    """Return one exporter of the observer, or of the leader. Raises Unfit if it has none of this name."""
    exporters = exporters_of(leader, observer)
    for exporter in exporters:
        if exporter.exporter == name:
            return exporter
    known = ", ".join(each.exporter for each in exporters)
    raise Unfit(f"{observer or leader.answered_by} has no exporter {name!r}; it has {known}")


def observer_at(text: str | None) -> Address | None:
    """Read --observer. Raises UsageError."""
    if text is None:
        return None
    try:
        (address,) = parse_addresses(text)
    except (BadSetting, ValueError):
        raise UsageError(f"{OBSERVER} {text}: give the HOST:PORT of one observer") from None
    return address
