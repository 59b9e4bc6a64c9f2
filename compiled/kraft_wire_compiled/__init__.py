"""Compiled codecs of Kafka's messages. kraft_wire.protocol.tier looks for this package."""

from __future__ import annotations

import os
from importlib import import_module

from kraft_wire_compiled.index import EXTENSIONS, FINGERPRINTS

__all__ = ["ENABLED", "FINGERPRINTS", "INTERFACE", "install"]

INTERFACE = 2
"""The interface that the compiled code assumes. kraft_wire.protocol.tier must have the same number, or
warns."""
ENABLED = not os.environ.get("KRAFT_WIRE_PURE")


def install(cls: type) -> bool:
    """Replace a message's codec. Returns False if the layout of its classes isn't the one that the compiled
    code needs."""
    extension = import_module(f"{__name__}.{EXTENSIONS[cls.__module__]}")
    done: bool = extension.install(cls.__module__)
    return done
