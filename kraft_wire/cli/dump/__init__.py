"""The command ``kraft-wire dump-log``."""
