"""Our two codecs as environments of a process: pure Python, and the compiled package where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

PACKAGE = "kraft_wire_compiled"

PURE: Mapping[str, str] = MappingProxyType({"KRAFT_WIRE_PURE": "1"})


def compiled(folder: Path | None) -> Mapping[str, str] | None:
    """With the compiled package in ``folder``, or installed where that is None; None if it isn't."""
    if folder is not None:
        return {"KRAFT_WIRE_PURE": "", "PYTHONPATH": str(folder)}
    return {"KRAFT_WIRE_PURE": ""} if find_spec(PACKAGE) is not None else None
