"""Run the process of the exporters: see ``process.py``."""

import sys

from kraft_wire.exporters.process import main

if __name__ == "__main__":
    main(sys.argv[1:])
