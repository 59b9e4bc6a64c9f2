"""What a sink gets that was away while the log was deleted: the difference (``difference``) between the state
that it has, which was kept in time (``bases``), and that of the newest snapshot."""
