"""Run the command line as ``python -m kraft_wire``."""

from kraft_wire.cli import script

script()
