"""What is particular to the committed packages: their schemas, where they lie, what is usual in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCHEMAS = Path("schemas/kafka")
NEWEST_KAFKA = "4.4.0"
"""The version whose messages the product speaks."""


@dataclass(frozen=True, slots=True)
class Package:
    """A folder of schemas and the package made of it; both paths are relative to the project's root.

    What the schemas are written in is told by their files (sources.py).
    """

    schemas: Path
    target: Path


PACKAGES = (
    Package(SCHEMAS / NEWEST_KAFKA, Path("kraft_wire/protocol/messages")),
    Package(Path("schemas/kip-853"), Path("kraft_wire/protocol/kip_853")),
)

ONE_TOPIC_APIS = frozenset({"Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "Fetch", "FetchSnapshot"})
"""KRaft's own APIs: they mostly speak of one topic with one partition, and get code for that."""
ONE_ELEMENT_ARRAYS = frozenset({"topics", "responses", "partitions"})
NO_ELEMENT_ARRAYS = frozenset({"forgotten_topics_data", "aborted_transactions"})
"""Their arrays of structs, by how many elements those mostly have."""
