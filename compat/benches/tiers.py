"""Select one of our two codecs by environment variables: pure Python, or the compiled package if it
exists."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

PACKAGE = "kraft_wire_compiled"

PURE: Mapping[str, str] = MappingProxyType({"KRAFT_WIRE_PURE": "1"})


def compiled(folder: Path) -> Mapping[str, str]:
    """Return the environment for the compiled package in ``folder``."""
    return {"KRAFT_WIRE_PURE": "", "PYTHONPATH": str(folder)}


def compiled_if_installed() -> Mapping[str, str] | None:
    """Return the environment for the compiled package that is installed; None if it isn't."""
    return {"KRAFT_WIRE_PURE": ""} if find_spec(PACKAGE) is not None else None
