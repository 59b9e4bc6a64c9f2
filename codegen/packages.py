"""The committed packages: their schemas, their folders, and the usual contents of their messages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCHEMAS = Path("schemas/kafka")
NEWEST_KAFKA = "4.4.0"
"""The version whose messages the product speaks."""


@dataclass(frozen=True, slots=True)
class Package:
    """A folder of schemas and the package generated from it. Both paths are relative to the project's root.

    The names of the files show which language the schemas are written in (schema/sources.py).
    """

    schemas: Path
    target: Path


PACKAGES = (
    Package(SCHEMAS / NEWEST_KAFKA, Path("kraft_wire/protocol/messages")),
    Package(Path("schemas/kraft-wire"), Path("kraft_wire/protocol/own_messages")),
    Package(Path("schemas/kip-853"), Path("kraft_wire/raft/membership/kip_853")),
)

ONE_TOPIC_APIS = frozenset({"Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "Fetch", "FetchSnapshot"})
"""KRaft's own APIs: their messages mostly have one topic with one partition, and get special code for
that."""
ONE_ELEMENT_ARRAYS = frozenset({"topics", "responses", "partitions"})
NO_ELEMENT_ARRAYS = frozenset({"forgotten_topics_data", "aborted_transactions"})
"""The arrays of structs in their messages, by the usual number of elements."""
