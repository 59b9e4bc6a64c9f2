"""Run the command line as ``python -m kraft_wire``."""

import sys

from kraft_wire.cli import main

sys.exit(main())
