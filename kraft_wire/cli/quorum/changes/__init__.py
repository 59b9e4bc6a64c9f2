"""The commands that change the voters of a running quorum."""
