"""The generated packages that are committed: which schemas each is made of, and where it lies."""

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
