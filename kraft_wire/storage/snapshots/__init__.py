"""Store, fetch, write and load snapshots."""
