"""``python -m kraft_wire.cli``: the command without its installed script."""

import sys

from kraft_wire.cli import main

sys.exit(main())
