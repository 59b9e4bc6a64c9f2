"""Run the command line as ``python -m kraft_wire.cli``, without its installed script."""

from kraft_wire.cli import script

script()
