"""The commands ``kraft-wire exporters``: show the exporters of the active controller, pause them, let them
begin again. Their exit statuses are those of ``kraft-wire quorum``."""
