"""Read the options that name replicas."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.cli.errors import UsageError
from kraft_wire.client.addresses import parse_addresses
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import Endpoints, endpoints_of
from kraft_wire.security.errors import BadSetting


def check_node_id(node_id: int) -> None:
    """Raise UsageError for a number that no node has as its id."""
    if node_id < 0:
        raise UsageError(f"{node_id} is not a node id: give the node.id of a controller, 0 or more")


def directory_id_of(text: str | None) -> Uuid | None:
    """Return the directory id of --directory-id. Raises UsageError."""
    if text is None:
        return None
    try:
        return Uuid.parse(text)
    except ValueError:
        raise UsageError(
            f"--directory-id {text} is not a directory id: give the directory.id of meta.properties"
        ) from None


def endpoints_of_options(texts: Sequence[str]) -> Endpoints:
    """Return the endpoints of --endpoint. Raises UsageError."""
    entries = []
    for text in texts:
        name, separator, address = text.partition("://")
        try:
            (found,) = parse_addresses(address)
        except (BadSetting, ValueError):
            separator = ""
        if not (name and separator):
            raise UsageError(f"--endpoint {text}: give NAME://HOST:PORT, such as CONTROLLER://host4:9093")
        entries.append((name.upper(), found.host, found.port))
    return endpoints_of(entries)
