"""The commands ``kraft-wire storage``."""
