"""Kafka's messages in compiled code, for kraft_wire.protocol.tier, which looks for this package."""

from __future__ import annotations

import os
from importlib import import_module

from kraft_wire_compiled.index import EXTENSIONS, FINGERPRINTS

__all__ = ["ENABLED", "FINGERPRINTS", "INTERFACE", "install"]

INTERFACE = 2
"""What the compiled code takes for granted; kraft_wire.protocol.tier has the same number, or warns."""
ENABLED = not os.environ.get("KRAFT_WIRE_PURE")


def install(cls: type) -> bool:
    """Replace a message's codec; False where its classes aren't laid out as the compiled code needs them."""
    extension = import_module(f"{__name__}.{EXTENSIONS[cls.__module__]}")
    done: bool = extension.install(cls.__module__)
    return done
