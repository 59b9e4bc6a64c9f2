"""The commands ``kraft-wire codec``."""
