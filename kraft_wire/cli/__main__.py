"""Run the command line as ``python -m kraft_wire.cli``, without its installed script."""

import sys

from kraft_wire.cli import main

sys.exit(main())
