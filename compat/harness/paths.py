"""Paths in a checkout."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KAFKA_FOLDER = ROOT / ".kafka"
KADM = KAFKA_FOLDER / "kadm"
COMMAND = ROOT / ".venv" / "bin" / "kraft-wire"
COMPILED_CODEC = ROOT / "build" / "compiled-site"
NODE_LOGGING = ROOT / "compat" / "kafka" / "log4j2.yaml"
TOOL_LOGGING = ROOT / "compat" / "kafka" / "tools-log4j2.yaml"


class MissingComponent(RuntimeError):
    """A program or file that the interop tests need is missing; the message says how to get it."""
