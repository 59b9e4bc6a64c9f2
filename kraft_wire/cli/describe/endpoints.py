"""Print the endpoints that brokers and controllers have registered."""

from __future__ import annotations

from collections.abc import Iterable

from kraft_wire.metadata.registration import Listener
from kraft_wire.raft.membership.voters import Endpoint
from kraft_wire.raft.recovery.evidence import url_of


def urls_of(listeners: Iterable[Listener]) -> list[str]:
    """Return endpoints as in advertised.listeners."""
    return [url_of(Endpoint(each.name, each.host, each.port)) for each in listeners]
