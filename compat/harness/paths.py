"""Where things are in a checkout."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KAFKA_FOLDER = ROOT / ".kafka"
COMMAND = ROOT / ".venv" / "bin" / "kraft-wire"
NODE_LOGGING = ROOT / "compat" / "kafka" / "log4j2.yaml"
TOOL_LOGGING = ROOT / "compat" / "kafka" / "tools-log4j2.yaml"


class MissingComponent(RuntimeError):
    """Something that the interop tests run is not on this machine; the message says how to get it."""
